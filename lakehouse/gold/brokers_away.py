"""When brokers were away: they refused, were down, did not answer, or were restarted."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

from lakehouse.core.spans import touching
from lakehouse.engines.engine import Engine, ask
from lakehouse.engines.gold_reader import is_one_of
from lakehouse.engines.relation import Relation
from lakehouse.tables.source_names import has_role

NEAR_US: Final = 30_000_000
"""Spans of a broker are joined across gaps up to this."""

ROLLING_US: Final = 600_000_000
"""Restarts of different brokers are a rolling restart across gaps up to this."""

_IS_BROKER: Final = has_role("r.source", "broker")
_PROVEN: Final = ("down", "refused")
"""Outcomes that prove in one attempt that nothing listened."""

_SILENT: Final = ("timeout", "error")
"""Outcomes that prove it only after several attempts."""

_LEAST_INTERVALS: Final = 2.5
"""Scrape intervals without an answer from which a broker counts as away."""


class Away(NamedTuple):
    """A span in which a broker did not answer; instants in microseconds.

    Attributes:
        is_restart: Its process was down, or a new process had started by the end.
        error: The error of the first failed attempt.
    """

    source: str
    start: int
    end: int
    is_restart: bool
    error: str | None = None


def read(
    engine: Engine, readings: Relation, changes: Relation | None, families: Collection[str]
) -> list[Away]:
    """Return when brokers were away, oldest first.

    A broker that answers another family meanwhile is not away.

    Args:
        engine: The engine.
        readings: Rows of gold/readings of a cluster.
        changes: Rows of bronze/events of it; None: they are not known.
        families: Families read from the broker's own JVM. For families of the Admin API any broker
            may answer.
    """
    of_jvm = sorted(families)
    answered = (
        "SELECT 1 FROM {readings} o WHERE o.source = r.source AND o.outcome = 'ok' AND "
        f"{is_one_of('o.family', of_jvm)} AND "
        "least(o.ended_at, r.ended_at) - greatest(o.started_at, r.started_at) > "
        "greatest(coalesce(o.interval_us, 0), coalesce(r.interval_us, 0))"
    )
    failures = ask(
        engine,
        "SELECT DISTINCT r.source, r.started_at, r.ended_at, r.outcome, r.error, "
        "coalesce(r.interval_us, 0) AS interval_us FROM {readings} r "
        f"WHERE {_IS_BROKER} AND ({is_one_of('r.outcome', _PROVEN)} OR "
        f"({is_one_of('r.outcome', _SILENT)} AND {is_one_of('r.family', of_jvm)} "
        f"AND NOT EXISTS ({answered})))",
        readings=readings,
    )
    return away(failures, () if changes is None else _restarts(engine, changes))


def _restarts(engine: Engine, changes: Relation) -> list[tuple[str, int]]:
    """Return each restart of a broker: the start of its JVM, or the time of detection."""
    rows = ask(
        engine,
        "SELECT DISTINCT r.source, r.new, r.at FROM {changes} r "
        f"WHERE r.kind = 'source_restart' AND {_IS_BROKER}",
        changes=changes,
    )
    return [(source, int(new) if str(new).isdecimal() else at) for source, new, at in rows]


def away(
    failures: Iterable[tuple[Any, ...]],
    restarts: Iterable[tuple[str, int]],
) -> list[Away]:
    """Return spans of failures and restarts, joined by broker.

    Args:
        failures: Source, start, end, outcome, error and interval of attempts.
        restarts: Source, and when its process was started.
    """
    by_source: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for source, *rest in failures:
        by_source[source].append(tuple(rest))
    for source, at in restarts:
        by_source[source].append((at, at, "restart", None, 0))
    found = []
    for source, spans in by_source.items():
        failed = touching(sorted(spans, key=_span), _span)
        certain = [row for group in failed if _is_away(group) for row in group]
        near = touching(certain, lambda row: (row[0], row[1] + NEAR_US))
        found += [_joined(source, group) for group in near]
    return sorted(found, key=lambda one: (one.start, one.source))


def _span(row: tuple[Any, ...]) -> tuple[int, int]:
    return row[0], row[1]


def _is_away(rows: Sequence[tuple[Any, ...]]) -> bool:
    """Return whether failures without a break prove that nothing answered."""
    if any(row[2] not in _SILENT for row in rows):
        return True
    silent_us: int = max(row[1] for row in rows) - rows[0][0]
    interval_us: int = max(row[4] for row in rows)
    return silent_us >= _LEAST_INTERVALS * interval_us


def _joined(source: str, rows: Sequence[tuple[Any, ...]]) -> Away:
    is_restart = any(row[2] in {"down", "restart"} for row in rows)
    start, end = rows[0][0], max(row[1] for row in rows)
    return Away(source, start, end, is_restart, next((row[3] for row in rows if row[3]), None))


def rolling(found: Iterable[Away]) -> list[list[Away]]:
    """Return the restarts of brokers one after the other, oldest first: two brokers or more."""
    ordered = sorted(one for one in found if one.is_restart)
    ordered.sort(key=lambda one: (one.start, one.source))
    groups = touching(ordered, lambda one: (one.start, one.end + ROLLING_US))
    return [group for group in groups if _is_in_turn(group)]


def _is_in_turn(group: Sequence[Away]) -> bool:
    """Return whether several brokers restarted, not all at the same time."""
    together = max(one.start for one in group) < min(one.end for one in group)
    return len({one.source for one in group}) > 1 and not together
