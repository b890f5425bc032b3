"""One look at a lake: every check is made, and one that cannot be made is a finding itself."""

from __future__ import annotations

import datetime as dt
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from deltalake import DeltaTable

from lakehouse import tables
from lakehouse.doctor import accounts, agents, clocks, rolled_up, sources, standing
from lakehouse.doctor.finding import ORDER, Finding
from lakehouse.doctor.standing import Standing
from lakehouse.errors import LakehouseError, TableNotFoundError
from lakehouse.maintain.place import Place, explained, rows
from lakehouse.maintain.state import Unread, by_progress, instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lakehouse.doctor.accounts import Account, Ask
    from lakehouse.tables import Table

_LEAST_COMMITS: Final = 200
# Two rounds of all agents and a margin; each commit is a file to read.
_COMMITS_AN_AGENT: Final = 4
_MOST_COMMITS: Final = 3_000


class Question(NamedTuple):
    """What is looked at.

    Attributes:
        place: The lake.
        now: The instant, UTC.
        days: How far back.
        late: How long an agent may take to deliver.
        software: Version of this command.
        with_gold: Whether gold can be read from here.
    """

    place: Place
    now: dt.datetime
    days: int
    late: dt.timedelta
    software: str
    with_gold: bool = True

    @property
    def since(self) -> dt.datetime:
        """From when on."""
        return self.now - dt.timedelta(days=self.days)


class Agent(NamedTuple):
    """An agent that told something.

    Attributes:
        agent: Its id.
        sources: What it told of, each with its cluster.
        told: Until when; None where all of it is in the future.
        software: Its version, if its newest commits are known and tell.
    """

    agent: str
    sources: tuple[str, ...]
    told: dt.datetime | None
    software: str | None


