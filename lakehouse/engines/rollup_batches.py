"""Batches: hours of clusters that are recomputed and committed together.

A batch is a product of clusters and hours, of whole dates where they fit. One pass therefore does
not cover a year, and the conditions stay short. A finished batch is final: after a kill the rollup
continues with the next batch. The kernel computes a batch in calls, and a call in parts.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Final, NamedTuple, TypeVar

import pyarrow as pa

from lakehouse.core.periods import HOUR_US, micros
from lakehouse.engines import packets
from lakehouse.engines.relation import Relation, Rows, in_clusters, is_one_of, select, within_hours
from lakehouse.kernel.run_in_duckdb import FLAGS, MOST_OF_A_PIECE, Program

T = TypeVar("T")

_LEAST_OF_A_CALL: Final = 50_000
"""Runs that cost as much as planning one more call."""

_SPARE: Final = 12
"""Hours without new rows that cost as much to recompute as one more batch."""

_PARTS_OF_A_PLACE: Final = 8
"""Parts that one task merges: they add few rows compared with the rows that they read."""

_FLAGS: Final = " + ".join(
    f"CASE WHEN array_contains(r.flags, '{flag}') THEN {bit} ELSE 0 END"
    for flag, bit in FLAGS.items()
)
_MADE: Final = {
    "u": "CAST(k.u AS INT) AS u",
    "start_us": "r.start AS start_us",
    "end_us": "r.end AS end_us",
    "flags": f"CAST({_FLAGS} AS INT) AS flags",
}
"""Columns of the kernel's inputs that differ from bronze."""

_SUBJECT: Final = (
    "coalesce(r.group, r.topic, CASE WHEN r.members IS NULL AND r.user IS NULL "
    "AND r.client_id IS NULL THEN r.source ELSE '' END)"
)
"""Subject whose runs share a part: a group, a topic, a source itself, or all clients together,
because a grouped run belongs to many clients."""

_PART: Final = (
    "k.first + CASE WHEN k.parts = 1 THEN 0 "
    f"ELSE abs(CAST(hash({_SUBJECT}) % k.parts AS BIGINT)) END"
)
_OF_HOURS: Final = (
    "JOIN {hours} k ON k.cluster = r.cluster AND k.epoch_hour = r.epoch_hour WHERE NOT r.misdated"
)
_OF_CALLS: Final = (
    "JOIN (SELECT DISTINCT h.cluster, h.first, h.parts FROM {hours} h) k ON k.cluster = r.cluster"
)


class Versions(NamedTuple):
    """Versions of bronze that are read together."""

    runs: int
    scrapes: int
    members: int


class ClusterHour(NamedTuple):
    """An hour of a cluster: the unit of recomputation."""

    cluster: str
    hour: dt.datetime


@dataclass(frozen=True, slots=True)
class HourSet:
    """Hours of clusters to recompute together: each hour of each cluster.

    The product rarely has unneeded hours, and conditions stay two plain lists.
    """

    clusters: tuple[str, ...]
    hours: tuple[dt.datetime, ...]

    @property
    def cluster_hours(self) -> frozenset[ClusterHour]:
        """Each hour of each cluster."""
        return frozenset(
            ClusterHour(cluster, hour) for cluster in self.clusters for hour in self.hours
        )

    def condition(self, start: str) -> str:
        """Return the condition for rows of a table with the column ``start`` for hour or window."""
        return f"{in_clusters(self.clusters)} AND {within_hours(self.hours, start)}"


class Call(NamedTuple):
    """A call of the kernel.

    Attributes:
        units: Hours of clusters, numbered from 0 in this order.
        parts: Number of parts that can be computed separately. Only a single hour has several.
    """

    units: tuple[ClusterHour, ...]
    parts: int = 1


@dataclass(frozen=True, slots=True)
class Batch:
    """Hours of clusters that are recomputed and committed together.

    Attributes:
        units: Clusters and hours.
        calls: Calls of the kernel; each hour is in one of them.
        rows: Number of their rows in bronze/runs.
        versions: Versions of bronze to read.
    """

    units: HourSet
    calls: tuple[Call, ...]
    rows: int
    versions: Versions

    @property
    def parts(self) -> int:
        """Number of parts of all calls."""
        return sum(call.parts for call in self.calls)


