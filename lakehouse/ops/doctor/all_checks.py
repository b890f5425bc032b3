"""All checks of a lake; a failed check is also a finding."""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, Literal

from deltalake import DeltaTable

from lakehouse import errors, tables
from lakehouse.core.delta_rs import Location
from lakehouse.core.table_notes import Noted
from lakehouse.ops.doctor import agent_records, agents, sources, table_health
from lakehouse.ops.doctor.finding import ORDER, Finding, finding
from lakehouse.ops.maintain import table_state as states
from lakehouse.tables import Table

_LEAST_COMMITS: Final = 200


@dataclass(slots=True)
class Diagnosis:
    """The tables and agents of a lake, and the findings.

    Attributes:
        location: The lake.
        now: The current time (UTC).
        days: Length of the checked period.
        late: Maximum delivery time of an agent.
        version: Version of this command.
        with_gold: Whether gold is readable from here.
    """

    location: Location
    now: dt.datetime
    days: int
    late: dt.timedelta
    version: str
    with_gold: bool = True
    tables: list[table_health.TableHealth] = field(default_factory=list)
    agents: list[agent_records.Agent] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    _opened: dict[str, DeltaTable] = field(default_factory=dict, repr=False)

    @property
    def since(self) -> dt.datetime:
        """Start of the checked period."""
        return self.now - dt.timedelta(days=self.days)

    @property
    def worst_first(self) -> list[Finding]:
        """The findings, worst first."""
        return sorted(self.findings, key=lambda found: (ORDER.index(found.severity), *found[1:3]))

    @property
    def good(self) -> bool:
        """Whether no finding requires action."""
        return all(found.severity == "info" for found in self.findings)

    def run(self) -> None:
        """Run every check without changing the lake.

        Raises:
            LakehouseError: The lake does not exist or cannot be opened.
        """
        self.location.open(tables.RUNS)
        for table in tables.BRONZE:
            with self._unknown_on_error(table):
                self._check_bronze(table)
        reported: list[agent_records.FamilyRecord] = []
        with self._unknown_on_error(tables.SCRAPES):
            reported = self._check_scrapes()
        with self._unknown_on_error(tables.EVENTS):
            events = agent_records.event_counts(self._open(tables.EVENTS), self.since)
            self._add(agents.events(events, self.days))
        if self.with_gold:
            self._check_gold(reported)
        else:
            self._add([_GOLD_SKIPPED])

    @contextmanager
    def _unknown_on_error(self, table: Table) -> Iterator[None]:
        try:
            yield
        except errors.TableNotFoundError:
            self._add([table_health.missing(table)])
        except errors.MissingFilesError:
            self._add(table_health.files_gone(table, self._open(table)))
        except errors.LakehouseError as error:
            self._add([finding("unknown", table.path, str(error))])

    def _add(self, findings: Iterable[Finding]) -> None:
        # Several checks report the same missing table.
        self.findings += [found for found in findings if found not in self.findings]

    def _open(self, table: Table) -> DeltaTable:
        if table.name not in self._opened:
            self._opened[table.name] = self.location.open(table)
        return self._opened[table.name]

    def _commits(self, table: Table, most: int) -> list[states.LogEntry]:
        delta = self._open(table)
        return states.commits(delta, max(0, delta.version() - most + 1))

    def _check_bronze(self, table: Table) -> None:
        delta = self._open(table)
        self._add(table_health.bronze_shape(table, delta))
        commits = self._commits(table, _LEAST_COMMITS)
        dated = [commit.at for commit in commits if commit.info.get("timestamp")]
        a_day = table_health.commits_a_day(dated)
        self._check_health(table, delta, a_day)
        unknown = self._unknown_position(table, delta) if self.with_gold else None
        cleaned, age = states.mark(delta, states.CLEANED), table_health.age(delta, self.now)
        self._add(table_health.not_cleaned(table, cleaned, self.now, age, unknown))

    def _check_health(self, table: Table, delta: DeltaTable, a_day: int | None = None) -> None:
        state = table_health.table_health(table, delta, a_day)
        self.tables.append(state)
        self._add(table_health.over_budget(state))
        self._add(table_health.damaged_log(table, delta))
        self._check_files(table, delta)

    def _check_files(self, table: Table, delta: DeltaTable) -> None:
        self._add(table_health.files_gone(table, delta))
        self._add(table_health.files_damaged(table, delta))

    def _unknown_position(self, table: Table, delta: DeltaTable) -> str | None:
        try:
            position = states.by_progress(self.location)(table, delta)
        except errors.LakehouseError as error:
            return str(error)
        return position if isinstance(position, str) else None

    def _check_scrapes(self) -> list[agent_records.FamilyRecord]:
        scrapes = self._open(tables.SCRAPES)
        reported = agent_records.family_records(scrapes, self.since, self.now)
        failures = agent_records.failures(scrapes, self.since)
        if not reported:
            what = f"no agent has delivered data for {self.days} days"
            self._add([finding("silent", tables.SCRAPES.path, what)])
        self._add(sources.silent(reported, self.now, self.late))
        self._add(sources.twice(reported, self.now, self.late))
        self._check_doubles(scrapes)
        self._add(sources.gaps(agent_records.gaps(scrapes, self.since), failures, self.days))
        self._add(sources.capped(reported))
        self._add(agents.future(reported, self.now))
        self._add(agents.cluster_versions(reported))
        self._check_traits(reported)
        self._check_agents(reported)
        return reported

    def _check_traits(self, reported: list[agent_records.FamilyRecord]) -> None:
        in_use = sorted({one.catalogue for one in reported if one.catalogue})
        with self._unknown_on_error(tables.METRIC_TRAITS):
            try:
                definitions, traits = map(self._open, tables.CATALOGUES)
            except errors.TableNotFoundError:  # older agents do not create them
                return
            self._add(agents.traits(agent_records.metric_traits(definitions, traits, in_use)))

    def _check_doubles(self, scrapes: DeltaTable) -> None:
        found = agent_records.overlaps(scrapes, self.since)
        self._add(sources.read_twice(found))
        with self._unknown_on_error(tables.RUNS):
            found += agent_records.copied_runs(self._open(tables.RUNS), self.since)
        self._add(sources.copied(found))

    def _check_agents(self, reported: list[agent_records.FamilyRecord]) -> None:
        ids = sorted({record.agent for record in reported})
        # Two deliveries of all agents and a margin; each commit is a file to read.
        most = min(max(_LEAST_COMMITS, 4 * len(ids)), 3_000)
        commits = self._commits(tables.SCRAPES, most)
        infos = [commit.info for commit in commits if commit.info.get(tables.COMMIT_AGENT)]
        versions = {info[tables.COMMIT_AGENT]: info.get(tables.COMMIT_VERSION) for info in infos}
        for agent in ids:
            own = [record for record in reported if record.agent == agent]
            read = tuple(sorted({"/".join(record.source) for record in own}))
            last = agent_records.latest(record.reported_until for record in own)
            self.agents.append(agent_records.Agent(agent, read, last, versions.get(agent)))
        known = {agent.agent: agent.sources for agent in self.agents}
        since = self.now - self.late
        working = [
            agent for agent in self.agents if agent.reported_until and agent.reported_until >= since
        ]
        self._add(agents.versions(working, self.version))
        self._add(agents.differing(agents.skews(commits), len(versions), known))

    def _check_gold(self, reported: list[agent_records.FamilyRecord]) -> None:
        gold = set(map(self._state, _OF_GOLD))
        if "older" in gold:
            self._add([_OLDER_GOLD])
            return
        with self._unknown_on_error(tables.PROGRESS):
            backlog = table_health.load_backlog(self.location, self._open(tables.RUNS), self.since)
            self._add(table_health.behind(backlog, self.now, self.days))
        if "readable" in gold:  # even if gold/progress is lost
            self._check_gold_tables(reported)

    def _state(self, table: Table) -> Literal["older", "readable", "missing"]:
        """Return whether an older version wrote a table of gold, or this version can read it."""
        try:
            self._open(table)
        except errors.OlderGoldError:
            return "older"
        except errors.LakehouseError:
            return "missing"
        return "readable"

    def _check_gold_tables(self, reported: list[agent_records.FamilyRecord]) -> None:
        noted: Mapping[str, Noted] = {}
        with self._unknown_on_error(tables.PROGRESS):
            noted = table_health.known_tables(self.location)
        for table in tables.GOLD:
            with self._unknown_on_error(table):
                delta = self._open(table)
                self._add(table_health.gold_shape(table, delta))
                self._check_health(table, delta)
                self._add(table_health.replaced(table, delta, noted))
                self._add(table_health.incomplete(table, delta))
        for table in tables.ROLLUP_STATE:
            with suppress(errors.LakehouseError):  # rollups create them when they need them
                self._add(table_health.unknown_columns(table, self._open(table)))
                self._check_files(table, self._open(table))
        with self._unknown_on_error(tables.REJECTED):
            dates = table_health.rejected_dates(self._open(tables.PROGRESS), self.since)
            found = table_health.rejected(self._open(tables.REJECTED), dates, self.since, self.days)
            self._add(found)
        with self._unknown_on_error(tables.SUBJECTS):
            known = table_health.known_sources(self._open(tables.SUBJECTS))
            within = dt.timedelta(days=self.days)
            self._add(sources.unwatched(known, reported, self.now, within))


_OF_GOLD: Final = (tables.PROGRESS, tables.SUBJECTS, tables.COVERAGE)
"""Tables of every rollup; at least one of them normally survives a loss."""

_OLDER_GOLD: Final = finding(
    "schema", "gold", "an older version wrote it with other column names",
    "stop rollups of that version, then run jmxlake upgrade LAKE", "warning",
)  # fmt: skip
_GOLD_SKIPPED: Final = finding(
    "unknown", "gold", "gold was not checked (--gold none)",
    "check gold/progress, which contains the position of the rollup", "info",
)  # fmt: skip
