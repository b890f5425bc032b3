"""The name of the lake's own folder, beside a lake whose name it could be read as."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from tests.hostile import rooms
from tests.hostile.case import EITHER, REFUSED, TAKEN, Case, Command, Found
from tests.hostile.serving import configured, page, serving, settings
from tests.hostile.values import FOLDERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.hostile.case import Outcome, Room

_ROWS: Final = 108
"""Rows of coverage in the small lake."""
_CODES: Final = TAKEN | {1}
"""A folder that no engine opens is refused, in one line."""
_SIBLINGS: Final = {
    "star": "stXr", "brackets": "bra", "question": "lX1", "brace": "ba", "percent": "a b",
    "double-encoded": "a%20b", "hash": "l", "question-equals": "l",
}  # fmt: skip
"""Folders that a careless reader takes for these: each holds the lake of others."""


def cases() -> Iterator[Case]:
    """Each name, for what reads and what writes a lake."""
    for name, folder in FOLDERS.items():
        yield Case(
            "folders", name, partial(_lay, name=name, folder=folder), _commands(name, folder)
        )


def _lay(room: Room, name: str, folder: str) -> None:
    rooms.bronze(room, f"in/{folder}")
    if name in _SIBLINGS:
        rooms.neighbour(room, f"in/{_SIBLINGS[name]}")
    place = f"{room.path}/in/{folder}"
    configured(room, settings(room, serving(room, page("orders")), lake={"path": place}))


def _commands(name: str, folder: str) -> tuple[Command, ...]:
    place = f"@ROOM@/in/{folder}"
    own = (f"in/{folder}",)
    rollup = ("jmxlake", "rollup", place, "--engine", "local", "--tidy", "never")
    export = ("jmxlake", "export", place, "coverage", "--format", "csv")
    report = ("jmxlake", "report", place, *rooms.PERIOD)
    return (
        Command(rollup, _CODES, writes=own),
        Command(export, _CODES, judged=_whole),
        *([Command(report, _CODES)] if name in _SIBLINGS else ()),
        Command(("jmxlake", "doctor", place), REFUSED),
        Command(("jmxlake-agent", "check", "--config", "agent.yaml"), EITHER, writes=own),
    )


def _whole(_: Room, outcome: Outcome) -> Iterator[Found]:
    """All rows of the small lake, and no others."""
    rows = outcome.out.count("\n") - 1
    if rows != _ROWS and outcome.code == 0:
        yield Found("wrong_codes", f"{rows} rows of coverage, not {_ROWS}")
