"""Lookups in the facts of a report: values, rows, what was read, what is too short to observe."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from lakehouse.core.metrics import families, roles_of
from lakehouse.report.figures import Facts, Row
from lakehouse.tables import MAX_GAP_INTERVALS
from lakehouse.tables.source_names import role_of

_OF_GROUP: Final = ("group", "team", "owner", "tier")


def value_at(row: Any, path: str) -> Any:
    """The value at a dotted path, such as ``copy.lagging_us``; None where there is none."""
    for key in path.split("."):
        row = (row or {}).get(key)
    return row


def rows_at(facts: Row, path: str) -> Iterator[Row]:
    """The rows at a dotted path; a row of a list within rows has the values of these, too."""
    key, _, rest = path.partition(".")
    found = facts.get(key) or ()
    if isinstance(found, Mapping):
        yield from rows_at(found, rest)
        return
    for row in found:
        yield from ({**row, **one} for one in rows_at(row, rest)) if rest else (row,)


def group_totals(partitions: Iterable[Row]) -> list[dict[str, Any]]:
    """The offsets that each group lost in all its partitions, most first.

    Args:
        partitions: Rows of ``lost_before_read.groups``. An upper bound that one of a group's
            partitions lacks is not known of the group; its unknown time is the longest of them.
    """
    by_group: dict[Any, list[Row]] = {}
    for row in partitions:
        by_group.setdefault(row["group"], []).append(row)
    totals = [
        {
            **{key: row for key, row in rows[0].items() if key in _OF_GROUP},
            "topics": len({row.get("topic") for row in rows}),
            "partitions": len(rows),
            "offsets_low": _sum(
                [low for row in rows if (low := row.get("offsets_low")) is not None]
            ),
            "offsets_high": _sum([row.get("offsets_high") for row in rows]),
            "unknown_us": _most(row.get("unknown_us") for row in rows),
        }
        for rows in by_group.values()
    ]
    return sorted(totals, key=_most_lost)


def _most_lost(row: Row) -> tuple[float, str]:
    return -(row["offsets_high"] or row["offsets_low"] or 0), str(row["group"])


def _sum(values: Sequence[float | None]) -> float | None:
    return None if None in values or not values else sum(filter(None, values))


def _most(values: Iterable[int | None]) -> int | None:
    found = list(values)
    return None if None in found else max(value for value in found if value is not None)


def nothing_seen(facts: Facts, metric: str | None = None) -> bool:
    """Whether no family that has this metric was read; None: no family at all.

    A family that no agent reads is in no row of the coverage, and counts as not read.
    """
    if metric is None:
        return not value_at(facts, "coverage.observed_us")
    sources, read_with = value_at(facts, "coverage.sources") or (), families(metric)
    return not any(row.get("observed_us") for row in sources if row.get("family") in read_with)


def is_out_of_reach(facts: Facts, metric: str) -> bool:
    """Whether it is in beans alone, and every source is a cluster whose beans no agent reads."""
    sources = [str(row.get("source")) for row in value_at(facts, "coverage.sources") or ()]
    of_admin = bool(sources) and all(role_of(one) == "cluster" for one in sources)
    return of_admin and "cluster" not in roles_of(metric)


def floor_us(interval_us: int, slowest_us: int) -> int:
    """The longest time between two readings that is not reported as unknown, microseconds.

    Usually it is one interval. After a restart of the agent, or with late answers, it is more: an
    answer covers ``MAX_GAP_INTERVALS`` intervals at most, and a value that is read first in one
    answer may be read last in the next.

    Args:
        interval_us: Time between scrapes.
        slowest_us: Duration of the slowest answer.
    """
    return round(MAX_GAP_INTERVALS * interval_us) + 2 * slowest_us


def longest_floor_us(read: Iterable[tuple[int | None, int | None]]) -> int | None:
    """The longest of some pairs of an interval and a slowest answer; None: nothing was read."""
    return max((floor_us(us, slowest or 0) for us, slowest in read if us), default=None)
