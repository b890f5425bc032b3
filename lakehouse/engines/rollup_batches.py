"""Batches: hours of clusters that are recomputed and committed at once, in calls of the kernel.

A batch is a product of clusters and hours, of whole dates where they fit, so that a year is not one
pass and the predicates stay short. A finished batch is final; after a kill the rollup continues
with the next.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Final, NamedTuple, TypeVar

T = TypeVar("T")

MOST_OF_A_PART: Final = 500_000
"""Runs that the kernel takes at once: 400 to 750 MB of a worker."""

_SPARE: Final = 12
"""A further batch costs as much as recomputing this many hours without new rows."""


class Versions(NamedTuple):
    """Versions of bronze that are read together."""

    runs: int
    scrapes: int
    members: int


class ClusterHour(NamedTuple):
    """An hour of a cluster, the unit of recomputation."""

    cluster: str
    hour: dt.datetime


@dataclass(frozen=True, slots=True)
class HourSet:
    """Hours of clusters that are recomputed together: every hour for every cluster named here.

    Rarely more than needed, and the predicates stay two plain lists.
    """

    clusters: tuple[str, ...]
    hours: tuple[dt.datetime, ...]

    @property
    def cluster_hours(self) -> frozenset[ClusterHour]:
        """Every hour of every cluster."""
        return frozenset(
            ClusterHour(cluster, hour) for cluster in self.clusters for hour in self.hours
        )


class Call(NamedTuple):
    """One call of the kernel.

    Attributes:
        units: Its hours of clusters; they are numbered in this order, from 0.
        windows_per_part: Windows in a row that are one part; 0: there is one part, of all units.
        slices: Parts into which such windows are cut again, by a hash of the group, else of the
            topic: an objective is of a whole group, and a folded row of many clients, whose rows
            are therefore in one part.
    """

    units: tuple[ClusterHour, ...]
    windows_per_part: int = 0
    slices: int = 1


@dataclass(frozen=True, slots=True)
class Batch:
    """Hours of clusters that are recomputed and committed at once.

    Attributes:
        units: Its clusters and hours.
        calls: The same, as calls of the kernel; each of the hours is in one of them.
        rows: How many rows bronze/runs holds of them.
        versions: The versions of bronze that are read.
        window_seconds: Length of the finest windows.
    """

    units: HourSet
    calls: tuple[Call, ...]
    rows: int
    versions: Versions
    window_seconds: int


def batches(
    rows: Mapping[ClusterHour, int],
    todo: Set[ClusterHour],
    barred: Set[ClusterHour],
    versions: Versions,
    window_seconds: int,
    most: int,
    most_of_a_part: int = MOST_OF_A_PART,
) -> list[Batch]:
    """Batches that hold every pair, in the order of time.

    Args:
        rows: How many rows bronze/runs holds of hours of clusters.
        todo: Hours of clusters to recompute.
        barred: Hours of clusters that are frozen.
        versions: The versions of bronze that are read.
        window_seconds: Length of the finest windows.
        most: Rows of bronze/runs of a batch, unless it is a single hour.
        most_of_a_part: Rows of bronze/runs of a part, as far as they can be divided.
    """
    found = [
        HourSet(clusters, hours)
        for clusters, wanted in _groups(todo, barred)
        for hours in _cut(rows, clusters, sorted(wanted), most)
    ]
    found.sort(key=lambda units: (units.hours, units.clusters))
    windows = 3600 // window_seconds
    return [
        Batch(
            units, tuple(_calls(rows, units, most_of_a_part, windows)),
            _sum(rows, units.clusters, units.hours), versions, window_seconds,
        )
        for units in found
    ]  # fmt: skip


def _calls(
    rows: Mapping[ClusterHour, int], units: HourSet, most: int, windows: int
) -> Iterator[Call]:
    """Hours with few rows together in one call, each one with too many in a call of its own."""
    pairs = [ClusterHour(cluster, hour) for hour in units.hours for cluster in units.clusters]
    sized = [(pair, rows.get(pair, 0)) for pair in pairs]
    yield from (_cut_call(pair, count, most, windows) for pair, count in sized if count > most)
    few = [(pair, count) for pair, count in sized if count <= most]
    yield from (Call(tuple(together)) for together in _together(few, most))


def _cut_call(pair: ClusterHour, count: int, most: int, windows: int) -> Call:
    of_window = count / windows
    if of_window <= most:
        return Call((pair,), max(1, int(most / of_window)))
    return Call((pair,), 1, -(-round(of_window) // most))


def _groups(
    todo: Iterable[ClusterHour], barred: Set[ClusterHour]
) -> list[tuple[tuple[str, ...], frozenset[dt.datetime]]]:
    """Clusters that are recomputed together, with the hours of any of them."""
    groups: list[tuple[tuple[str, ...], frozenset[dt.datetime]]] = []
    by_cluster = groupby(sorted(todo), key=lambda pair: pair.cluster)
    wanted = [(cluster, frozenset(pair.hour for pair in pairs)) for cluster, pairs in by_cluster]
    for cluster, hours in sorted(wanted, key=lambda item: -len(item[1])):
        for number, (clusters, others) in enumerate(groups):
            both, names = others | hours, (*clusters, cluster)
            needless = len(both) * len(names) - len(others) * len(clusters) - len(hours)
            if needless <= max(_SPARE, len(hours)) and barred.isdisjoint(
                ClusterHour(name, hour) for name in names for hour in both
            ):
                groups[number] = (names, both)
                break
        else:
            groups.append(((cluster,), hours))
    return [(tuple(sorted(clusters)), hours) for clusters, hours in groups]


def _cut(
    rows: Mapping[ClusterHour, int], clusters: tuple[str, ...], hours: list[dt.datetime], most: int
) -> Iterator[tuple[dt.datetime, ...]]:
    """Hours in order, cut where a date or, if need be, an hour begins."""
    pieces: list[list[dt.datetime]] = []
    for _, of_date in groupby(hours, key=lambda hour: hour.date()):
        date = list(of_date)
        pieces += [date] if _sum(rows, clusters, date) <= most else [[hour] for hour in date]
    sized = [(piece, _sum(rows, clusters, piece)) for piece in pieces]
    yield from (tuple(chain.from_iterable(part)) for part in _together(sized, most))


def _together(sized: Iterable[tuple[T, int]], most: int) -> Iterator[list[T]]:
    """Things in order, as many together as are not larger than ``most``."""
    part: list[T] = []
    so_far = 0
    for one, size in sized:
        if part and so_far + size > most:
            yield part
            part, so_far = [], 0
        part.append(one)
        so_far += size
    if part:
        yield part


def _sum(
    rows: Mapping[ClusterHour, int], clusters: tuple[str, ...], hours: Iterable[dt.datetime]
) -> int:
    return sum(rows.get(ClusterHour(cluster, hour), 0) for hour in hours for cluster in clusters)
