"""Rounds of maintenance over all tables of bronze: once, or until it is told to stop."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from lakehouse import tables
from lakehouse.errors import ForeignEngineError, LakehouseError, TableSchemaError
from lakehouse.maintain import state as states
from lakehouse.maintain.place import explained
from lakehouse.maintain.plan import Checkpoint, Plan, day_of, plan

if TYPE_CHECKING:
    import datetime as dt
    import threading
    from collections.abc import Callable

    from deltalake import DeltaTable

    from lakehouse.maintain.place import Place
    from lakehouse.maintain.plan import Action
    from lakehouse.maintain.state import Reach, TableState
    from lakehouse.maintain.work import Work
    from lakehouse.tables import Table

REFUSED: Final = (ForeignEngineError, TableSchemaError)
"""Errors that stay until a person has looked."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What an operator decides.

    Attributes:
        keep_days: Dates older than that are removed.
        accepted: Versions of tables up to which an operator has looked at foreign commits.
    """

    keep_days: int
    accepted: dict[str, int]


class Maintenance:
    """Looks at the tables of bronze and does what is due.

    Args:
        place: The lake.
        work: Does what is due.
        reach: Asked at each round how far the rollup has read.
        rules: What the operator decides.
        now: Gives the instant, UTC.
        tell: Told of every event: its name, and what belongs to it.
    """

    def __init__(
        self,
        place: Place,
        work: Work,
        reach: Callable[[], Reach],
        rules: Rules,
        now: Callable[[], dt.datetime],
        tell: Callable[[str, dict[str, Any]], None],
    ) -> None:
        self._place, self._reach, self._rules = place, reach, rules
        self._now, self._tell = now, tell
        self._work = work
        self._tables: dict[str, DeltaTable] = {}
        self._looked: dict[str, int] = {}
        self._left: dict[str, tuple[str, ...]] = {}

    def plans(self) -> list[tuple[TableState, Plan, dict[Action, dict[str, int]]]]:
        """What a round would do to each table, and what that would bring; nothing is changed.

        Raises:
            LakehouseError: A table cannot be read, or is refused.
        """
        reach, found = self._reach(), []
        for table in tables.BRONZE:
            delta = self._load(table)
            state, wanted = self._plan(table, delta, reach)
            brings = {one: self._work.preview(table, delta, one) for one in wanted.actions}
            found.append((state, wanted, brings))
        return found

    def round(self, stop: threading.Event) -> list[LakehouseError]:
        """Do what is due; one table's error does not keep the others waiting.

        Returns:
            What went wrong.
        """
        try:
            reach = self._reach()
        except LakehouseError as error:
            self._tell("failed", {"error": str(error)})
            return [error]
        wrong = []
        for table in tables.BRONZE:
            try:
                self._maintain(table, reach, stop)
            except LakehouseError as error:
                self._tables.pop(table.name, None)
                self._tell("failed", {"table": table.name, "error": str(error)})
                wrong.append(error)
        return wrong

    def _maintain(self, table: Table, reach: Reach, stop: threading.Event) -> None:
        delta = self._load(table)
        _, wanted = self._plan(table, delta, reach)
        if wanted.left != self._left.get(table.name, ()):
            self._left[table.name] = wanted.left
            for what in wanted.left:
                self._tell("left", {"table": table.name, "what": what})
        for action in wanted.actions:
            if stop.is_set():
                return
            if isinstance(action, Checkpoint):
                # It covers commits that came since the plan was made.
                self._look(table, delta)
            told = {"table": table.name, **described(action)}
            self._tell("begun", told)
            began = time.monotonic()
            figures = self._work.do(table, delta, action)
            self._tell("done", {**told, **figures, "seconds": round(time.monotonic() - began, 3)})

    def _plan(self, table: Table, delta: DeltaTable, reach: Reach) -> tuple[TableState, Plan]:
        unknown = self._look(table, delta)
        now = self._now()
        read = reach(table, delta)
        state = states.load(self._place, table, delta, read, day_of(now), unknown)
        return state, plan(state, now, self._rules.keep_days)

    def _load(self, table: Table) -> DeltaTable:
        url = self._place.url(table)
        delta = self._tables.get(table.name)
        if delta is None:
            delta = self._place.open(table)
        else:
            with explained(url):
                delta.update_incremental()
        states.check_ours(table, delta, url)
        self._tables[table.name] = delta
        return delta

    def _look(self, table: Table, delta: DeltaTable) -> int:
        """Look at what was committed since, by whom; see ``state.unknown_engines``."""
        looked = self._looked.get(table.name)
        if looked is None:
            accepted = self._rules.accepted.get(table.name, -1)
            looked = max(states.mark(delta, states.CHECKED), accepted)
        unknown = states.unknown_engines(delta, looked, self._place.url(table))
        self._looked[table.name] = delta.version()
        return unknown


def serve(
    maintenance: Maintenance, every_seconds: float, stop: threading.Event
) -> list[LakehouseError]:
    """Do rounds until told to stop; what went wrong in the last one."""
    wrong: list[LakehouseError] = []
    while not stop.is_set():
        began = time.monotonic()
        wrong = maintenance.round(stop)
        stop.wait(max(0.0, every_seconds - (time.monotonic() - began)))
    return wrong


def described(action: Action) -> dict[str, Any]:
    """An action as it is told: its name and what it is about."""
    name = type(action).__name__
    return {"action": "note_cleaned" if name == "NoteCleaned" else name.lower()} | {
        name: value if isinstance(value, int) else str(value)
        for name, value in asdict(action).items()
        if value is not None
    }
