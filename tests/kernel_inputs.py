"""What the rollup's drivers hand to the kernel, made of rows in memory: no lake, no Spark.

Rows are those of ``tests.lake_builder``. A call has units (hours of clusters) and parts; how rows
are cut into them is for a test to choose, for it must not matter.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakehouse import tables
from lakehouse.kernel import run_in_duckdb
from tests.lake_builder import Batch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Row = dict[str, Any]
Unit = tuple[str, int]
Cut = Callable[[Row], int]
"""Tells the number of the part that a run of bronze is in."""

HOUR, DAY = 3_600_000_000, 86_400_000_000
WINDOW_US = tables.DEFAULT_WINDOW_SECONDS * 1_000_000
_LAST_DAY = 2_932_531  # 9998-12-31

_FLAGS = {
    tables.FLAG_INCREASE: 1, tables.FLAG_GAP: 2, tables.FLAG_KNOWN_WRONG: 4,
    tables.FLAG_NEXT_POSITIVE: 8, tables.FLAG_PREVIOUS_POSITIVE: 16, tables.FLAG_DISTRIBUTION: 32,
}  # fmt: skip

_TYPES = {
    "u": pa.int32(), "partition": pa.int32(), "series": pa.int32(), "scrapes": pa.int32(),
    "flags": pa.int32(), "hour_us": pa.int64(), "start_us": pa.int64(), "end_us": pa.int64(),
    "lead_us": pa.int64(), "tail_us": pa.int64(), "interval_us": pa.int64(), "batch": pa.int64(),
    "value": pa.float64(), "seconds_total": pa.float64(), "seconds_max": pa.float64(),
    "labels": pa.map_(pa.string(), pa.string()), "partitions": pa.list_(pa.int32()),
    "clients": pa.list_(pa.struct([("user", pa.string()), ("client_id", pa.string())])),
}  # fmt: skip
_UNITS = ("u", "cluster", "hour_us")
_RUNS = (
    "u", "source", "metric", "topic", "partition", "user", "client_id", "group", "labels",
    "start_us", "end_us", "lead_us", "tail_us", "value", "series", "members", "flags", "agent",
    "batch",
)  # fmt: skip
_SCRAPES = (
    "u", "source", "family", "start_us", "end_us", "outcome", "scrapes", "seconds_total",
    "seconds_max", "interval_us", "error", "agent", "batch",
)  # fmt: skip
_SETS = ("cluster", "members", "topic", "partitions", "clients")


@dataclass(frozen=True)
class Call:
    """The arguments of one call of the kernel."""

    hours: run_in_duckdb.Hours
    described: pa.Table | None
    parts: Sequence[pa.Table]

    def roll_up(self, program: run_in_duckdb.Program, pieces: int = 1) -> dict[str, pa.Table]:
        """In one connection, cut by windows into so many pieces."""
        runs = pa.concat_tables(self.parts)
        return run_in_duckdb.part(program, self.hours, runs, pieces=pieces).final

    def merged(self, program: run_in_duckdb.Program, pieces: int = 1) -> dict[str, pa.Table]:
        """Each part in a connection of its own; the parts have whole subjects."""
        made = [
            run_in_duckdb.part(program, self.hours, runs, self.described, pieces, first=number == 0)
            for number, runs in enumerate(self.parts)
        ]
        added = run_in_duckdb.merge(program, self.hours.units, [one.adding for one in made])
        return added | {
            name: pa.concat_tables([one.final[name] for one in made]) for name in made[0].final
        }


def together(batches: Iterable[Batch]) -> Batch:
    """The rows of several batches as those of one."""
    whole = Batch()
    for one in batches:
        whole.runs += one.runs
        whole.members += one.members
        whole.scrapes += one.scrapes
    return whole


def of_clusters(batches: Mapping[str, Batch]) -> Batch:
    """Return the rows of several batches, each in a cluster of its name: cases share a call."""

    def named(rows: list[Row], cluster: str) -> list[Row]:
        return [{**row, "cluster": cluster} for row in rows]

    return together(
        replace(
            one,
            runs=named(one.runs, name),
            members=named(one.members, name),
            scrapes=named(one.scrapes, name),
        )
        for name, one in batches.items()
    )


def placed(batch: Batch) -> Batch:
    """Without rows that are in another date's partition than their start's: the driver's."""

    def well(row: Row) -> bool:
        return row["date"] == row["start"] // DAY and 0 <= row["date"] <= _LAST_DAY

    return replace(
        batch,
        runs=[row for row in batch.runs if well(row)],
        scrapes=[row for row in batch.scrapes if well(row)],
    )


