"""What a rollup is to do: which hours, in which stretches, and which must stay as they are."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import aside, changes, held, tables
from lakehouse import lake as lakes
from lakehouse import progress as progresses
from lakehouse.changes import Touched
from lakehouse.errors import LogExpiredError
from lakehouse.stretches import Stretch, stretches
from lakehouse.units import Pair, Versions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from lakehouse.bronze_log import State
    from lakehouse.lake import Lake
    from lakehouse.progress import Progress
    from lakehouse.tables import Table

_FEW: Final = 6
"""So many hours are one stretch, whatever they hold."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done.

    Attributes:
        how: How that is known, as in gold/progress.
        stretches: What is recomputed, in this order.
        late: Hours for which something came, and which bronze does not hold wholly any more.
        misdated: Hours of rows that are in another date's partition.
        left: Hours that were asked for, and which bronze does not hold wholly any more.
        before: Versions of bronze after which what came is new; None where all is.
        now: Versions of bronze that are read.
        resumed: How many hours a rollup that was cut short has done.
        told: All that in one line.
    """

    how: str
    stretches: tuple[Stretch, ...]
    late: frozenset[Pair]
    misdated: frozenset[Pair]
    left: frozenset[Pair]
    before: Versions | None
    now: Versions
    resumed: int
    told: str


def made(
    spark: SparkSession, lake: Lake, row: Progress | None, state: State,
    window_seconds: int, since: dt.date | None, most_rows: int,
) -> Plan:  # fmt: skip
    """The plan of a rollup.

    Args:
        spark: The session.
        lake: The lake; gold's tables are there.
        row: The row of progress that stands.
        state: Bronze as it is to be rolled up.
        window_seconds: Finest grain of gold.
        since: A date (UTC) from which on all is wanted.
        most_rows: Rows of bronze a stretch may hold.
    """
    now, newest, _ = state
    how, fresh, why = _news(spark, lake, row, state)
    wanted = dict(fresh.rows)
    if since is not None and row is not None:
        how = f"{progresses.SINCE} {since}"
        wanted = dict(changes.everything(spark, lake, now, since).rows) | wanted
    old = {pair.hour for pair in wanted if pair.hour < newest.committed - held.LEAST_KEPT}
    lost = held.lost(spark, lake, now, window_seconds, old)
    late = frozenset(lost & fresh.rows.keys() if row is not None else ())
    todo = {pair: count for pair, count in wanted.items() if pair not in lost}
    resumed = len(todo)
    todo = _not_done_yet(spark, lake, row, now, how, todo)
    resumed -= len(todo)
    if len(todo) > _FEW and row is not None:
        todo = _weighed(spark, lake, now, todo)
    parts = tuple(stretches(todo, lost, most_rows))
    told = f"{how}: {len(todo)} hours in {len(parts)} stretches{why}"
    told += f", {resumed} done before" * bool(resumed)
    left = frozenset(lost & wanted.keys())
    told += f", {len(left)} left as they are: {aside.TOO_LATE}" * bool(left)
    before = row.versions if row is not None and not why else None
    return Plan(how, parts, late, fresh.misdated, left, before, now, resumed, told)


def set_aside(spark: SparkSession, lake: Lake, todo: Plan, window_seconds: int) -> tuple[int, int]:
    """Write to gold/rejected what no hour is recomputed for.

    Returns:
        How many rows came too late, and how many are misdated.
    """
    found = []
    for pairs, chosen in (
        (todo.late, lambda rows: aside.late(rows, todo.late)),
        (todo.misdated, aside.misdated),
    ):
        if not pairs:
            found.append(0)
            continue
        came = {table: chosen(rows) for table, rows in _came(spark, lake, todo)}
        hours = (pair.hour for pair in pairs)
        found.append(aside.put(spark, lake, window_seconds, hours, came))
    return found[0], found[1]


def _came(spark: SparkSession, lake: Lake, todo: Plan) -> Iterator[tuple[Table, DataFrame]]:
    for table, index in ((tables.RUNS, 0), (tables.SCRAPES, 1)):
        now = todo.now[index]
        if todo.before is None:
            yield table, lakes.read(spark, lake, table, now)
            continue
        new = lakes.inserts(spark, lake, table, todo.before[index] + 1, now)
        if new is not None:
            yield table, new


def _news(
    spark: SparkSession, lake: Lake, row: Progress | None, state: State
) -> tuple[str, Touched, str]:
    """How it is known, what is new, and why it is not the change feed that tells."""
    now, newest, logs = state
    if row is None:
        return progresses.WHOLE, changes.everything(spark, lake, now, None), ""
    if any(new < old for new, old in zip(now, row.versions, strict=True)):
        return progresses.RECOVERED, Touched({}), ", for bronze is another"
    last = row.committed or row.at - dt.timedelta(days=1)
    ripe = changes.come_true(spark, lake, last, newest.committed)
    try:
        found = changes.touched(spark, lake, row.versions, now, logs)
        how, why = progresses.FEED, ""
    except LogExpiredError as error:
        how, why = progresses.RECOVERED, f", for {error}"
        found = changes.recovered(spark, lake, min(last, row.at), now)
    return how, Touched({**ripe.rows, **found.rows}, found.misdated), why


def _not_done_yet(
    spark: SparkSession, lake: Lake, row: Progress | None, now: Versions, how: str,
    todo: Mapping[Pair, int],
) -> dict[Pair, int]:  # fmt: skip
    """What a rollup that was cut short has left, and what came for the rest since."""
    left = dict(todo)
    for stretch in progresses.noted(spark, lake, row, how):
        try:
            since = changes.touched(spark, lake, stretch.versions, now).rows
        except LogExpiredError:
            continue
        for pair in stretch.pairs - since.keys():
            left.pop(pair, None)
    return left


def _weighed(
    spark: SparkSession, lake: Lake, now: Versions, todo: Mapping[Pair, int]
) -> dict[Pair, int]:
    """The rows that bronze holds of each hour, not those alone that are new."""
    dates = sorted({pair.hour.date() for pair in todo})
    clusters = sorted({pair.cluster for pair in todo})
    held_rows = changes.counted(
        lakes.read(spark, lake, tables.RUNS, now.runs).where(
            F.col("date").isin(*dates) & F.col("cluster").isin(*clusters)
        )
    )
    return {pair: held_rows.get(pair, 0) for pair in todo}