def parts_of(batch: Batch) -> list[packets.Part]:
    """Return the parts of a batch, in the order of their numbers."""
    parts: list[packets.Part] = []
    place = 0
    for call in batch.calls:
        units = tuple((unit.cluster, micros(unit.hour)) for unit in call.units)
        places = -(-call.parts // _PARTS_OF_A_PLACE) if call.parts > 1 else 0
        parts += [packets.Part(units, place, places, number == 0) for number in range(call.parts)]
        place += places
    return parts


class Bronze(NamedTuple):
    """Rows of bronze for the hours of a batch, with instants as in relations."""

    runs: Rows
    scrapes: Rows
    sets: Rows


def inputs(
    bronze: Bronze, batch: Batch, program: Program, labels: str = "r.labels"
) -> Iterator[Relation]:
    """Yield the rows that the kernel needs for a batch, by kind, with the column ``key``.

    Args:
        bronze: Rows of bronze.
        batch: Batch to compute.
        program: The kernel.
        labels: SQL of the labels, in the form in which they are packed.
    """
    hours, made = _numbered(batch), {**_MADE, "labels": f"{labels} AS labels"}

    def keyed(kind: int, name: str, rows: Rows, which: str, part: str, parts: str) -> Relation:
        key = f"(({part}) * {1 << packets.PARTS_BITS} + {parts}) * {1 << packets.KIND_BITS}"
        names = program.inputs[name].names
        columns = ", ".join(made.get(column, f"r.{column}") for column in names)
        # Spark cannot see that there are few hours; DuckDB reads a comment.
        sql = f"SELECT /*+ BROADCAST(k) */ {key} + {kind} AS key, {columns} FROM {{rows}} r {which}"
        return select(sql, rows=rows, hours=hours)

    whole = "k.first", "k.parts"
    yield keyed(packets.RUNS, "runs", bronze.runs, _OF_HOURS, _PART, "1")
    yield keyed(packets.SCRAPES, "scrapes", bronze.scrapes, _OF_HOURS, *whole)
    if any(call.parts > 1 for call in batch.calls):
        which = f"{_OF_HOURS} AND k.parts > 1 AND {is_one_of('r.metric', program.describing)}"
        yield keyed(packets.DESCRIBED, "runs", bronze.runs, which, *whole)
    yield keyed(packets.SETS, "sets", bronze.sets, _OF_CALLS, *whole)


def _numbered(batch: Batch) -> pa.Table:
    """Return the hours of a batch: number in the call, first part of the call, number of parts."""
    rows: list[dict[str, str | int]] = []
    first = 0
    for call in batch.calls:
        for number, unit in enumerate(call.units):
            hour = micros(unit.hour) // HOUR_US
            rows.append(
                {"cluster": unit.cluster, "epoch_hour": hour, "u": number, "first": first,
                 "parts": call.parts}
            )  # fmt: skip
        first += call.parts
    return pa.Table.from_pylist(rows)


def batches(
    rows: Mapping[ClusterHour, int],
    todo: Set[ClusterHour],
    barred: Set[ClusterHour],
    versions: Versions,
    most: int,
    cores: int,
    most_of_a_part: int = MOST_OF_A_PIECE,
) -> list[Batch]:
    """Return batches that cover all hours to recompute, in the order of time.

    Args:
        rows: Number of rows in bronze/runs, by hour of a cluster.
        todo: Hours of clusters to recompute.
        barred: Frozen hours of clusters.
        versions: Versions of bronze to read.
        most: Maximum rows of bronze/runs in a batch; a single hour can exceed it.
        cores: Number of calls that run at the same time.
        most_of_a_part: Maximum rows of bronze/runs in a part, if they can be divided.
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
    """Yield calls: small hours share a call, and each large hour has its own call."""
    pairs = [ClusterHour(cluster, hour) for hour in units.hours for cluster in units.clusters]
    sized = [(pair, rows.get(pair, 0)) for pair in pairs]
    yield from (Call((pair,), -(-count // most)) for pair, count in sized if count > most)
    few = [(pair, count) for pair, count in sized if count <= most]
    yield from (Call(together) for together in _evenly(few, most, cores))


def _evenly(
    sized: Sequence[tuple[ClusterHour, int]], most: int, cores: int
) -> Iterator[tuple[ClusterHour, ...]]:
    """Yield hours, in order, for equal calls that keep all cores busy, none above ``most``."""
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
    """Return clusters to recompute together, with the union of their hours."""
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
    """Yield hours in order, split at the start of a date or, if necessary, of an hour."""
    pieces: list[list[dt.datetime]] = []
    for _, of_date in groupby(hours, key=lambda hour: hour.date()):
        date = list(of_date)
        pieces += [date] if _sum(rows, clusters, date) <= most else [[hour] for hour in date]
    sized = [(piece, _sum(rows, clusters, piece)) for piece in pieces]
    yield from (tuple(chain.from_iterable(part)) for part in _together(sized, most))


def _together(sized: Iterable[tuple[T, int]], most: int) -> Iterator[list[T]]:
    """Yield items in order, grouped up to a total size of ``most``."""
    part: list[T] = []
    so_far = 0
    for item, size in sized:
        if part and so_far + size > most:
            yield part
            part, so_far = [], 0
        part.append(item)
        so_far += size
    if part:
        yield part


def _sum(
    rows: Mapping[ClusterHour, int], clusters: tuple[str, ...], hours: Iterable[dt.datetime]
) -> int:
    return sum(rows.get(ClusterHour(cluster, hour), 0) for hour in hours for cluster in clusters)
