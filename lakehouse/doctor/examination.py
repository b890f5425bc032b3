"""One look at a lake: every check is made, and one that cannot be made is a finding itself."""

from __future__ import annotations

import datetime as dt
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from lakehouse import tables
from lakehouse.doctor import accounts, clocks, happenings, rolled_up, sources, standing, versions
from lakehouse.doctor.diagnosis import Agent, Diagnosis
from lakehouse.doctor.finding import Finding
from lakehouse.errors import LakehouseError, TableNotFoundError
from lakehouse.maintain import reach
from lakehouse.maintain.place import explained
from lakehouse.maintain.state import Unread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalake import DeltaTable

    from lakehouse.doctor.accounts import Account, Failure
    from lakehouse.doctor.diagnosis import Question
    from lakehouse.tables import Table

_LEAST_COMMITS: Final = 200
# Two rounds of all agents and a margin; each commit is a file to read.
_COMMITS_AN_AGENT: Final = 4
_MOST_COMMITS: Final = 3_000


def examine(question: Question) -> Diagnosis:
    """Look at a lake; nothing is changed.

    Raises:
        LakehouseError: There is no lake that could be looked at.
    """
    question.place.open(tables.RUNS)
    return _Examination(question).made()


class _Examination:
    def __init__(self, question: Question) -> None:
        self._question, self._place = question, question.place
        self._found = Diagnosis(question)
        self._opened: dict[str, DeltaTable] = {}
        self._failures: list[Failure] = []

    def made(self) -> Diagnosis:
        for table in tables.BRONZE:
            with self._careful(table):
                self._bronze(table)
        told: list[Account] = []
        with self._careful(tables.SCRAPES):
            told = self._accounts()
        with self._careful(tables.EVENTS):
            self._events()
        if self._question.with_gold:
            self._gold(told)
        else:
            self._tell(_NOT_LOOKED_AT)
        return self._found

    @contextmanager
    def _careful(self, table: Table) -> Iterator[None]:
        """What cannot be looked at is unknown, not good."""
        try:
            yield
        except TableNotFoundError:
            self._tell(standing.not_there(table))
        except LakehouseError as error:
            todo = "mend that, then look again: what was not looked at is not well"
            self._tell(Finding("warning", "unknown", table.path, str(error), todo))

    def _tell(self, *findings: Finding) -> None:
        # A table that is away is met more than once.
        self._found.findings += [one for one in findings if one not in self._found.findings]

    def _open(self, table: Table) -> DeltaTable:
        if table.name not in self._opened:
            self._opened[table.name] = self._place.open(table)
        return self._opened[table.name]

    def _bronze(self, table: Table) -> None:
        delta, now = self._open(table), self._question.now
        self._tell(*standing.shape(self._place, table, delta))
        made = [
            dt.datetime.fromtimestamp(one["timestamp"] / 1000, dt.UTC)
            for one in self._history(table, _LEAST_COMMITS)
            if one.get("timestamp")
        ]
        stands = standing.standing(table, delta, standing.commits_a_day(made))
        self._found.tables.append(stands)
        self._tell(*standing.growth(stands))
        unread = self._unread(table, delta) if self._question.with_gold else None
        self._tell(*standing.kept(stands, now, standing.age(delta, now), unread))

    def _unread(self, table: Table, delta: DeltaTable) -> str | None:
        gold = self._place.url(tables.PROGRESS).removesuffix(f"/{tables.PROGRESS.name}")
        try:
            read = reach.by_progress(gold, self._place.options)(table, delta)
        except LakehouseError as error:
            return str(error)
        return read.why if isinstance(read, Unread) else None

    def _history(self, table: Table, most: int) -> list[dict[str, Any]]:
        delta = self._open(table)
        with explained(self._place.url(table)):
            return list(delta.history(min(most, delta.version() + 1)))

    def _accounts(self) -> list[Account]:
        asked, where = self._question, self._place.url(tables.SCRAPES)
        delta = self._open(tables.SCRAPES)
        told = accounts.accounts(delta, asked.since, asked.now, where)
        self._failures = accounts.failures(delta, asked.since, where)
        if not told:
            self._tell(_nobody(asked.days))
        self._tell(*sources.silent(told, asked.now, asked.late))
        holes = accounts.holes(delta, asked.since, where)
        self._tell(*sources.gaps(holes, self._failures, asked.days))
        self._tell(*sources.capped(told))
        self._tell(*clocks.future(told, asked.now))
        self._tell(*versions.of_clusters(told))
        self._agents(told)
        return told

    def _agents(self, told: list[Account]) -> None:
        asked = self._question
        agents = {one: [own for own in told if own.agent == one] for one in _ids(told)}
        most = min(max(_LEAST_COMMITS, _COMMITS_AN_AGENT * len(agents)), _MOST_COMMITS)
        made = clocks.commits(self._history(tables.SCRAPES, most))
        software = versions.newest(made)
        for agent, own in agents.items():
            read = tuple(sorted({"/".join(one.source) for one in own}))
            last = max((one.told for one in own if one.told), default=None)
            self._found.agents.append(Agent(agent, read, last, software.get(agent)))
        known = {one.agent: one.sources for one in self._found.agents}
        since = asked.now - asked.late
        working = [one.agent for one in self._found.agents if one.told and one.told >= since]
        self._tell(*versions.of_agents(software, working, asked.software, known))
        self._tell(*clocks.differing(clocks.skews(made), len(software), known))

    def _events(self) -> None:
        asked, where = self._question, self._place.url(tables.EVENTS)
        found = happenings.happenings(self._open(tables.EVENTS), asked.since, where)
        self._tell(*happenings.dropped(found, self._failures))
        self._tell(*happenings.disturbed(found, asked.days))

    def _gold(self, told: list[Account]) -> None:
        asked, reached = self._question, None
        with self._careful(tables.PROGRESS):
            reached = rolled_up.reach(self._place, self._open(tables.RUNS), asked.since)
        if reached is None:
            return
        self._tell(*rolled_up.behind(reached, asked.now))
        self._tell(*rolled_up.late(reached.progress, asked.days))
        if self._is_old():
            self._tell(_OLD)
        else:
            for table in tables.GOLD:
                with self._careful(table):
                    self._gold_table(table)
        with self._careful(tables.REJECTED):
            where = self._place.url(tables.REJECTED)
            unused = rolled_up.rejected(self._open(tables.REJECTED), asked.since, where)
            self._tell(*rolled_up.unused(unused, asked.days))
        with self._careful(tables.SUBJECTS):
            where = self._place.url(tables.SUBJECTS)
            known = rolled_up.sources(self._open(tables.SUBJECTS), where)
            within = dt.timedelta(days=asked.days)
            self._tell(*sources.unwatched(known, told, asked.now, within))

    def _is_old(self) -> bool:
        """Whether a version made it that had hours, days and windows in one table."""
        with self._careful(tables.COVERAGE):
            return "grain" in {one.name for one in self._open(tables.COVERAGE).schema().fields}
        return False

    def _gold_table(self, table: Table) -> None:
        delta = self._open(table)
        self._tell(*standing.gold_shape(table, delta))
        stands = standing.standing(table, delta)
        self._found.tables.append(stands)
        self._tell(*standing.gold_kept(stands))


def _ids(told: list[Account]) -> list[str]:
    return sorted({one.agent for one in told})


def _nobody(days: int) -> Finding:
    return Finding(
        "error", "silent", tables.SCRAPES.path,
        f"no agent has told anything in {days} days",
        "look on the broker hosts whether jmxlake-agent runs, and where it delivers (lake.path)",
    )  # fmt: skip


_OLD: Final = Finding(
    "warning", "schema", "gold", "an older version made it: its tables have a column grain",
    "run jmxlake rollup of this version: it changes them in place",
)  # fmt: skip
_NOT_LOOKED_AT: Final = Finding(
    "info", "unknown", "gold", "gold was not looked at (--gold none)",
    "look where its tables are: gold/progress says how far the rollup is",
)  # fmt: skip
