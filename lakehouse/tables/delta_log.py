"""Delta logs and lake folders: checks before delta-rs opens a table; explanations of its errors.

Every writer of the lake can write a log, so its paths are not trusted. delta-rs 1.6.6 follows
``..``, absolute paths and URLs in a log when it reads. Neither delta-rs nor DuckDB checks symbolic
links.

delta-rs skips files that are not regular, and it does not name a file that it cannot read. For a
log in a store only the error's text is available. In a folder this module reads the log itself.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from lakehouse.tables import error_text

_LOG: Final = "_delta_log"
_SCHEME: Final = re.compile("[A-Za-z][A-Za-z0-9+.-]*:")
_NOT_BELOW: Final = re.compile(
    rf"^(?:/|{_SCHEME.pattern}|{_LOG}(?:/|$))|"  # absolute, a URL, a drive, the log itself
    r"(?:^|/)\.{0,2}(?:/|$)|[\\\x00-\x1f\x7f]"  # "..", "." and empty names
)
_IN_FOLDER: Final = re.compile(r"%[0-9A-Fa-f]{2}|[#?\[\]^|\\\x00-\x1f\x7f]")
"""delta-rs 1.6.6 decodes ``%``, finds no history with ``#`` and ``?``, and panics with others."""
_PASSWORD: Final = re.compile(r"[^/]+://(?![^/@:]*:\d{1,5}(?:/|$))[^/@:]*:[^@]*@")
"""A URL with user and password, not HOST:PORT."""


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
    shown = error_text.one_line(place)
    if wrong is not None:
        advice = "Percent-encode it, or remove the query"
        raise PathError(f"{shown!r} contains {wrong[0]!r}. {advice}")
    if _PASSWORD.match(place):
        advice = "Remove it, and set the credentials of the store separately"
        raise PathError(f"{shown!r} contains a password. {advice}")
    if not is_url and _SCHEME.match(place):
        raise PathError(f"{place!r} is read as a URL. Write {'./' + place!r}")
    wrong = _IN_FOLDER.search(folder) if is_local else None
    if wrong is not None:
        raise PathError(f"delta-rs cannot open a folder with {wrong[0]!r}. Rename {folder!r}")
    try:
        folder.encode()
    except UnicodeEncodeError:
        raise PathError(f"{folder!r} is not UTF-8. Rename it") from None


LAST_CHECKPOINT: Final = "_last_checkpoint"
_NAME: Final = re.compile(r"(\d{20})(?:\.json|(\.checkpoint)[\w.-]*\.(?:parquet|json))")
_RESTORE: Final = "restore {} from a backup of the lake"
_MOST_BYTES: Final = 64 << 20
_LATEST: Final = 10**20
"""Greater than every version."""

_ABOUT_LOG: Final = re.compile(
    "Kernel error|Json error|Invalid ?JSON|Checkpoint|Arrow error|log segment|Invalid table version"
)
_KNOWN: Final = tuple(
    (re.compile(pattern, re.DOTALL), text)
    for pattern, text in (
        (
            r"Unsupported minimum (?:reader|writer) version \d+"
            r"|Feature '[^']{1,60}' is not supported"
            r"|Unsupported table features required: \[[^\]]{1,200}\]"
            r"|Unsupported (?:reader|writer)[^;\n]{0,80}|(?:Reader|Writer)Features[^;\n]{0,80}",
            r"its Delta protocol needs what jmxlake does not support (\g<0>): another tool has"
            " upgraded it. Drop these features, or use another lake",
        ),
        (
            r"No table metadata or protocol found|No table metadata found|No protocol found",
            r"its log is damaged (\g<0>): restore the first commit or the last checkpoint of"
            " _delta_log from a backup of the lake",
        ),
        (
            r"(?:Invalid protocol action|Unsupported Delta table type"
            r"|expected (?:ident|value) at line|invalid type: |Failed to parse value"
            r"|unmasked nulls|Deletion Vector error)[^\n;]{0,120}",
            r"its log is damaged (\g<0>): restore _delta_log from a backup of the lake",
        ),
        (
            r"Json error:?|Invalid ?JSON|not valid JSON",
            "its log is damaged, or is not a Delta log: restore _delta_log from a backup of the"
            " lake",
        ),
    )
)  # fmt: skip


class DamagedLogError(Exception):
    """A log that delta-rs must not open. The error names the file and the fix."""


class _Log(NamedTuple):
    """The part of a log that readers need.

    Attributes:
        folder: ``_delta_log``.
        checkpoint_version: Version of the newest checkpoint; -1: none.
        checkpoint_files: Its files.
        commits: Files of the later commits by version, in order.
        others: Entries that are not regular files, of later versions or the hint.
    """

    folder: Path
    checkpoint_version: int
    checkpoint_files: list[os.DirEntry[str]]
    commits: dict[int, os.DirEntry[str]]
    others: list[os.DirEntry[str]]


def check(url: str) -> None:
    """Check the files of a log in a folder, by one listing; a log in a store is not checked.

    Args:
        url: Path or URL of the table.

    Raises:
        DamagedLogError: A version is missing, or a file that readers open is not a regular file.
    """
    # A commit may land during the listing: the second one then has it.
    if (folder := _folder(url)) and _fault(_listed(folder)) and (fault := _fault(_listed(folder))):
        raise DamagedLogError(fault)