def shuffled(batch: Batch, seed: int) -> Batch:
    """The same rows in another order."""
    rng = random.Random(seed)
    return replace(
        batch,
        runs=rng.sample(batch.runs, len(batch.runs)),
        members=rng.sample(batch.members, len(batch.members)),
        scrapes=rng.sample(batch.scrapes, len(batch.scrapes)),
    )


def whole(_: Row) -> int:
    """All runs in one part."""
    return 0


def by_subject(parts: int) -> Cut:
    """All runs of a group or topic, of a source's own series, and of all clients, in one part."""

    def number(row: Row) -> int:
        of_clients = row["members"] or row["user"] is not None or row["client_id"] is not None
        subject = row["group"] if row["group"] is not None else row["topic"]
        if subject is None:
            subject = "" if of_clients else row["source"]
        return sum(subject.encode()) % parts

    return number


def one_call(batch: Batch, cut: Cut = whole, describing: Iterable[str] = ()) -> Call:
    """All units in one call, by default in one part (see ``call_a_unit``)."""
    return _call(batch, cut, tuple(describing))


def call_a_unit(batch: Batch, cut: Cut = whole, describing: Iterable[str] = ()) -> list[Call]:
    """A call for each unit, cut into parts.

    Args:
        batch: The rows.
        cut: Into which parts.
        describing: Metrics whose runs every part of a unit gets.
    """
    grouped: defaultdict[Unit, Batch] = defaultdict(Batch)
    for row in batch.runs:
        grouped[_unit(row)].runs.append(row)
    for row in batch.scrapes:
        grouped[_unit(row)].scrapes.append(row)
    members: defaultdict[str, list[Row]] = defaultdict(list)
    for row in batch.members:
        members[row["cluster"]].append(row)
    return [
        _call(replace(own, members=members[cluster]), cut, tuple(describing))
        for (cluster, _), own in sorted(grouped.items())
    ]


def _unit(row: Row) -> Unit:
    return row["cluster"], row["start"] - row["start"] % HOUR


def _call(batch: Batch, cut: Cut, describing: Sequence[str]) -> Call:
    units = {unit: u for u, unit in enumerate(sorted({*map(_unit, batch.runs + batch.scrapes)}))}
    grouped: defaultdict[int, list[Row]] = defaultdict(list)
    for row in batch.runs:
        grouped[cut(row)].append(_run(row, units))
    described = [_run(row, units) for row in batch.runs if row["metric"] in describing]
    several = len(grouped) > 1
    # A unit of scrapes alone has one part as well, without runs.
    parts = [_table(_RUNS, runs) for _, runs in sorted(grouped.items())]
    hours = run_in_duckdb.Hours(
        _table(_UNITS, [{"u": u, "cluster": c, "hour_us": at} for (c, at), u in units.items()]),
        _table(_SCRAPES, [_in_micros(row, units) for row in batch.scrapes]),
        _table(_SETS, _sets(batch)),
    )
    described_once = _table(_RUNS, described) if several else None
    return Call(hours, described_once, parts or [_table(_RUNS, [])])


def _run(row: Row, units: dict[Unit, int]) -> Row:
    flags = sum(_FLAGS[flag] for flag in {*(row["flags"] or ())})
    return {**_in_micros(row, units), "flags": flags}


def _in_micros(row: Row, units: dict[Unit, int]) -> Row:
    return {**row, "u": units[_unit(row)], "start_us": row["start"], "end_us": row["end"]}


def _sets(batch: Batch) -> list[Row]:
    """Every content of each set, once."""
    found = ({**row, "members": row["set"]} for row in batch.members)
    return list({repr([one[name] for name in _SETS]): one for one in found}.values())


def _table(names: Sequence[str], rows: Sequence[Row]) -> pa.Table:
    types = [_TYPES.get(name, pa.string()) for name in names]
    columns = [
        pa.array([_plain(row[name], name) for row in rows], type_)
        for name, type_ in zip(names, types, strict=True)
    ]
    return pa.Table.from_arrays(columns, names=list(names))


def _plain(value: Any, name: str) -> Any:
    if name == "clients" and value is not None:
        return [{"user": user, "client_id": client_id} for user, client_id in value]
    return value
