"""Logs of Delta tables: where they say that a file is, and what they say of it."""

from __future__ import annotations

import json
import os
import shutil
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tests.hostile import delta, rooms
from tests.hostile.case import EITHER, REFUSED, Case, Codes, Command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.hostile.case import Room

_NEXT: Final = "outside/next"
_ABSOLUTE: Final = "@ROOM@/@FILE@"
PATHS: Final = {
    "parents": "@UP@@FILE@",
    "parents-encoded": "%2E%2E/%2E%2E/%2E%2E/@FILE@",
    "parents-encoded-slash": "..%2F..%2F..%2F@FILE@",
    "parents-double-encoded": "%252E%252E/%252E%252E/%252E%252E/@FILE@",
    "parents-inside": "date=2026-11-16/../@UP@@FILE@",
    "parents-dotted": "./@UP@@FILE@",
    "absolute": _ABSOLUTE,
    "absolute-encoded": "%2F@ROOM@/@FILE@",
    "absolute-twice": "/@ROOM@/@FILE@",
    "file-url": "file://@ROOM@/@FILE@",
    "file-url-host": "file://localhost@ROOM@/@FILE@",
    "file-url-upper": "FILE://@ROOM@/@FILE@",
    "http": "http://@CANARY@/x.parquet",
    "https": "https://@CANARY@/x.parquet",
    "s3": "s3://bucket/x.parquet",
    "huggingface": "hf://datasets/x/y.parquet",
    "unc": "//@CANARY@/share/x.parquet",
    "backslash": "..\\..\\..\\@FILE@",
    "nul": "x\x00.parquet",
    "nul-encoded": "x%00.parquet",
    "newline": "x\n.parquet",
    "glob": "date=*/*.parquet",
    "glob-parents": "@UP@outside/next/@TABLE@/*/*.parquet",
    "brackets": "date=2026-11-1[0-9]/part-[0-9]*.parquet",
    "quote": "x'], union_by_name=true) ; COPY (SELECT 1) TO '@RAN@'; --",
    "home": "~/x.parquet",
    "variable": "$HOME/x.parquet",
    "empty": "",
    "dot": ".",
    "table": "../runs",
    "zeros": "/dev/zero",
    "stdin": "/dev/stdin",
    "process": "/proc/self/environ",
    "symlink": "link.parquet",
    "symlink-folder": "linked/@NEXT@",
    "fifo": "fifo.parquet",
    "long": "p" * 5000,
    "surrogate": "x\ud800.parquet",
    "extension": "x.csv",
    "archive": "x.zip/y.parquet",
}
"""Paths of a file in a log. ``@FILE@``: a file of the lake next door; ``@UP@``: to the room."""
_ESCAPES: Final = (
    "parents", "parents-encoded", "absolute", "file-url", "symlink", "http", "nul", "fifo",
    "parents-encoded-slash", "parents-inside", "absolute-encoded", "absolute-twice", "file-url-host",
    "symlink-folder", "glob-parents", "quote", "zeros",
)  # fmt: skip
"""The first twelve stand in bronze, too, and the first eight meet every reader of gold."""
_LAKE: Final = "@ROOM@/lake"


def cases() -> Iterator[Case]:
    """Paths in gold and bronze, by kind of action, then what else a log can say."""
    for name, value in PATHS.items():
        lay = partial(_lay_path, table="gold/clients", value=value)
        yield Case("delta log", f"gold {name}", lay, _readers_of_gold(name))
    for name in _ESCAPES[:12]:
        lay = partial(_lay_path, table="bronze/runs", value=PATHS[name])
        yield Case("delta log", f"bronze {name}", lay, _readers_of_bronze())
    for kind, action in _ACTIONS.items():
        for name in ("parents", "file-url"):
            lay = partial(_lay_action, action=action, value=PATHS[name])
            yield Case("delta log", f"{kind} {name}", lay, _upkeep(kind))
    for name, (change, codes) in _DAMAGES.items():
        lay = partial(_lay_damage, table="gold/clients", change=change)
        yield Case("delta log", f"gold/clients {name}", lay, _readers_of_gold(name, codes))
        if name in _IN_BRONZE:
            lay = partial(_lay_damage, table="bronze/runs", change=change)
            yield Case("delta log", f"bronze/runs {name}", lay, _short(codes))


def _readers_of_gold(name: str, codes: Codes = REFUSED) -> tuple[Command, ...]:
    export = ("jmxlake", "export", _LAKE, "clients", "--format", "csv")
    first = Command(export, codes)
    if name not in _ESCAPES[:8]:
        return (first,)
    return (
        first,
        Command(rooms.REPORT, codes),
        Command(("jmxlake", "explain", _LAKE, "client:billing", "--week", "2026-W47"), codes),
        Command(("jmxlake", "forget", _LAKE, "billing"), codes | {0}, writes=("lake",)),
    )


