"""Time in which counters of a source may have risen by counts that no reading shows.

An agent computes a counter's increase from two readings of one process. A gap between two such
readings hides nothing: the second reading contains the increase, and only its instant is unknown.
Counts are lost in these times:

- From the last reading of a process to its end, and in a gap in which the process was replaced.
- In a gap, if another agent reads the source next, or an agent with a damaged spool. The first
  reading is then only a baseline.

The reading that shows the counts of a gap at an edge of the period is outside the period, so such a
gap hides counts as well. A restart between two scrapes causes an event, but not a gap.

Kafka removes a counter of a broker with its process, and a topic's counter when the broker stops
leading the topic. If a source is read and does not have a series of a counter that its process had,
the counter has vanished: the broker hides it, or its last counts are lost. A counter that was
hidden from the start of a process looks like one without events.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from lakehouse import tables
from lakehouse.core.metrics import known
from lakehouse.core.periods import HOUR_US, Period, Span, overlap, union, without
from lakehouse.engines.gold_reader import GoldRows, Row
from lakehouse.engines.relation import is_one_of, select
from lakehouse.errors import TableNotFoundError
from lakehouse.slo.sli_query import Lifetime
from lakehouse.tables.agent_names import role_of
from lakehouse.tables.bronze import MAX_GAP_INTERVALS

RESTARTED: Final = "source_restart"
_BASELINE_LOST: Final = ("spool_damaged", "spool_restored", "journal_unreadable")
"""Events that can leave an agent with an older baseline, or with none."""

_COUNTED: Final = ("source", "topic")
"""Levels of counters that a process keeps."""

_OF_TOPICS: Final = ("broker", "cluster")
"""Roles of sources that count for topics, even if no agent ever tried to read the family."""

Source = tuple[str, str]
"""Cluster and name of a source."""


class Stretch(NamedTuple):
    """Successful scrapes; the last reading is at most ``reach_us`` before the end."""

    start: int
    end: int
    reach_us: int = 0


class Uncounted(NamedTuple):
    """The hidden time of one source, in order.

    Attributes:
        spans: Time in which counters may have risen by counts that no reading shows.
        covered: The part of it that scrapes cover, from a last reading to the next attempt; without
            what a reading after ``life`` may still show.
        first_us: First reading of the period, if a gap at its start ends there. Its increase may be
            from before the period.
    """

    spans: list[Span]
    covered: list[Span]
    first_us: int | None = None

    def within(self, period: Span) -> "Uncounted":
        """Return the part of it that is in a period."""
        spans, covered = (
            [one for own in each if (one := overlap(own, period))] for each in self[:2]
        )
        return Uncounted(spans, covered, self.first_us)


def hidden(
    life: Span,
    ok: Sequence[Stretch],
    broken: Sequence[Span],
    *,
    is_one_agent: bool,
    ends_open: bool,
) -> Uncounted:
    """Return the hidden time of a source in the part of a period in which it existed.

    Args:
        life: That part.
        ok: Time in which its family was read, in order.
        broken: Spans from the start of a new process, or the loss of a baseline, to its first
            reading.
        is_one_agent: Whether only one agent read it, which keeps its baseline through a gap.
        ends_open: Whether ``life`` ends without a later reading.
    """
    start, last = life
    gaps = without(life, [one[:2] for one in ok])
    spans = [
        (gap[0] - _reach_us(ok, gap[0]), gap[1])
        for gap in gaps
        if gap[0] <= start
        or gap[1] >= last
        or not is_one_agent
        or any(at[0] <= gap[1] and gap[0] - _reach_us(ok, gap[0]) <= at[1] for at in broken)
    ]
    spans += [(at[0] - _reach_us(ok, at[0]), at[1]) for at in broken]
    lost = union(one for span in spans if (one := overlap(span, life)))
    covered = [one for span in lost for own in ok if (one := overlap(span, own[:2]))]
    tail = [(last - max(1, _reach_us(ok, last)), last)] if ends_open else []
    joined = union([*lost, *(one for span in tail if (one := overlap(span, life)))])
    first_us = gaps[0][1] if gaps and gaps[0][0] <= start and gaps[0][1] < last else None
    return Uncounted(joined, union(covered), first_us)


def _reach_us(ok: Sequence[Stretch], at_us: int) -> int:
    """Return the greatest time from the last reading to an instant."""
    before = [one for one in ok if one.start < at_us]
    return min(before[-1].reach_us, at_us - before[-1].start) if before else 0


@dataclass(frozen=True)
class UncountedTime:
    """The hidden time of sources in a period.

    Attributes:
        gold: Rows of gold.
        clusters: The clusters.
        period: Whole windows.
        lifetimes: Active periods of subjects. Kinds other than sources are ignored.
    """

    gold: GoldRows
    clusters: Collection[str]
    period: Period
    lifetimes: Sequence[Lifetime]
    _known: dict[frozenset[str], Mapping[Source, Uncounted]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def of(self, metric: str, families: Collection[str]) -> Mapping[Source, Uncounted]:
        """Return the hidden time of a counter of every source that has counters of its families.

        Any of the families reads it. A source without such a reading is hidden for its whole life.
        """
        key = frozenset(families)
        if key not in self._known:
            self._known[key] = self._of(key)
        found = dict(self._known[key])
        for source, spans in self.vanished(metric, key).items():
            if own := found.get(source):
                lost, covered = (union([*one, *spans]) for one in own[:2])
                found[source] = own._replace(spans=lost, covered=covered)
        return found

    def vanished(self, metric: str, families: Collection[str]) -> Mapping[Source, list[Span]]:
        """Return the time in which a source was read and a counter had vanished, if any."""
        one = known().get(metric)
        if one is None or one.kind != "counter" or one.level not in _COUNTED:
            return {}
        found: defaultdict[Source, list[Span]] = defaultdict(list)
        ok = self._ok(frozenset(families)) if metric in self._last_series else {}
        for source, (last_us, seen_us), next_us in self._last_series.get(metric, ()):
            ends = [at[0] for at in self._broken.get(source, ()) if at[1] > last_us]
            gap = seen_us, min([next_us or self.period.span[1], *ends])
            parts = (overlap(gap, read[:2]) for read in ok.get(source, ()))
            found[source] += [part for part in parts if part]
        return {source: spans for source, spans in found.items() if spans}

    @cached_property
    def _last_series(self) -> Mapping[str, list[tuple[Source, Span, int | None]]]:
        """Source, last window with a series of a counter before one without, and next series."""
        size = self.gold.finest_us(self.period)
        rows = self.gold.hours if size == HOUR_US else self.gold.windows
        windows = select(
            "SELECT r.cluster, r.source, r.metric, r.window_start, lead(r.window_start) OVER "
            "(PARTITION BY r.cluster, r.source, r.metric ORDER BY r.window_start) AS next_us "
            f"FROM {{rows}} r WHERE {self._of_clusters} AND r.value_seconds IS NULL "
            "AND r.series_seen_us > 0",
            rows=rows(tables.SOURCES, self.period),
        )
        found: defaultdict[str, list[tuple[Source, Span, int | None]]] = defaultdict(list)
        for row in self.gold.ask(
            "SELECT r.* FROM {rows} r "
            f"WHERE r.next_us IS NULL OR r.next_us > r.window_start + {size}",
            rows=windows,
        ):
            source, start = (row["cluster"], row["source"]), row["window_start"]
            found[row["metric"]].append((source, (start, start + size), row["next_us"]))
        return found

    def _ok(self, families: frozenset[str]) -> Mapping[Source, list[Stretch]]:
        """Return the successful scrapes of any of some families, by source with any scrape."""
        ok: defaultdict[Source, list[Stretch]] = defaultdict(list)
        for row in self._readings:
            if row["family"] in families:
                stretches = ok[row["cluster"], row["source"]]
                if row["outcome"] == "ok":
                    reach_us = round(MAX_GAP_INTERVALS * (row["interval_us"] or 0))
                    stretches.append(Stretch(row["started_at"], row["ended_at"], reach_us))
        return ok

    def _of(self, families: frozenset[str]) -> Mapping[Source, Uncounted]:
        ok = self._ok(families)
        found = {}
        for subject, spans, has_ended in self.lifetimes if ok else ():
            source = (subject.cluster, str(subject.source))
            lived = [one for span in spans if (one := overlap(span, self.period.span))]
            if subject.kind != "source" or not lived:
                continue
            if source in ok or role_of(source[1]) in _OF_TOPICS:
                ends_open = has_ended or not any(
                    (*source, family) in self._read_after for family in families
                )
                life = (lived[0][0], lived[-1][1] if ends_open else self._to_after.span[1])
                own = hidden(
                    life, sorted(ok.get(source, ())), self._broken.get(source, ()),
                    is_one_agent=source in self._of_one_agent, ends_open=ends_open,
                )  # fmt: skip
                found[source] = own.within(self.period.span)
        return found

    @cached_property
    def _after(self) -> Period:
        """The window or hour whose readings show what was counted at the period's end."""
        end = self.period.span[1]
        return Period.of((end, end + self.gold.finest_us(self.period)))

    @cached_property
    def _to_after(self) -> Period:
        return Period(self.period.start, self._after.end)

    @cached_property
    def _readings(self) -> list[Row]:
        start, end = self._to_after.span
        hours = Period.of((start // HOUR_US * HOUR_US, end))
        return self._rows(
            "SELECT r.cluster, r.source, r.family, r.outcome, r.started_at, r.ended_at, "
            f"r.interval_us FROM {{rows}} r WHERE {self._of_clusters} AND r.ended_at > {start}",
            tables.READINGS,
            hours,
        )

    @cached_property
    def _read_after(self) -> set[tuple[str, str, str]]:
        rows = self.gold.ask(
            "SELECT DISTINCT r.cluster, r.source, r.family FROM {rows} r "
            f"WHERE {self._of_clusters} AND r.outcome = 'ok' AND r.scrapes > 0",
            rows=self.gold.whole(tables.COVERAGE, self._after),
        )
        return {(row["cluster"], row["source"], row["family"]) for row in rows}

    @cached_property
    def _broken(self) -> Mapping[Source, list[Span]]:
        """Spans in which processes were replaced or baselines lost, as agents detected."""
        broken: defaultdict[Source, list[Span]] = defaultdict(list)
        for row in self._rows(
            "SELECT r.cluster, r.source, r.kind, r.at, r.new FROM {rows} r "
            f"WHERE {self._of_clusters} AND {is_one_of('r.kind', (RESTARTED, *_BASELINE_LOST))}",
            tables.EVENTS,
        ):
            new = row["new"] or ""
            began = int(new) if row["kind"] == RESTARTED and new.isdecimal() else row["at"]
            broken[row["cluster"], row["source"]].append((min(began, row["at"]), row["at"] + 1))
        return {source: sorted(spans) for source, spans in broken.items()}

    @cached_property
    def _of_one_agent(self) -> set[Source]:
        """Sources that only one agent read. Without bronze there are none."""
        rows = self._rows(
            "SELECT r.cluster, r.source FROM {rows} r "
            f"WHERE {self._of_clusters} AND r.outcome = 'ok' "
            "GROUP BY r.cluster, r.source HAVING count(DISTINCT r.agent) = 1",
            tables.SCRAPES,
        )
        return {(row["cluster"], row["source"]) for row in rows}

    def _rows(self, sql: str, table: tables.Table, within: Period | None = None) -> list[Row]:
        """Return rows of a table; none in old lakes, or without access to bronze."""
        try:
            rows = self.gold.engine.rows(table, between=within or self._to_after)
        except TableNotFoundError:
            return []
        return self.gold.ask(sql, rows=rows)

    @property
    def _of_clusters(self) -> str:
        return is_one_of("r.cluster", sorted(self.clusters))
