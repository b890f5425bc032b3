"""Memory of a process, in megabytes."""

from __future__ import annotations

from pathlib import Path


def peak_mb(process: int | str = "self") -> float:
    """Return the peak of its resident set. That of getrusage includes the parent process."""
    return _status_mb(process, "VmHWM")


def resident_mb(process: int | str = "self") -> float:
    """Return its resident set, with the pages of library files."""
    return _status_mb(process, "VmRSS")


def anonymous_mb(process: int | str = "self") -> float:
    """Return its anonymous memory: no file backs it, so the kernel cannot reclaim it."""
    return _status_mb(process, "RssAnon")


def _status_mb(process: int | str, figure: str) -> float:
    status = Path(f"/proc/{process}/status").read_text("ascii")
    (line,) = (line for line in status.splitlines() if line.startswith(f"{figure}:"))
    return int(line.split()[1]) * 1024 / 1e6