def _readers_of_bronze(codes: Codes = REFUSED) -> tuple[Command, ...]:
    return (
        Command((*rooms.ROLLUP, "--tidy", "never"), codes, writes=("lake/gold",)),
        Command(("jmxlake", "maintain", _LAKE), EITHER, writes=("lake/bronze",)),
        Command(("jmxlake", "doctor", _LAKE), EITHER),
    )


def _short(codes: Codes) -> tuple[Command, ...]:
    rollup = Command((*rooms.ROLLUP, "--tidy", "never"), codes, writes=("lake/gold",))
    return (rollup, Command(("jmxlake", "maintain", _LAKE, "--dry-run"), EITHER))


def _lay_path(room: Room, table: str, value: str) -> None:
    rooms.lake(room)
    place = room.path / "lake" / table
    path = fill_path(room, table, value, room.path / "lake")
    delta.edit(place, lambda add: add.update(path=path))
    if "bronze" in table:  # so that all of it is rolled up again
        shutil.rmtree(room.path / "lake/gold")


def fill_path(room: Room, table: str, value: str, lake: Path) -> str:
    """A path with a file of the lake next door in it; links and pipes stand below the table."""
    if not (room.path / _NEXT).exists():
        rooms.neighbour(room)
    next_door, place = room.path / _NEXT / table, lake / table
    one = delta.actions(delta.last_add(next_door))
    file = next(told["add"]["path"] for told in one if "add" in told)
    (place / "link.parquet").symlink_to(next_door / file)
    (place / "linked").symlink_to(next_door)
    os.mkfifo(place / "fifo.parquet")
    up = "../" * len(place.relative_to(room.path).parts)
    marks = {"@UP@": up, "@FILE@": f"{_NEXT}/{table}/{file}", "@NEXT@": file,
             "@TABLE@": table}  # fmt: skip
    for mark, text in marks.items():
        value = value.replace(mark, text)
    return room.fill(value)


_REMOVED: Final = {"dataChange": True, "deletionTimestamp": 1_600_000_000_000}
_VECTORS: Final = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7,
    "readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}}  # fmt: skip
_SIZED: Final = {"partitionValues": {"date": "2026-11-16"}, "size": 100}
_ACTIONS: Final[dict[str, Callable[[str], tuple[dict[str, Any], ...]]]] = {
    "remove": lambda path: ({"remove": {"path": path, **_SIZED, **_REMOVED}},),
    "cdc": lambda path: ({"cdc": {"path": path, **_SIZED, "dataChange": False}},),
    "vector": lambda path: (_VECTORS, {"add": {
        "path": "date=2026-11-16/x.parquet", **_SIZED, "modificationTime": 1, "dataChange": True,
        "deletionVector": {"storageType": "p", "pathOrInlineDv": path, "offset": 1,
                           "sizeInBytes": 36, "cardinality": 1}}}),
}  # fmt: skip


def _lay_action(
    room: Room, action: Callable[[str], tuple[dict[str, Any], ...]], value: str
) -> None:
    rooms.lake(room)
    for table in ("gold/clients", "bronze/runs"):
        place = room.path / "lake" / table
        path = room.fill(value.replace("@UP@", "../../../").replace("@FILE@", "outside/secret.txt"))
        delta.append(place, *action(path))


def _upkeep(kind: str) -> tuple[Command, ...]:
    """Commands that read, then those that delete files."""
    codes = REFUSED if kind == "vector" else EITHER
    return (
        Command(("jmxlake", "export", _LAKE, "clients", "--format", "csv"), codes),
        Command(("jmxlake", "maintain", _LAKE, "--keep", "1d"), EITHER, writes=("lake/bronze",)),
        Command((*rooms.ROLLUP, "--tidy", "now"), codes, writes=("lake/gold",)),
    )


def _lay_damage(room: Room, table: str, change: Callable[[Path], None]) -> None:
    rooms.lake(room)
    change(room.path / "lake" / table)
    if "bronze" in table:
        shutil.rmtree(room.path / "lake/gold")


def _log(content: str | bytes) -> Callable[[Path], None]:
    """The newest commit has this content."""
    raw = content if isinstance(content, bytes) else content.encode()
    return lambda table: _ignore(delta.last_add(table).write_bytes(raw))


def _ignore(_: object) -> None:
    return


def _cut(table: Path) -> None:
    commit = delta.last_add(table)
    commit.write_bytes(commit.read_bytes()[:-60])


def _add(**changed: Any) -> Callable[[Path], None]:
    return lambda table: delta.edit(table, lambda add: add.update(changed))


def _stats(**changed: Any) -> Callable[[Path], None]:
    def change(add: dict[str, Any]) -> None:
        add["stats"] = json.dumps({**json.loads(add["stats"]), **changed})

    return lambda table: delta.edit(table, change)


