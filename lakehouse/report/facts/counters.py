"""Increases of counters over a period, with bounds.

The reading after an increase shows it. The first reading of a period may show counts of before, and
the first one after the period shows the last counts of it: the low bound leaves out the windows of
first readings, the high bound adds the window after the period. Where counts may be lost (see
``slo.uncounted``) there is no high bound: the figure is "at least".
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from math import fsum
from operator import itemgetter
from typing import Final, TypeVar

from lakehouse import tables
from lakehouse.core.metrics import families
from lakehouse.core.periods import HOUR_US
from lakehouse.core.spans import Span, length, without
from lakehouse.engines.gold_reader import Row, is_one_of
from lakehouse.report.facts.fields import NONE, Bounds, Unread, total
from lakehouse.report.facts.gold import Gold, Sums, by_subject
from lakehouse.slo import attainment
from lakehouse.slo.uncounted import Uncounted
from lakehouse.tables.source_names import role_of

BROKERS: Final = ("broker", "cluster")
"""Roles of the sources that report partitions. ``cluster``: a cluster read as a whole."""

CONTROLLERS: Final = ("controller",)
K = TypeVar("K", bound=Hashable)


def unread(gold: Gold, metric: str, roles: tuple[str, ...] = BROKERS) -> dict[str, list[Span]]:
    """When a metric's family was not read, by source; empty where no agent reads it."""
    stretches: dict[str, list[Span]] = {}
    for row in gold.ask(
        "SELECT r.source, r.outcome, r.started_at, r.ended_at FROM {rows} r "
        f"WHERE {is_one_of('r.family', sorted(families(metric)))}",
        rows=gold.whole(tables.READINGS),
    ):
        own = stretches.setdefault(row["source"], [])
        if row["outcome"] == "ok":
            own.append((row["started_at"], row["ended_at"]))
    if not stretches:
        return {}
    start, end = gold.period.span
    return {
        source: without((max(start, first), last), stretches.get(source, []))
        for one in attainment.lifetimes(gold.subjects, min(end, gold.now_us))
        if role_of(source := str(one.subject.source)) in roles
        for first, last in one.spans
    }


def unread_times(gold: Gold, *metrics: str, roles: tuple[str, ...] = BROKERS) -> dict[str, Unread]:
    """The unread time of each source, of the first of some metrics that any agent reads."""
    start, end = gold.period.span
    lived: defaultdict[str, int] = defaultdict(int)
    for one in attainment.lifetimes(gold.subjects, min(end, gold.now_us)):
        lived[str(one.subject.source)] += length(
            (max(start, first), last) for first, last in one.spans
        )
    for metric in metrics:
        if away := unread(gold, metric, roles):
            times = {source: length(spans) for source, spans in away.items()}
            return {one: Unread(us, 0 < us == lived[one]) for one, us in times.items()}
    return {}


def uncounted(gold: Gold, metric: str, source: str | None = None) -> list[Uncounted]:
    """The hidden time of a counter: of a source, or of every source that has the counter."""
    found = gold.uncounted_time.of(gold.families(metric))
    return [own for (_, name), own in found.items() if source in {None, name}]


def hidden_spans(gold: Gold, metric: str) -> list[Span]:
    """When a counter of any source may have risen by counts that no reading shows."""
    return [span for own in uncounted(gold, metric) for span in own.spans]


def nothing(gold: Gold, metric: str, source: str | None = None) -> Bounds:
    """The increase of a counter that was read and has no row: none, or at least none."""
    hides = any(own.spans for own in uncounted(gold, metric, source))
    return NONE._replace(high=None) if hides else NONE


def counted(
    gold: Gold, table: tables.Table, metrics: Sequence[str], key: Callable[[Row], K]
) -> dict[K, Bounds]:
    """Increases of counters and their bounds, summed by a key of their rows."""
    parts: defaultdict[K, list[Bounds]] = defaultdict(list)
    for row, bounds in _bounds(gold, table, metrics):
        parts[key(row)].append(bounds)
    return {one: total(own) for one, own in parts.items()}


def with_bounds(gold: Gold, table: tables.Table) -> Sums:
    """Sums by subject and metric; those of counters have ``increase_low`` and ``increase_high``.

    ``no_increase`` is what a counter of the same family and source without a row rose by. A counter
    that only rose just after the period has a row as well.
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
    """Every row of a counter in the period or just after it, and the bounds of its increase."""
    start, end = gold.period.span
    # Gold keeps finest windows for a time only.
    kept = gold.rows.are_kept(gold.period.start.date())
    size = gold.window_seconds * 1_000_000 if kept else HOUR_US
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