@dataclass(slots=True)
class Diagnosis:
    """What was seen, and what was found."""

    question: Question
    tables: list[Standing] = field(default_factory=list)
    agents: list[Agent] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    _opened: dict[str, DeltaTable] = field(default_factory=dict, repr=False)

    @property
    def worst_first(self) -> list[Finding]:
        """The findings, in the order in which somebody should look at them."""
        rank = ORDER.index
        return sorted(self.findings, key=lambda one: (rank(one.severity), one.check, one.where))

    @property
    def good(self) -> bool:
        """Whether nobody needs to do anything."""
        return all(one.severity == "info" for one in self.findings)

    def look(self) -> None:
        """Make every check."""
        for table in tables.BRONZE:
            with self._careful(table):
                self._bronze(table)
        told: list[Account] = []
        with self._careful(tables.SCRAPES):
            told = self._accounts()
        with self._careful(tables.EVENTS):
            found = accounts.happenings(self._ask(tables.EVENTS), self.question.since)
            self._tell(agents.disturbed(found, self.question.days))
        if self.question.with_gold:
            self._gold(told)
        else:
            self._tell([_NOT_LOOKED_AT])

    @contextmanager
    def _careful(self, table: Table) -> Iterator[None]:
        """What cannot be looked at is unknown, not good."""
        try:
            yield
        except TableNotFoundError:
            self._tell([standing.not_there(table)])
        except LakehouseError as error:
            todo = "mend that, then look again: what was not looked at is not well"
            self._tell([Finding("warning", "unknown", table.path, str(error), todo)])

    def _tell(self, findings: Iterable[Finding]) -> None:
        # A table that is away is met more than once.
        self.findings += [one for one in findings if one not in self.findings]

    def _open(self, table: Table) -> DeltaTable:
        if table.name not in self._opened:
            self._opened[table.name] = self.question.place.open(table)
        return self._opened[table.name]

    def _ask(self, table: Table) -> Ask:
        return partial(rows, self._open(table), where=self.question.place.url(table))

    def _bronze(self, table: Table) -> None:
        delta, now = self._open(table), self.question.now
        self._tell(standing.shape(self.question.place, table, delta))
        made = [
            instant(one["timestamp"])
            for one in self._history(table, _LEAST_COMMITS)
            if one.get("timestamp")
        ]
        stands = standing.standing(table, delta, standing.commits_a_day(made))
        self.tables.append(stands)
        self._tell(standing.growth(stands))
        unread = self._unread(table, delta) if self.question.with_gold else None
        self._tell(standing.kept(stands, now, standing.age(delta, now), unread))

    def _unread(self, table: Table, delta: DeltaTable) -> str | None:
        gold = self.question.place.url(tables.PROGRESS).removesuffix(f"/{tables.PROGRESS.name}")
        try:
            read = by_progress(gold, self.question.place.options)(table, delta)
        except LakehouseError as error:
            return str(error)
        return read.why if isinstance(read, Unread) else None

    def _history(self, table: Table, most: int) -> list[dict[str, Any]]:
        delta = self._open(table)
        with explained(self.question.place.url(table)):
            return list(delta.history(min(most, delta.version() + 1)))

    def _accounts(self) -> list[Account]:
        asked, ask = self.question, self._ask(tables.SCRAPES)
        told = accounts.accounts(ask, asked.since, asked.now)
        failures = accounts.failures(ask, asked.since)
        if not told:
            what = f"no agent has told anything in {asked.days} days"
            self._tell([Finding("error", "silent", tables.SCRAPES.path, what, _LOOK_AT_HOSTS)])
        self._tell(sources.silent(told, asked.now, asked.late))
        self._tell(sources.gaps(accounts.holes(ask, asked.since), failures, asked.days))
        self._tell(sources.capped(told))
        self._tell(clocks.future(told, asked.now))
        self._tell(agents.of_clusters(told))
        self._agents(told)
        return told

    def _agents(self, told: list[Account]) -> None:
        asked = self.question
        own = {
            agent: [one for one in told if one.agent == agent]
            for agent in sorted({one.agent for one in told})
        }
        most = min(max(_LEAST_COMMITS, _COMMITS_AN_AGENT * len(own)), _MOST_COMMITS)
        made = clocks.commits(self._history(tables.SCRAPES, most))
        software = {one.agent: one.software for one in made}
        for agent, several in own.items():
            read = tuple(sorted({"/".join(one.source) for one in several}))
            last = accounts.latest(one.told for one in several)
            self.agents.append(Agent(agent, read, last, software.get(agent)))
        known = {one.agent: one.sources for one in self.agents}
        since = asked.now - asked.late
        working = [one.agent for one in self.agents if one.told and one.told >= since]
        self._tell(agents.of_agents(software, working, asked.software, known))
        self._tell(clocks.differing(clocks.skews(made), len(software), known))

    def _gold(self, told: list[Account]) -> None:
        asked, reached = self.question, None
        with self._careful(tables.PROGRESS):
            reached = rolled_up.reach(self.question.place, self._open(tables.RUNS), asked.since)
        if reached is None:
            return
        self._tell(rolled_up.behind(reached, asked.now))
        self._tell(rolled_up.late(reached.progress, asked.days))
        if self._is_old():
            self._tell([_OLD])
        else:
            for table in tables.GOLD:
                with self._careful(table):
                    self._gold_table(table)
        with self._careful(tables.REJECTED):
            reasons = rolled_up.rejected(self._ask(tables.REJECTED), asked.since)
            self._tell(rolled_up.unused(reasons, asked.days))
        with self._careful(tables.SUBJECTS):
            known = rolled_up.sources(self._ask(tables.SUBJECTS))
            within = dt.timedelta(days=asked.days)
            self._tell(sources.unwatched(known, told, asked.now, within))

    def _is_old(self) -> bool:
        """Whether a version made it that had hours, days and windows in one table."""
        with self._careful(tables.COVERAGE):
            return "grain" in {one.name for one in self._open(tables.COVERAGE).schema().fields}
        return False

    def _gold_table(self, table: Table) -> None:
        delta = self._open(table)
        self._tell(standing.gold_shape(table, delta))
        stands = standing.standing(table, delta)
        self.tables.append(stands)
        self._tell(standing.gold_kept(stands))


def examine(question: Question) -> Diagnosis:
    """Look at a lake; nothing is changed.

    Raises:
        LakehouseError: There is no lake that could be looked at.
    """
    question.place.open(tables.RUNS)
    found = Diagnosis(question)
    found.look()
    return found


_LOOK_AT_HOSTS: Final = (
    "look on the broker hosts whether jmxlake-agent runs, and where it delivers (lake.path)"
)
_OLD: Final = Finding(
    "warning", "schema", "gold", "an older version made it: its tables have a column grain",
    "run jmxlake rollup of this version: it changes them in place",
)  # fmt: skip
_NOT_LOOKED_AT: Final = Finding(
    "info", "unknown", "gold", "gold was not looked at (--gold none)",
    "look where its tables are: gold/progress says how far the rollup is",
)  # fmt: skip
