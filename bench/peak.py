"""What a process has resident, in megabytes."""

from __future__ import annotations

from pathlib import Path


def peak_mb(process: int | str = "self") -> float:
    """The most that it ever had; unlike getrusage's, not also of the one that started it."""
    return _status_mb(process, "VmHWM")


def resident_mb(process: int | str = "self") -> float:
    """What it has now."""
    return _status_mb(process, "VmRSS")


def anonymous_mb(process: int | str = "self") -> float:
    """The part of it that no file has, so that the kernel cannot take it away."""
    return _status_mb(process, "RssAnon")


def _status_mb(process: int | str, figure: str) -> float:
    status = Path(f"/proc/{process}/status").read_text("ascii")
    (line,) = (line for line in status.splitlines() if line.startswith(f"{figure}:"))
    return int(line.split()[1]) * 1024 / 1e6
