"""Batches: hours of clusters that are recomputed and committed at once, in calls of the kernel.

A batch is a product of clusters and hours, of whole dates where they fit, so that a year is not one
pass and the predicates stay short. A finished batch is final; after a kill the rollup continues
with the next.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Final, NamedTuple, TypeVar

from lakehouse.core.periods import micros
from lakehouse.kernel.run_in_duckdb import MOST_OF_A_PIECE

T = TypeVar("T")

_LEAST_OF_A_CALL: Final = 50_000
"""Runs that take as long as the planning of a further call."""

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
        parts: The number of parts that can be computed apart: only a single hour has several.
    """

    units: tuple[ClusterHour, ...]
    parts: int = 1

    @property
    def units_us(self) -> tuple[tuple[str, int], ...]:
        """Clusters and hours, in microseconds since 1970."""
        return tuple((one.cluster, micros(one.hour)) for one in self.units)


@dataclass(frozen=True, slots=True)
class Batch:
    """Hours of clusters that are recomputed and committed at once.

    Attributes:
        units: Its clusters and hours.
        calls: The same, as calls of the kernel; each of the hours is in one of them.
        rows: How many rows bronze/runs holds of them.
        versions: The versions of bronze that are read.
    """

    units: HourSet
    calls: tuple[Call, ...]
    rows: int
    versions: Versions

    @property
    def parts(self) -> int:
        """The number of parts of all calls."""
        return sum(call.parts for call in self.calls)


def batches(
    rows: Mapping[ClusterHour, int],
    todo: Set[ClusterHour],
    barred: Set[ClusterHour],
    versions: Versions,
    most: int,
    cores: int,
    most_of_a_part: int = MOST_OF_A_PIECE,
) -> list[Batch]:
    """Batches that hold every pair, in the order of time.

    Args:
        rows: How many rows bronze/runs holds of hours of clusters.
        todo: Hours of clusters to recompute.
        barred: Hours of clusters that are frozen.
        versions: The versions of bronze that are read.
        most: Rows of bronze/runs of a batch, unless it is a single hour.
        cores: The number of calls that can be computed at once.
        most_of_a_part: Rows of bronze/runs of a part, as far as they can be divided.
    """
    found = [
        HourSet(clusters, hours)
        for clusters, wanted in _groups(todo, barred)
        for hours in _cut(rows, clusters, sorted(wanted), most)
    ]
    found.sort(key=lambda units: (units.hours, units.clusters))
    return [
        Batch(
            units, tuple(_calls(rows, units, most_of_a_part, cores)),
            _sum(rows, units.clusters, units.hours), versions,
        )
        for units in found
    ]  # fmt: skip


def _calls(
    rows: Mapping[ClusterHour, int], units: HourSet, most: int, cores: int
) -> Iterator[Call]:
    """Hours with few rows together in one call, each one with too many in a call of its own."""
    pairs = [ClusterHour(cluster, hour) for hour in units.hours for cluster in units.clusters]
    sized = [(pair, rows.get(pair, 0)) for pair in pairs]
    yield from (Call((pair,), -(-count // most)) for pair, count in sized if count > most)
    few = [(pair, count) for pair, count in sized if count <= most]
    yield from (Call(together) for together in _evenly(few, most, cores))


def _evenly(
    sized: Sequence[tuple[ClusterHour, int]], most: int, cores: int
) -> Iterator[tuple[ClusterHour, ...]]:
    """Hours in order, in as many equal calls as keep every core at work, none above ``most``."""
    total = sum(count for _, count in sized)
    needed = max(1, -(-total // most))
    number = max(needed, min(-(-needed // cores) * cores, total // _LEAST_OF_A_CALL))
    of_call: list[ClusterHour] = []
    before = so_far = place = 0
    for pair, count in sized:
        last, place = place, before * number // max(1, total)
        if of_call and (place > last or so_far + count > most):
            yield tuple(of_call)
            of_call, so_far = [], 0
        of_call.append(pair)
        so_far, before = so_far + count, before + count
    if of_call:
        yield tuple(of_call)


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
