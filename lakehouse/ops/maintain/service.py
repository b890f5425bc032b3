"""A round of maintenance over all tables of bronze."""

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
from lakehouse.ops.maintain.rollup_position import ReadPositions
from lakehouse.tables import BRONZE, Table

REFUSED: Final = (ForeignEngineError, TableSchemaError)
"""Errors that stay until a person has inspected the table."""


class PlannedTable(NamedTuple):
    """The actions of a round for a table.

    Attributes:
        table: Its name.
        version: Its newest version.
        uncheckpointed: Commits since maintenance's last checkpoint.
        live_files: Number of its live files.
        bytes: Their size.
        read_version: The last version that the rollup has read; None: it is not known.
        actions: Each action with its figures, see ``described``.
        left: Reasons for what is not done.
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
    """Checks the tables of bronze and runs what is due.

    Attributes:
        location: The lake.
        executor: Runs the actions.
        positions: Called once a round: how far the rollup has read.
        keep_days: Older dates are removed.
        accepted: By table, the version up to which commits of other engines are accepted.
        now: Gives the instant, UTC.
        log: Called with each event: its name and its fields.
    """

    location: Location
    executor: Executor
    positions: Callable[[], ReadPositions]
    keep_days: int
    accepted: dict[str, int]
    now: Callable[[], dt.datetime]
    log: Callable[[str, dict[str, Any]], None]
    _tables: dict[str, DeltaTable] = field(default_factory=dict)
    _inspected: dict[str, int] = field(default_factory=dict)
    _not_done: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def plans(self) -> list[PlannedTable]:
        """The actions of a round for each table; nothing is changed.

        Raises:
            LakehouseError: A table cannot be read, or is refused.
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
        """Run what is due; an error of one table does not delay the others.

        Returns:
            The errors.
        """
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

    def _maintain(self, table: Table, positions: ReadPositions, stop: threading.Event) -> None:
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
                # It covers commits that were added after the plan.
                self._inspect_engines(table, delta)
            fields = {"table": table.name, **described(action)}
            self.log("begun", fields)
            start = time.monotonic()
            figures = self.executor.run(table, delta, action)
            seconds = round(time.monotonic() - start, 3)
            self.log("done", {**fields, **figures, "seconds": seconds})

    def _plan(
        self, table: Table, delta: DeltaTable, positions: ReadPositions
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
        """Inspect the commits since the last inspection; see ``table_state.unknown_engines``."""
        checked = max(states.mark(delta, states.CHECKED), self.accepted.get(table.name, -1))
        unknown = states.unknown_engines(delta, self._inspected.get(table.name, checked))
        self._inspected[table.name] = delta.version()
        return unknown


def described(action: Action) -> dict[str, Any]:
    """An action as a log has it: its name under ``action``, and its fields."""
    name = type(action).__name__
    return {"action": "note_cleaned" if name == "NoteCleaned" else name.lower()} | {
        name: value if isinstance(value, int) else str(value)
        for name, value in asdict(action).items()
        if value is not None
    }
