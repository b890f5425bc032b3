"""Crashes of the JVM in this process: each leaves a report beside the spool."""

import shlex
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

_NEW: Final = "hs_err_"
_SEEN: Final = "crash_"
_MOST_KEPT: Final = 20
_HEAD_BYTES: Final = 4096
_CAUSES: Final = ("#  SIG", "#  Internal Error", "#  Out of Memory", "# There is insufficient")


class Crash(NamedTuple):
    """A report of the JVM.

    Attributes:
        path: Where it is.
        at_us: When it was written, in microseconds since the epoch.
        cause: The line of it that says why the JVM died.
    """

    path: Path
    at_us: int
    cause: str

    def seen(self) -> None:
        """It is recorded: name it so that no later start takes it for a new one."""
        with suppress(OSError):
            self.path.rename(self.path.with_name(self.path.name.replace(_NEW, _SEEN, 1)))


def option(spool: Path) -> str:
    """Java's option for where reports go, quoted as for a shell."""
    return shlex.quote(f"-XX:ErrorFile={spool.resolve().with_name(f'{spool.name}.{_NEW}%p.log')}")


def new(spool: Path) -> list[Crash]:
    """The reports that no start has recorded yet, oldest first; of those recorded, 20 stay."""
    for old in _reports(spool, _SEEN)[:-_MOST_KEPT]:
        with suppress(OSError):
            old.path.unlink()
    return _reports(spool, _NEW)


def every(spool: Path) -> list[Crash]:
    """All reports that there are, new or recorded."""
    return [*_reports(spool, _SEEN), *_reports(spool, _NEW)]


def _reports(spool: Path, kind: str) -> list[Crash]:
    found = []
    for path in spool.resolve().parent.glob(f"{spool.name}.{kind}*.log"):
        with suppress(OSError):
            at_us = path.stat().st_mtime_ns // 1_000
            with path.open("rb") as file:
                head = file.read(_HEAD_BYTES).decode(errors="replace")
            causes = (line.strip("# ") for line in head.splitlines() if line.startswith(_CAUSES))
            found.append(Crash(path, at_us, next(causes, "no cause is given")))
    return sorted(found, key=lambda crash: crash.at_us)
