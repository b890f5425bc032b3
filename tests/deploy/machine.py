"""A machine to install on: a real systemd in namespaces of its own, over this host's files.

Whatever is changed in it is gone with it, and it has no network but its own loopback. Memory and
cores are not limited there, where this host's own first process holds those controllers.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from types import TracebackType

_BOOT: Final = Path(__file__).with_name("boot.sh")
_SYSTEMD: Final = Path("/lib/systemd/systemd")
_NAMESPACES: Final = ("--mount", "--pid", "--fork", "--cgroup", "--ipc", "--uts", "--net")
_BOOT_SECONDS: Final = 60
_ENVIRONMENT: Final = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/root",
}
_TRIAL: Final = (
    "mount -t tmpfs try /mnt && mkdir /mnt/u /mnt/w /mnt/r"
    " && mount -t overlay o -o lowerdir=/etc,upperdir=/mnt/u,workdir=/mnt/w /mnt/r"
)


def impossible() -> str | None:
    """Why there can be no machine here; None if there can."""
    if os.geteuid() != 0:
        return "a machine of its own needs root"
    for name in ("unshare", "nsenter", "setpriv", "ip", "systemctl", "curl"):
        if shutil.which(name) is None:
            return f"{name} is missing: install util-linux, iproute2, curl and systemd"
    if not _SYSTEMD.is_file():
        return "systemd is missing: install the package systemd"
    tried = subprocess.run(
        ["unshare", *_NAMESPACES, "sh", "-c", _TRIAL],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return None if tried.returncode == 0 else f"no namespaces here: {tried.stderr.strip()}"


class Machine:
    """A booted machine.

    Args:
        folder: An empty folder of ours.
        seen: Folders of the host by the name that they have below ``/srv`` there, read-only.
    """

    def __init__(self, folder: Path, seen: dict[str, Path]) -> None:
        self.shared = folder / "shared"
        self.shared.mkdir()
        self._changes = folder / "changes"
        self._changes.mkdir()
        pairs = [word for name, path in seen.items() for word in (str(path.resolve()), name)]
        self._command = [
            *("setpriv", "--pdeathsig", "KILL", "unshare", *_NAMESPACES, "--kill-child"),
            *("bash", str(_BOOT), str(self._changes), str(self.shared), *pairs),
        ]

    def __enter__(self) -> Self:
        self._said = (self._changes.parent / "boot.log").open("w+")
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=self._said, stderr=self._said
        )
        deadline = time.monotonic() + _BOOT_SECONDS
        while self.run("systemctl", "is-active", "basic.target", check=False).strip() != "active":
            self._said.seek(0)
            assert self._process.poll() is None, self._said.read()
            assert time.monotonic() < deadline, self.run("systemctl", "list-jobs", check=False)
            time.sleep(0.2)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()  # with its first process, all of a namespace end
        self._process.wait(60)
        self._said.close()

    def run(self, *command: str, check: bool = True) -> str:
        """Run a command as root in the machine; what it said on either stream is returned."""
        first = self._first_process()
        if first is None:
            return ""
        ran = subprocess.run(
            ["nsenter", f"--target={first}", "--all", "--root", "--wdns=/", *command],
            env=_ENVIRONMENT, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        assert not check or ran.returncode == 0, f"{' '.join(command)}: {ran.stdout}"
        return ran.stdout

    def write(self, path: str, text: str, owner: str = "root", mode: str = "0644") -> None:
        """Write a file of the machine."""
        handed = self.shared / "handed"
        handed.write_text(text, "utf-8")
        self.run("install", "-D", "-o", owner, "-m", mode, "/srv/shared/handed", path)

    def shows(self, unit: str, what: str) -> str:
        """A property of a unit."""
        return self.run("systemctl", "show", "--value", f"--property={what}", unit).strip()

    def log(self, unit: str) -> str:
        """What a unit has said."""
        return self.run("journalctl", "--no-pager", "--output=cat", f"--unit={unit}")

    def _first_process(self) -> str | None:
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        try:
            told = children.read_text().split()
            comm = Path(f"/proc/{told[0]}/comm").read_text().strip() if told else ""
        except OSError:
            return None
        return told[0] if comm == "systemd" else None
