"""Where an export goes: a file that is there whole or not at all, or standard output."""

from __future__ import annotations

import sys
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakehouse.errors import LakehouseError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import BinaryIO


@contextmanager
def whole(file: Path) -> Iterator[Path]:
    """A new file beside, which takes the file's place when all is well, and else is removed.

    Raises:
        LakehouseError: It cannot be written.
    """
    beside = file.with_name(f".{file.name}.{uuid.uuid4().hex}.parquet")
    try:
        yield beside
        beside.replace(file)
    except OSError as error:
        raise LakehouseError(
            f"{file}: {error.strerror}; choose a file that can be written (--out)"
        ) from error
    finally:
        beside.unlink(missing_ok=True)


def write(lines: Iterable[str], file: Path | None, nothing: str) -> int:
    """Write text, to standard output where there is no file.

    Args:
        lines: What to write.
        file: Where to.
        nothing: What to say where there are no lines; no file is made then.

    Returns:
        How many lines these are.

    Raises:
        LakehouseError: It cannot be written, or there are no lines.
    """
    if file is None:
        return _put(lines, sys.stdout.buffer, nothing)
    with whole(file) as beside, beside.open("xb") as stream:
        return _put(lines, stream, nothing)


def _put(lines: Iterable[str], stream: BinaryIO, nothing: str) -> int:
    count = 0
    for line in lines:
        stream.write(line.encode())
        count += 1
    if not count:
        raise LakehouseError(nothing)
    stream.flush()
    return count