def empty_commits(url: str) -> list[int]:
    """Return the versions whose commit file in a folder is empty: a writer's host lost them."""
    folder = _folder(url)
    commits = _listed(folder).commits if folder else {}
    return [version for version, file in commits.items() if not file.stat().st_size]


def explain(url: str | None, text: str) -> str | None:
    """Return what is wrong with a table's log, and what to do.

    Args:
        url: Path or URL of the table; None: only the text is known.
        text: The text of delta-rs's error.

    Returns:
        None where the text does not point to a damaged log.
    """
    if url and _ABOUT_LOG.search(text) and (folder := _folder(url)):
        log = _listed(folder)
        fault = _fault(log) or _damaged_commit(log) or _damaged_checkpoint(log)
        if fault:
            return fault
    known = ((pattern.search(text), advice) for pattern, advice in _KNOWN)
    return next((found.expand(advice) for found, advice in known if found), None)


def table_folder(url: str) -> Path | None:
    """Return the folder of a table, or None if the table is in an object store."""
    if "://" in url and not url.startswith("file://"):
        return None
    return folder_of(url) if "://" in url else Path(url)


def _folder(url: str) -> Path | None:
    table = table_folder(url)
    folder = table / _LOG if table else None
    return folder if folder and folder.is_dir() else None


def _listed(folder: Path) -> _Log:
    commits: dict[int, os.DirEntry[str]] = {}
    checkpoints: dict[int, list[os.DirEntry[str]]] = {}
    others: list[tuple[int, os.DirEntry[str]]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            match = _NAME.fullmatch(entry.name)
            if match or entry.name == LAST_CHECKPOINT:
                if not _is_regular(entry):
                    others.append((int(match[1]) if match else _LATEST, entry))
                elif match and match[2]:
                    checkpoints.setdefault(int(match[1]), []).append(entry)
                elif match:
                    commits[int(match[1])] = entry
    newest = max(checkpoints, default=-1)
    later = {version: commits[version] for version in sorted(commits) if version > newest}
    opened = [entry for version, entry in others if version > newest]
    return _Log(folder, newest, checkpoints.get(newest, []), later, opened)


def _is_regular(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link to itself
        return False


def _fault(log: _Log) -> str | None:
    for entry in log.others:
        if entry.name == LAST_CHECKPOINT:
            return f"{entry.name} in its log is not a regular file; delete it: it is only a hint"
        restore = _RESTORE.format(entry.name)
        return f"{_version(entry.name)}: {entry.name} is not a regular file; remove it or {restore}"
    versions = list(log.commits)
    expected = range(log.checkpoint_version + 1, versions[-1] + 1) if versions else range(0)
    if len(expected) == len(versions):
        return None
    first = next(version for version in expected if version not in log.commits)
    last = next(version for version in versions if version > first) - 1
    which = f"version {first} is" if first == last else f"versions {first} to {last} are"
    return f"its log is damaged: {which} missing; {_RESTORE.format('its commit files')}"


def _version(name: str) -> str:
    return f"version {int(name.partition('.')[0])} of its log is damaged"


def _damaged_commit(log: _Log) -> str | None:
    for entry in log.commits.values():
        if why := _unreadable(Path(entry.path)):
            return f"{_version(entry.name)}: {entry.name} {why}; {_RESTORE.format('it')}"
    return None


def _unreadable(file: Path) -> str | None:
    """Why a commit file cannot be read; None: every line is an action."""
    try:
        with file.open("rb") as opened:
            content = opened.read(_MOST_BYTES)
        for number, line in enumerate(filter(None, content.split(b"\n")), 1):
            action = json.loads(line, parse_int=_int64, parse_constant=_int64)
            if not isinstance(action, dict):
                return f"has a line {number} that is not an action"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    except (ValueError, RecursionError):
        return f"has a line {number} that is not valid JSON of an action"
    return None


def _int64(text: str) -> Any:
    if not -(2**63) <= (value := int(text)) < 2**63:
        raise ValueError(text)
    return value


def _damaged_checkpoint(log: _Log) -> str | None:
    for entry in log.checkpoint_files:
        if entry.name.endswith(".parquet") and not _is_parquet(Path(entry.path)):
            why = f"the checkpoint {entry.name} of its log is damaged"
            return f"{why}; {_RESTORE.format('it')}"
    hint = _hinted(log.folder / LAST_CHECKPOINT)
    if hint is not None and hint > log.checkpoint_version:
        why = f"{LAST_CHECKPOINT} in its log names version {hint}, which has no checkpoint"
        return f"{why}; delete that file: it is only a hint"
    return None


def _is_parquet(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            head = opened.read(4)
            opened.seek(-4, os.SEEK_END)
            return head == opened.read(4) == b"PAR1"
    except OSError:  # it cannot be read, or is shorter
        return False


def _hinted(file: Path) -> int | None:
    try:
        hint = json.loads(file.read_bytes())["version"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return hint if isinstance(hint, int) else None
