"""Valid folders and URLs of a lake, and valid files in a Delta log.

Every writer of the lake can write a log, so its paths are not trusted. delta-rs 1.6.6 follows
``..``, absolute paths and URLs in a log when it reads. Neither delta-rs nor DuckDB checks symbolic
links.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

_LOG: Final = "_delta_log"
_SCHEME: Final = re.compile("[A-Za-z][A-Za-z0-9+.-]*:")
_NOT_BELOW: Final = re.compile(
    rf"^(?:/|{_SCHEME.pattern}|{_LOG}(?:/|$))|"  # absolute, a URL, a drive, the log itself
    r"(?:^|/)\.{0,2}(?:/|$)|[\\\x00-\x1f\x7f]"  # "..", "." and empty names
)
_IN_FOLDER: Final = re.compile(r"%[0-9A-Fa-f]{2}|[#?\[\]^|\\\x00-\x1f\x7f]")
"""delta-rs 1.6.6 decodes ``%``, finds no history with ``#`` and ``?``, and panics with others."""


class PathError(ValueError):
    """An invalid path. The error has the reason, but neither the lake nor the table."""


def below_table(path: str) -> str:
    """Return a data file's path in a Delta log as a path relative to its table, decoded once.

    Args:
        path: The path as the log has it, percent-encoded.

    Raises:
        PathError: It does not name a file below the table, or would not if it were decoded again.
    """
    found = once = _decoded(path)
    while not _NOT_BELOW.search(found):
        if (again := _decoded(found)) == found:
            return once
        found = again
    raise outside(path)


def _decoded(path: str) -> str:
    try:
        return unquote(path, errors="strict") if "%" in path else path
    except UnicodeDecodeError:
        raise outside(path) from None


def outside(path: str) -> PathError:
    """Return the error for a path in a log that is not a file below the table."""
    return PathError(
        f"its log names {path[:200]!r}, which is not a file below the table. Find out who wrote "
        "that commit, and restore the table from a backup (replace a shallow clone with a deep "
        "clone)"
    )


def check_table(uri: str, names: Iterable[str]) -> None:
    """Check that a table's log and folder name only plain files below the table.

    Args:
        uri: The table, as ``DeltaTable.table_uri`` has it.
        names: The paths of its live files, as the log has them.

    Raises:
        PathError: One does not.
        OSError: The folder cannot be listed.
    """
    for name in names:
        below_table(name)
    if uri.startswith("file:"):
        _check_files(folder_of(uri))


def folder_of(uri: str) -> Path:
    """Return the folder of a table or lake with a ``file:`` URL."""
    return Path(unquote(urlsplit(uri).path))


def _check_files(table: Path) -> None:
    """Raise PathError for a link or special file; the table's folder and its log can be links."""
    root = table.resolve()
    for path in _no_plain_files(str(root)):
        target, name = Path(path).resolve(), path[len(str(root)) + 1 :]
        if not target.is_relative_to(root):
            raise PathError(
                f"{name!r} is a symbolic link to {str(target)!r}, outside the table. Remove it, or "
                "move its files into the table"
            )
        if target.exists() and not (target.is_file() or target.is_dir()):
            raise PathError(f"{name!r} is neither a file nor a folder. Remove it")


def _no_plain_files(folder: str) -> Iterator[str]:
    folders = [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders += [entry.path] * (entry.name != _LOG)
                    elif not entry.is_file(follow_symlinks=False):
                        yield entry.path
        except FileNotFoundError:  # a clean-up has just removed it
            continue


def check_lake(place: str) -> None:
    """Check that delta-rs opens a lake's folder or URL by exactly its name.

    Args:
        place: A folder, or a URL with percent-encoded characters.

    Raises:
        PathError: It does not.
    """
    is_url = "://" in place
    is_local = not is_url or place.startswith("file://")
    # Not resolved: a link may have a name that delta-rs can open.
    folder = str(folder_of(place)) if is_url else os.path.abspath(place)  # noqa: PTH100
    wrong = re.search("[#?]", place) if is_url else None
    if wrong is not None:
        raise PathError(f"{place!r} contains {wrong[0]!r}. Percent-encode it")
    if not is_url and _SCHEME.match(place):
        raise PathError(f"{place!r} is read as a URL. Write {'./' + place!r}")
    wrong = _IN_FOLDER.search(folder) if is_local else None
    if wrong is not None:
        raise PathError(f"delta-rs cannot open a folder with {wrong[0]!r}. Rename {folder!r}")
    try:
        folder.encode()
    except UnicodeEncodeError:
        raise PathError(f"{folder!r} is not UTF-8. Rename it") from None