def _protocol(reader: object, writer: object, **features: Any) -> Callable[[Path], None]:
    told = {"minReaderVersion": reader, "minWriterVersion": writer, **features}
    return lambda table: delta.append(table, {"protocol": told})


def _schema(text: str) -> Callable[[Path], None]:
    def change(table: Path) -> None:
        first = delta.log_of(table)[0]
        told = delta.actions(first)
        next(one for one in told if "metaData" in one)["metaData"]["schemaString"] = text
        delta.put(first, told)

    return change


def _properties(**changed: str) -> Callable[[Path], None]:
    def change(table: Path) -> None:
        first = delta.log_of(table)[0]
        told = delta.actions(first)
        meta = next(one for one in told if "metaData" in one)["metaData"]
        meta["configuration"].update({key.replace("_", "."): one for key, one in changed.items()})
        delta.put(first, told)

    return change


def _pipe(table: Path) -> None:
    commit = delta.last_add(table)
    commit.unlink()
    os.mkfifo(commit)


def _pipe_for_file(table: Path) -> None:
    one = next(table.rglob("*.parquet"))
    one.unlink()
    os.mkfifo(one)


def _linked(table: Path) -> None:
    commit = delta.last_add(table)
    commit.unlink()
    commit.symlink_to("/dev/zero")


def _checkpoint(text: str) -> Callable[[Path], None]:
    return lambda table: _ignore((table / "_delta_log/_last_checkpoint").write_text(text))


def _data(content: bytes) -> Callable[[Path], None]:
    def change(table: Path) -> None:
        for one in table.rglob("*.parquet"):
            one.write_bytes(content)

    return change


_DEEP: Final = 100_000
_DAMAGES: Final[dict[str, tuple[Callable[[Path], None], Codes]]] = {
    "cut commit": (_cut, REFUSED),
    "empty commit": (_log(""), EITHER),
    "text commit": (_log("hello\n"), REFUSED),
    "binary commit": (_log(bytes(range(256)) * 50), REFUSED),
    "deep commit": (_log('{"add":' * _DEEP), REFUSED),
    "commit of numbers": (_log("1\n2\n"), REFUSED),
    "UTF-16 commit": (_log('{"add":{}}'.encode("utf-16")), REFUSED),
    "huge number": (_add(size=10**30), REFUSED),
    "negative size": (_add(size=-1), EITHER),
    "pipe for a commit": (_pipe, EITHER),
    "endless commit": (_linked, EITHER),
    "reader of the future": (_protocol(99, 99), REFUSED),
    "unknown feature": (
        _protocol(3, 7, readerFeatures=["x'; COPY"], writerFeatures=["x'; COPY"]), REFUSED
    ),
    "protocol of text": (_protocol("3", "7"), EITHER),
    "too many records": (_stats(numRecords=10**6), REFUSED),
    "too few records": (_stats(numRecords=1), REFUSED),
    "negative records": (_stats(numRecords=-1), REFUSED),
    "statistics of text": (_add(stats="hello"), EITHER),
    "deep statistics": (_add(stats="[" * _DEEP), EITHER),
    "false bounds": (
        _stats(minValues={"hour": "2001-01-01T00:00:00Z", "start": "2001-01-01T00:00:00Z"},
               maxValues={"hour": "2001-01-02T00:00:00Z", "start": "2001-01-02T00:00:00Z"}), EITHER
    ),
    "partition of SQL": (
        _add(partitionValues={"date": "2026-11-16'; COPY (SELECT 1) TO '/dev/null'; --"}), REFUSED
    ),
    "partition missing": (_add(partitionValues={}), EITHER),
    "schema of text": (_schema("hello"), REFUSED),
    "deep schema": (_schema('{"type":"array","elementType":' * 5_000), REFUSED),
    "property of SQL": (_properties(delta_checkpointInterval="1; COPY"), EITHER),
    "property of mapping": (_properties(delta_columnMapping_mode="name"), EITHER),
    "checkpoint of the future": (_checkpoint('{"version":99999,"size":1}'), EITHER),
    "checkpoint of text": (_checkpoint("../../../x"), EITHER),
    "deep checkpoint": (_checkpoint("[" * _DEEP), EITHER),
    "empty file": (_data(b""), REFUSED),
    "text for a file": (_data(b"hello" * 100), REFUSED),
    "random file": (_data(b"PAR1" + bytes(range(256)) * 40 + b"PAR1"), REFUSED),
    "pipe for a file": (_pipe_for_file, REFUSED),
}  # fmt: skip
"""What else is wrong with a log, and whether readers must refuse it."""

_IN_BRONZE: Final = (
    "cut commit", "binary commit", "deep commit", "pipe for a commit", "reader of the future",
    "too many records", "too few records", "deep statistics", "partition of SQL", "partition missing",
    "deep schema", "checkpoint of text", "empty file", "random file", "pipe for a file",
)  # fmt: skip
"""Damages that a rollup meets as well."""
