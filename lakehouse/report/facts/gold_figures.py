"""Figures of gold for fields of records (``Means(text, Max(METRIC))``), and counters with bounds.

Each class of figures has one method, ``figure``. It takes the sums of one subject by metric. The
classes are not tuples, because typing treats two equal annotations as one, and tuples of different
types can be equal.

The reading after an increase of a counter shows it. The first reading of a period can contain
counts from before the period, and the first reading after the period contains its last counts. So
the low bound leaves out the windows of first readings, and the high bound adds the window after the
period. Where counts can be lost (see ``slo.uncounted``) there is no high bound: "at
least".
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from operator import itemgetter
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

from lakehouse import tables
from lakehouse.core.metrics import families, known, roles_of
from lakehouse.core.periods import Span, length, without
from lakehouse.engines import gold_reader
from lakehouse.engines.gold_reader import Row, is_same
from lakehouse.report.facts.fields import NONE, Bounds, Known, Metrics, fields_of, total
from lakehouse.report.facts.gold import Gold, Sums, by_subject
from lakehouse.slo import attainment
from lakehouse.slo.uncounted import Uncounted
from lakehouse.tables.agent_names import role_of


@dataclass(frozen=True, slots=True)
class Stored:
    """A column of gold as it is."""

    metric: str
    column: str

    def figure(self, rows: Metrics) -> Known:
        """Return the value of the column; None without it."""
        found: Known = (rows.get(self.metric) or {}).get(self.column)
        return found


@dataclass(frozen=True, slots=True)
class _OfColumn:
    """A figure that one column of gold has."""

    metric: str
    column: ClassVar[str]

    def figure(self, rows: Metrics) -> Known:
        """Return it; None: the gauge was not read."""
        return Stored(self.metric, self.column).figure(rows)


@dataclass(frozen=True, slots=True)
class Max(_OfColumn):
    """The maximum of a gauge."""

    column: ClassVar[str] = "value_max"


@dataclass(frozen=True, slots=True)
class Min(_OfColumn):
    """The minimum of a gauge."""

    column: ClassVar[str] = "value_min"


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of a gauge over the time in which it was read, or was above zero."""

    metric: str
    above_zero: bool = False

    def figure(self, rows: Metrics) -> Known:
        """Return it; None without such time."""
        row = rows.get(self.metric) or {}
        return per_second(row, "series_affected_us" if self.above_zero else "series_seen_us")


@dataclass(frozen=True, slots=True)
class Sum(_OfColumn):
    """A gauge summed over time, value times seconds: partition-seconds, bytes of a rate."""

    column: ClassVar[str] = "value_seconds"


@dataclass(frozen=True, slots=True)
class Time:
    """The time in which a gauge was above zero, summed over series."""

    metric: str
    stem: ClassVar[str] = "series_affected"

    def figure(self, rows: Metrics) -> Bounds:
        """Return it with its bounds, microseconds."""
        return duration(rows.get(self.metric) or {}, self.stem)


@dataclass(frozen=True, slots=True)
class AnyTime(Time):
    """The time in which a gauge of any series was above zero."""

    stem: ClassVar[str] = "affected"


@dataclass(frozen=True, slots=True)
class HeldBack(Time):
    """The time in which a gauge of waits was above zero."""

    def figure(self, rows: Metrics) -> Bounds:
        """Return it with its bounds, microseconds.

        Versions that lose the bean of waits after an hour without one (KAFKA-19484) have no upper
        bound. Without the bean there was no wait, or this Kafka has none.
        """
        held = Time(self.metric).figure(rows)
        return held._replace(high=None) if rows.get(self.metric, {}).get("known_wrong") else held


