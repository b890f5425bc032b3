"""A rollup in stretches: what is recomputed at once, so that a year is not one pass.

A stretch is a product of clusters and hours, of whole dates where they fit. After each of them
its hours are as good as at the end; a rollup that is killed goes on with the next.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from lakehouse.units import Pair, Units

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Iterator, Mapping, Set

    Hours = frozenset[dt.datetime]

_SPARE: Final = 12
"""Planning a stretch costs as much as recomputing so many hours that nothing new touches."""


class Stretch(NamedTuple):
    """What is recomputed at once, and how many rows of bronze are known to lie in it."""

    units: Units
    rows: int


def stretches(
    rows: Mapping[Pair, int], barred: Set[Pair] = frozenset(), most_rows: int = 5_000_000
) -> list[Stretch]:
    """Stretches that hold every pair, in the order of time.

    Args:
        rows: Hours of clusters that are to be recomputed, and rows known of each.
        barred: Hours of clusters that must not be recomputed.
        most_rows: A stretch has no more rows, unless it is a single hour.
    """
    found = [
        Stretch(Units(clusters, hours), _sum(rows, clusters, hours))
        for clusters, wanted in _groups(rows.keys(), barred)
        for hours in _parts(rows, clusters, sorted(wanted), most_rows)
    ]
    return sorted(found, key=lambda one: (one.units.hours, one.units.clusters))


def _groups(pairs: Iterable[Pair], barred: Set[Pair]) -> list[tuple[tuple[str, ...], Hours]]:
    """Clusters that are recomputed together, with the hours of any of them."""
    groups: list[tuple[tuple[str, ...], Hours]] = []
    by_cluster = groupby(sorted(pairs), key=lambda pair: pair.cluster)
    wanted = [(cluster, frozenset(pair.hour for pair in of_it)) for cluster, of_it in by_cluster]
    for cluster, hours in sorted(wanted, key=lambda one: -len(one[1])):
        for number, (clusters, others) in enumerate(groups):
            both, names = others | hours, (*clusters, cluster)
            needless = len(both) * len(names) - len(others) * len(clusters) - len(hours)
            if needless <= max(_SPARE, len(hours)) and barred.isdisjoint(
                Pair(name, hour) for name in names for hour in both
            ):
                groups[number] = (names, both)
                break
        else:
            groups.append(((cluster,), hours))
    return [(tuple(sorted(clusters)), hours) for clusters, hours in groups]


def _parts(
    rows: Mapping[Pair, int], clusters: tuple[str, ...], hours: list[dt.datetime], most: int
) -> Iterator[tuple[dt.datetime, ...]]:
    """Hours in order, cut where a date or, if need be, an hour begins."""
    part: list[dt.datetime] = []
    so_far = 0
    for _, of_date in groupby(hours, key=lambda hour: hour.date()):
        date = list(of_date)
        size = _sum(rows, clusters, date)
        pieces = [date] if size <= most else [[hour] for hour in date]
        for piece in pieces:
            size = _sum(rows, clusters, piece)
            if part and so_far + size > most:
                yield tuple(part)
                part, so_far = [], 0
            part += piece
            so_far += size
    yield tuple(part)


def _sum(rows: Mapping[Pair, int], clusters: Iterable[str], hours: Iterable[dt.datetime]) -> int:
    chosen = list(clusters)
    return sum(rows.get(Pair(cluster, hour), 0) for hour in hours for cluster in chosen)
