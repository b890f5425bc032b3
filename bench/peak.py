"""The most that a process ever had resident."""

from __future__ import annotations

from pathlib import Path


def peak_mb(process: int | str = "self") -> float:
    """Megabytes of a process; unlike getrusage's, not also of the one that started it."""
    status = Path(f"/proc/{process}/status").read_text("ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 / 1e6