@dataclass(frozen=True, slots=True)
class Rise:
    """The increase of a counter, for which rows need its bounds (``counters.with_bounds``).

    Attributes:
        metric: The counter.
        beside: A metric of the same scrapes: without a row of a counter the increase is 0 if this
            metric was read. None: unknown.
        more: Further counters, whose increases are added.
    """

    metric: str
    beside: str | None = None
    more: tuple[str, ...] = ()

    def figure(self, rows: Metrics) -> Bounds:
        """Return the increase with its bounds."""
        if self.beside is None:
            return _increase(rows, self.metric)
        counters = (self.metric, *self.more)
        known = [_increase(rows, name) for name in counters if rows.get(name)]
        if not (known or rows.get(self.beside)):
            return Bounds()
        nothing = rows.get(self.beside, {}).get("no_increase", NONE)
        return total(known if len(known) == len(counters) else [nothing, *known])


@dataclass(frozen=True, slots=True)
class Increase:
    """The increase of a counter without its bounds."""

    metric: str

    def figure(self, rows: Metrics) -> Known:
        """Return it; None: the counter was not read."""
        return Stored(self.metric, "increase").figure(rows)


def _increase(rows: Metrics, metric: str) -> Bounds:
    row = rows.get(metric) or {}
    return Bounds(*(row.get(f"increase{bound}") for bound in ("", "_low", "_high")))


BROKERS: Final = ("broker", "cluster")
"""Roles of the sources that report partitions. ``cluster``: a cluster read as a whole."""

CONTROLLERS: Final = ("controller",)
K = TypeVar("K", bound=Hashable)


def unread(gold: Gold, metric: str, roles: tuple[str, ...] = BROKERS) -> dict[str, list[Span]]:
    """Return the time in which a metric was not read, by source; empty: its family never was.

    That is the time in which its family was not read, and in which a counter had vanished.
    """
    stretches = gold.read_times(families(metric))
    if not stretches:
        return {}
    start, end = gold.period.span
    for (_, source), spans in gold.uncounted_time.vanished(metric, families(metric)).items():
        own = (part for one in stretches[source] for part in without(one, spans))
        stretches |= {source: list(own)}
    return {
        source: without((max(start, first), last), stretches.get(source, []))
        for one in attainment.lifetimes(gold.subjects, min(end, gold.now_us))
        if role_of(source := str(one.subject.source)) in roles
        for first, last in one.spans
    }


class Unread(NamedTuple):
    """Unread time of a source, microseconds; ``is_whole``: it was never read."""

    us: int
    is_whole: bool


def unread_times(gold: Gold, *metrics: str, roles: tuple[str, ...] = BROKERS) -> dict[str, Unread]:
    """Return the unread time of each source, for the first of some metrics with an agent.

    Time in which a source hid a gauge with one series per source is unread as well, if any source
    reported it.
    """
    lived = _lived(gold)
    for metric in metrics:
        if away := unread(gold, metric, roles):
            times = {source: length(spans) for source, spans in away.items()}
            whole = {source for source, us in times.items() if 0 < us == lived[source]}
            if _is_of_source(metric) and (seen := seen_us(gold, metric)):
                own = {name: away[name] for name in away if role_of(name) in roles_of(metric)}
                times |= _unseen(own, lived, [seen])
            return {source: Unread(us, source in whole) for source, us in times.items()}
    return {}


def _is_of_source(metric: str) -> bool:
    """Return True for a shipped gauge with one series per source."""
    one = known().get(metric)
    return one is not None and (one.kind, one.level) == ("gauge", "source")


def _lived(gold: Gold) -> dict[str, int]:
    """Return how long each source existed in the period, microseconds."""
    start, end = gold.period.span
    lived: defaultdict[str, int] = defaultdict(int)
    for one in attainment.lifetimes(gold.subjects, min(end, gold.now_us)):
        lived[str(one.subject.source)] += length(
            (max(start, first), last) for first, last in one.spans
        )
    return lived


