"""The same columns and logs through Spark: many tables in one session, and one whole rollup."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from demo.jars import delta_jars
from lakehouse import tables
from tests.hostile import delta, rooms, shared
from tests.hostile.case import EITHER, NEIGHBOUR, OUTSIDE, TAKEN, Case, Command, Found
from tests.hostile.places.delta_log import PATHS, fill_path
from tests.hostile.values import COLUMNS
from tests.rig.connect_server import ConnectServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import ExitStack

    from tests.hostile.case import Outcome, Room

_ROOT: Final = Path(__file__).parents[3]
_COLUMNS: Final = ("statement", "subquery", "backtick", "braces", "newline", "quote", "dotted")
_PATHS: Final = ("parents", "parents-encoded", "absolute", "file-url", "http", "quote", "symlink")
_TABLES: Final = ("bronze/runs", "gold/clients")
_CASES: Final = tuple(
    (kind, name, path)
    for kind, names in (("column", _COLUMNS), ("path", _PATHS))
    for name in names
    for path in _TABLES
)
_LINES: Final = 200
"""Of Spark's own log."""


def cases() -> Iterator[Case]:
    """Classic Spark and Spark Connect, then a rollup with every hostile column at once."""
    for way, variables in (("classic", {}), ("connect", {"SPARK_REMOTE": "@REMOTE@"})):
        read = Command(
            ("python", "-m", "tests.hostile.spark_readers", "@READ@"), TAKEN, name="read",
            seconds=600, lines=_LINES, inputs=len(_CASES), listens=_LISTENS,
            environ=_environ(**variables), judged=_judged,
        )  # fmt: skip
        yield Case("Spark", way, partial(_lay, is_remote=way == "connect"), (read,))
    rollup = ("jmxlake", "rollup", "@ROOM@/lake", "--engine", "spark", "--tidy", "never")
    whole = Command(rollup, EITHER, seconds=600, lines=_LINES, listens=_LISTENS,
                    environ=_environ(), writes=("lake/gold",))  # fmt: skip
    yield Case("Spark", "rollup", _lay_rollup, (whole,))


_LISTENS: Final = 99
"""Spark has a port for each of its processes and workers, all of them on loopback."""


def _environ(**more: str) -> dict[str, str]:
    jars = delta_jars()[0].parent
    return {"JMXLAKE_DELTA_JARS": str(jars), "PYTHONPATH": str(_ROOT), **more}


def _lay(room: Room, *, is_remote: bool) -> None:
    read = []
    for number, (kind, name, path) in enumerate(_CASES):
        lake = rooms.lake(room, f"lakes/{number}")
        if kind == "column":
            delta.add_columns(lake / path, room.fill(COLUMNS[name]))
        else:
            filled = fill_path(room, path, PATHS[name], lake)
            delta.edit(lake / path, partial(_moved, filled))
        read.append([f"{kind} {name} {path}", str(lake), path])
    room.places["@READ@"] = json.dumps(read)
    if is_remote:
        room.places["@REMOTE@"] = shared.once("connect", _connect).remote


def _moved(path: str, add: dict[str, Any]) -> None:
    add["path"] = path


def _connect(folder: Path, stack: ExitStack) -> ConnectServer:
    return stack.enter_context(ConnectServer(folder))


def _lay_rollup(room: Room) -> None:
    rooms.bronze(room)
    for table in tables.BRONZE:
        delta.add_columns(room.path / "lake" / table.path, *map(room.fill, COLUMNS.values()))


def _judged(_: Room, outcome: Outcome) -> Iterator[Found]:
    """Each table, by its own line."""
    told = [json.loads(line) for line in outcome.out.splitlines() if line.startswith("{")]
    if strange := [one for one in outcome.ports if "0100007F" not in one]:
        yield Found("ports_opened", ", ".join(strange))
    if len(told) != len(_CASES):
        yield Found("wrong_codes", f"{len(told)} of {len(_CASES)} tables were read")
    for one in told:
        if one["kind"] not in ("", "refused"):
            yield Found("tracebacks", f"{one['name']}: {one['kind']}: {one['error'][:200]}")
        if one["kind"] == "refused" and "\n" in one["error"]:
            yield Found("tracebacks", f"{one['name']}: {one['error'][:200]!r}")
        if one["kind"] == "refused" and one["name"].startswith("column"):
            yield Found("wrong_codes", f"{one['name']} is refused: {one['error'][:200]}")
        if OUTSIDE in one["rows"] or NEIGHBOUR in one["rows"]:
            yield Found("files_outside", f"{one['name']} reads what is outside")
