"""Crash reports of the agent's JVM, which it writes next to the spool."""

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
    """A crash report of the JVM.

    Attributes:
        path: The report.
        at_us: Time of the report (µs since the epoch).
        cause: The line with the cause of the crash.
    """

    path: Path
    at_us: int
    cause: str

    def seen(self) -> None:
        """Rename a recorded report, so that it is recorded once."""
        with suppress(OSError):
            self.path.rename(self.path.with_name(self.path.name.replace(_NEW, _SEEN, 1)))


def option(spool: Path) -> str:
    """Return Java's option for the path of reports, quoted for a shell."""
    return shlex.quote(f"-XX:ErrorFile={spool.resolve().with_name(f'{spool.name}.{_NEW}%p.log')}")


def new(spool: Path) -> list[Crash]:
    """Return unrecorded reports, oldest first. Keep the last 20 recorded reports."""
    for old in _reports(spool, _SEEN)[:-_MOST_KEPT]:
        with suppress(OSError):
            old.path.unlink()
    return _reports(spool, _NEW)


def every(spool: Path) -> list[Crash]:
    """Return all reports, recorded or not."""
    return [*_reports(spool, _SEEN), *_reports(spool, _NEW)]


def _reports(spool: Path, kind: str) -> list[Crash]:
    found = []
    for path in spool.resolve().parent.glob(f"{spool.name}.{kind}*.log"):
        with suppress(OSError):
            at_us = path.stat().st_mtime_ns // 1_000
            with path.open("rb") as file:
                head = file.read(_HEAD_BYTES).decode(errors="replace")
            causes = (line.strip("# ") for line in head.splitlines() if line.startswith(_CAUSES))
            found.append(Crash(path, at_us, next(causes, "unknown cause")))
    return sorted(found, key=lambda crash: crash.at_us)