def unseen_times(gold: Gold, *metrics: str) -> dict[str, int]:
    """Return the time without a value of any of some metrics of a family, by source, microseconds.

    A source can hide metrics of a family that is read. If a metric has several series, the time
    without any of them counts. Time in which one of several counters had vanished counts as well.
    Empty: the family was never read.
    """
    seen, lived = [seen_us(gold, metric) for metric in metrics], _lived(gold)
    roles = tuple(roles_of(metrics[0])) or BROKERS
    found = [_unseen(unread(gold, metric, roles), lived, seen) for metric in metrics]
    return {source: max(one[source] for one in found) for source in found[0]}


def _unseen(
    away: Mapping[str, Sequence[Span]],
    lived: Mapping[str, int],
    seen: Sequence[Mapping[str, int]],
) -> dict[str, int]:
    return {
        source: max(length(spans), lived[source] - max(own.get(source, 0) for own in seen))
        for source, spans in away.items()
    }


def seen_us(
    gold: Gold, metric: str, table: tables.Table = tables.SOURCES, key: str = "source"
) -> dict[str, int]:
    """Return the time with a value of a metric, by source or another key of a table, microseconds.

    A metric with several series has at most that time.
    """
    size = gold.rows.finest_us(gold.period)
    rows = gold.ask(
        f"SELECT r.{key}, CAST(sum(least(r.series_seen_us, {size})) AS BIGINT) AS us "
        f"FROM {{rows}} r WHERE {is_same('r.metric', metric)} GROUP BY r.{key}",
        rows=gold.of_length(table, size),
    )
    return {row[key]: row["us"] for row in rows}


def uncounted(gold: Gold, metric: str, source: str | None = None) -> list[Uncounted]:
    """Return the hidden time of a counter, for a source or every source with the counter."""
    found = gold.uncounted_time.of(metric, gold.families(metric))
    return [own for (_, name), own in found.items() if source in {None, name}]


def hidden_spans(gold: Gold, metric: str) -> list[Span]:
    """Return the spans in which a counter of any source may have hidden counts."""
    return [span for own in uncounted(gold, metric) for span in own.spans]


def nothing(gold: Gold, metric: str, source: str | None = None) -> Bounds:
    """Return the increase of a counter that was read and has no row: 0, or at least 0."""
    hides = any(own.spans for own in uncounted(gold, metric, source))
    return NONE._replace(high=None) if hides else NONE


def counted(
    gold: Gold, table: tables.Table, metrics: Sequence[str], key: Callable[[Row], K]
) -> dict[K, Bounds]:
    """Return increases of counters and their bounds, summed by a key of their rows."""
    parts: defaultdict[K, list[Bounds]] = defaultdict(list)
    for row, bounds in _bounds(gold, table, metrics):
        parts[key(row)].append(bounds)
    return {one: total(own) for one, own in parts.items()}


def with_bounds(gold: Gold, table: tables.Table) -> Sums:
    """Return sums by subject and metric; counters have ``increase_low`` and ``increase_high``.

    ``no_increase`` is the increase of a counter of the same family and source without a row. A
    counter that rose only just after the period also has a row.
    """
    key = itemgetter(*table.keys[1:])
    sums = gold.sums(table)
    counters = {(row["metric"], row.get("source")) for row in sums}
    none = {one: nothing(gold, *one) for one in counters}
    rows = {key(row): row | {"no_increase": none[row["metric"], row.get("source")]} for row in sums}
    for row, (value, low, high) in _bounds(gold, table):
        own = rows.get(key(row), row)
        rows[key(row)] = own | {"increase": value, "increase_low": low, "increase_high": high}
    return by_subject(table, list(rows.values()))


