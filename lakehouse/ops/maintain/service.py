"""Maintenance rounds over all bronze tables."""

import datetime as dt
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

from deltalake import DeltaTable

from lakehouse.core.delta_rs import Location, check_readable, delta_errors, refresh
from lakehouse.errors import ForeignEngineError, LakehouseError, TableSchemaError
from lakehouse.ops.maintain import table_state as states
from lakehouse.ops.maintain.actions import Executor
from lakehouse.ops.maintain.plan import Action, Checkpoint, Plan, day_of, plan
from lakehouse.tables import BRONZE, Table

REFUSED: Final = (ForeignEngineError, TableSchemaError)
"""Errors that remain until a person has inspected the table."""


class PlannedTable(NamedTuple):
    """The actions of a round for a table.

    Attributes:
        table: Name of the table.
        version: Newest version.
        uncheckpointed: Commits since the last checkpoint of maintenance.
        live_files: Number of live files.
        bytes: Size of the live files.
        read_version: Last version that the rollup has read. None if unknown.
        actions: Actions with their figures, see ``described``.
        left: Reasons for skipped actions.
    """

    table: str
    version: int
    uncheckpointed: int
    live_files: int
    bytes: int
    read_version: int | None
    actions: list[dict[str, Any]]
    left: list[str]


@dataclass(slots=True)
class Maintenance:
    """Runner of the due actions of all bronze tables.

    Attributes:
        location: The lake.
        executor: Runs the actions.
        positions: Returns the positions of the rollup. Called once per round.
        keep_days: Maximum age of dates.
        accepted: Last accepted version of other engines, by table.
        now: Returns the current time (UTC).
        log: Called with the name and the fields of each event.
    """

    location: Location
    executor: Executor
    positions: Callable[[], states.ReadPositions]
    keep_days: int
    accepted: dict[str, int]
    now: Callable[[], dt.datetime]
    log: Callable[[str, dict[str, Any]], None]
    _tables: dict[str, DeltaTable] = field(default_factory=dict)
    _inspected: dict[str, int] = field(default_factory=dict)
    _not_done: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def plans(self) -> list[PlannedTable]:
        """Return the actions of a round for each table without running them.

        Raises:
            LakehouseError: A table is unreadable or refused.
        """
        positions, planned = self.positions(), []
        for table in BRONZE:
            delta = self._load(table)
            state, due = self._plan(table, delta, positions)
            actions = [
                described(action) | self.executor.preview(table, delta, action)
                for action in due.actions
            ]
            size = sum(file.size for file in state.files)
            figures = (table.name, delta.version(), state.uncheckpointed, len(state.files), size)
            read = None if isinstance(state.read, str) else state.read.version
            planned.append(PlannedTable(*figures, read, actions, list(due.not_done)))
        return planned

    def round(self, stop: threading.Event) -> list[LakehouseError]:
        """Run all due actions and return the errors; an error does not delay other tables."""
        try:
            positions = self.positions()
        except LakehouseError as error:
            self.log("failed", {"error": str(error)})
            return [error]
        errors = []
        for table in BRONZE:
            try:
                self._maintain(table, positions, stop)
            except LakehouseError as error:
                self._tables.pop(table.name, None)
                self.log("failed", {"table": table.name, "error": str(error)})
                errors.append(error)
        return errors

    def _maintain(
        self, table: Table, positions: states.ReadPositions, stop: threading.Event
    ) -> None:
        delta = self._load(table)
        _, due = self._plan(table, delta, positions)
        if due.not_done != self._not_done.get(table.name, ()):
            self._not_done[table.name] = due.not_done
            for reason in due.not_done:
                self.log("left", {"table": table.name, "what": reason})
        for action in due.actions:
            if stop.is_set():
                return
            if isinstance(action, Checkpoint):
                # The checkpoint covers commits that were added after the plan.
                self._inspect_engines(table, delta)
            fields = {"table": table.name, **described(action)}
            self.log("begun", fields)
            start = time.monotonic()
            figures = self.executor.run(table, delta, action)
            seconds = round(time.monotonic() - start, 3)
            self.log("done", {**fields, **figures, "seconds": seconds})

    def _plan(
        self, table: Table, delta: DeltaTable, positions: states.ReadPositions
    ) -> tuple[states.TableState, Plan]:
        unknown, now = self._inspect_engines(table, delta), self.now()
        read = positions(table, delta)
        state = states.load_state(self.location, table, delta, read, day_of(now))
        return state, plan(state, now, self.keep_days, unknown)

    def _load(self, table: Table) -> DeltaTable:
        delta = self._tables.get(table.name)
        if delta is None:
            delta = self.location.open(table)
        else:
            with delta_errors(self.location.url(table)):
                refresh(delta)
        states.check_schema(table, delta)
        check_readable(delta)
        self._tables[table.name] = delta
        return delta

    def _inspect_engines(self, table: Table, delta: DeltaTable) -> int:
        """Inspect commits after the last inspection; see ``table_state.unknown_engines``."""
        checked = max(states.mark(delta, states.CHECKED), self.accepted.get(table.name, -1))
        unknown = states.unknown_engines(delta, self._inspected.get(table.name, checked))
        self._inspected[table.name] = delta.version()
        return unknown


def described(action: Action) -> dict[str, Any]:
    """Return an action for a log: its name under ``action``, and its fields."""
    name = type(action).__name__
    return {"action": "note_cleaned" if name == "NoteCleaned" else name.lower()} | {
        name: value if isinstance(value, int) else str(value)
        for name, value in asdict(action).items()
        if value is not None
    }
