"""Thread dump of the agent: stacks of all Python and Java threads."""

import os
import sys
import threading
import traceback
from pathlib import Path

from collector.sources.java.jvm import started_jvm
from collector.telemetry import logs
from lakehouse.tables.error_text import unexpected


def file_beside(spool: Path) -> Path:
    """Return the path of an agent's thread dump, next to its spool."""
    return spool.with_name(f"{spool.name}.threads")


def write(path: Path) -> None:
    """Write a thread dump that only its owner can read. Log any error."""
    new = path.with_name(f"{path.name}.new")
    try:
        new.unlink(missing_ok=True)
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "w", encoding="utf-8", errors="backslashreplace") as out:
            out.write("\n".join([*_python(), *_java()]))
        new.replace(path)
    except Exception as error:  # noqa: BLE001 - a diagnosis must not stop the agent
        logs.warning("thread_dump_failed", path=str(path), error=unexpected(error))
    else:
        logs.info("thread_dump_written", path=str(path))


def _python() -> list[str]:
    frames = sys._current_frames()  # noqa: SLF001 - documented for debuggers
    return [
        f"Python thread {thread.name}\n{''.join(traceback.format_stack(frames[thread.ident]))}"
        for thread in threading.enumerate()
        if thread.ident in frames
    ]


def _java() -> list[str]:
    java = started_jvm()
    stacks = java("java.lang.Thread").getAllStackTraces() if java is not None else {}
    return [
        "\n    at ".join([f"Java thread {thread}", *map(str, frames)]) + "\n"
        for thread, frames in stacks.items()
    ]
