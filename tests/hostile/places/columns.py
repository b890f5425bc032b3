"""Names of columns: each table of bronze and gold has some that nobody declared."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from lakehouse import tables
from tests.hostile import delta, rooms
from tests.hostile.case import EITHER, REFUSED, TAKEN, Case, Command
from tests.hostile.values import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.hostile.case import Room

_BRONZE: Final = tuple(table.path for table in tables.BRONZE)
_READ: Final = ("subjects", "clients", "incidents")
"""Tables of gold that get each statement alone, and that a report reads."""
_DOCTOR: Final = Command(("jmxlake", "doctor", "@ROOM@/lake"), REFUSED)
_EXPORT: Final = ("jmxlake", "export", "@ROOM@/lake")


def cases() -> Iterator[Case]:
    """Each table with hostile columns, read by what reads it."""
    for path in _BRONZE:
        for name, value in COLUMNS.items():
            yield _bronze(path, name, value)
    for table in tables.GOLD:
        yield _gold(table.path, "every name", *COLUMNS.values())
        if table.name in _READ:
            for name in ("statement", "statement-select", "statement-bare", "subquery"):
                yield _gold(table.path, name, COLUMNS[name])


def _bronze(path: str, name: str, value: str) -> Case:
    commands = (
        Command((*rooms.ROLLUP, "--tidy", "never"), writes=("lake/gold",)),
        Command(("jmxlake", "maintain", "@ROOM@/lake", "--dry-run"), EITHER),
        _DOCTOR,
    )
    # A rollup computes the same from all names, and takes longest.
    chosen = commands if name in ("statement-bare", "subquery", "braces") else commands[1:]
    return Case("columns", f"{path} {name}", partial(_lay_bronze, path=path, value=value), chosen)


def _lay_bronze(room: Room, path: str, value: str) -> None:
    rooms.bronze(room)
    delta.add_columns(room.path / "lake" / path, room.fill(value))


def _gold(path: str, name: str, *values: str) -> Case:
    table = path.removeprefix("gold/")
    out = ("--format", "csv", "--out", "out/t.csv")
    commands = [Command((*_EXPORT, table, *out), TAKEN | {1, 2})]
    if table in _READ:
        commands.append(Command(rooms.REPORT))
    if name == "every name":
        commands.append(_DOCTOR)
    lay = partial(_lay_gold, path=path, values=values)
    return Case("columns", f"{path} {name}", lay, tuple(commands))


def _lay_gold(room: Room, path: str, values: tuple[str, ...]) -> None:
    rooms.lake(room)
    delta.add_columns(room.path / "lake" / path, *map(room.fill, values))