def _bounds(
    gold: Gold, table: tables.Table, metrics: Sequence[str] = ()
) -> list[tuple[Row, Bounds]]:
    """Return every row of a counter in or just after the period, with its increase's bounds."""
    start, end = gold.period.span
    size = gold.rows.finest_us(gold.period)
    key = itemgetter(*table.keys[1:])

    def of_window(at: int) -> Mapping[tuple[str, ...], Row]:
        rows = gold.window(at, size).sums(table, metrics)
        return {key(row): row for row in rows if row["increase"] is not None}

    whole = {key(row): row for row in gold.sums(table, metrics) if row["increase"] is not None}
    after = of_window(end)
    windows = {start: of_window(start)}
    found, lacks_hours = [], gold.is_incomplete(table)
    for one, row in {**after, **whole}.items():
        value = whole[one]["increase"] if one in whole else 0.0
        hidden = uncounted(gold, row["metric"], row.get("source"))
        late = (own.first_us for own in hidden if own.first_us is not None)
        firsts = {start, *(at - (at - start) % size for at in late)}
        for at in firsts - windows.keys():
            windows[at] = of_window(at)
        low = value - fsum(windows[at].get(one, {}).get("increase", 0.0) for at in firsts)
        more = after[one]["increase"] if one in after else 0.0
        is_open = lacks_hours or not hidden or any(own.spans for own in hidden)
        found.append((row, Bounds(value, max(0.0, low), None if is_open else value + more)))
    return found


R = TypeVar("R")


def figures(record: Callable[..., Any], rows: Metrics) -> dict[str, Any]:
    """Return the fields of a record whose ``Means`` names a figure of gold.

    Args:
        record: A named tuple.
        rows: Sums of gold of one subject, by metric.
    """
    return {
        name: one.means.of.figure(rows)
        for name, one in fields_of(record).items()
        if one.means.of is not None
    }


def of_sources(
    record: Callable[..., R],
    sums: Mapping[str, Metrics],
    *metrics: str,
    unread: Mapping[str, Unread] | None = None,
) -> list[R]:
    """Return a record of every source that has one of some metrics, in the order of names.

    Args:
        record: A named tuple whose first field is the source, see ``figures`` for the others.
        sums: Sums of gold/brokers, by source and metric.
        metrics: The metrics; none: any.
        unread: Unread time by source, for a record that ends with ``unknown_us``. A source that was
            never read has a record without figures, if any other source has a record.
    """
    found = {name: own for name, own in sums.items() if any(one in own for one in metrics or own)}
    if unread is None:
        return [record(name, **figures(record, own)) for name, own in sorted(found.items())]
    return [
        record(name, **figures(record, found.get(name, {})), unknown_us=unknown_us(unread, name))
        for name in listed(found, unread)
    ]


def listed(found: Iterable[str], unread: Mapping[str, Unread]) -> list[str]:
    """Return the sources of a table in order: sources with figures, and sources never read.

    Args:
        found: Sources with figures; without any of them the table is empty.
        unread: Unread time by source.
    """
    names = set(found)
    return sorted(names | {name for name, one in unread.items() if one.is_whole} if names else ())


def unknown_us(unread: Mapping[str, Unread], source: str) -> int | None:
    """Return the unknown time of a source, microseconds; None: not known."""
    return unread[source].us if source in unread else None


def duration(row: Mapping[str, Any], stem: str, absent: int | None = None) -> Bounds:
    """Return the duration ``stem`` of a row and its bounds, microseconds.

    Args:
        row: A row of sums.
        stem: ``affected`` for a union over series, ``series_affected`` for a sum over them.
        absent: The value for a row without this duration.
    """
    return Bounds(*(row.get(f"{stem}{bound}_us", absent) for bound in ("", "_low", "_high")))


def per_second(row: Mapping[str, Any], time: str) -> float | None:
    """Return the mean of a value over the time ``time``; None without such time."""
    seconds = (row.get(time) or 0) / 1e6
    return row["value_seconds"] / seconds if seconds else None


def seconds_mean(row: gold_reader.Row) -> float:
    """Return the mean of a total while any source reported it; 0 without such time.

    Brokers that report in turns are several series in the time of a single series. A total is at
    most ``max_total``, so the sum needs at least ``value_seconds / max_total`` seconds.
    """
    total = row["value_seconds"] or 0.0
    seconds = (row["series_seen_us"] or 0) / 1e6 / (row["series"] or 1)
    if row["max_total"]:
        seconds = max(seconds, total / row["max_total"])
    return total / seconds if seconds else 0.0
