"""gold/sla: what was stated. A figure that has changed since is stated again under the next number.

The old statement stays.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import lake as lakes
from lakehouse import periods, tables
from lakehouse.asked import SUBJECT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from lakehouse.lake import Lake
    from lakehouse.periods import Period
    from lakehouse.statement import Statement

_SUBJECT: Final = (*SUBJECT, "partition")


def publish(
    spark: SparkSession, lake: Lake, found: Sequence[Statement], period: Period
) -> list[Statement]:
    """Append to gold/sla what is new or has changed; returns just that.

    Args:
        spark: A session with Delta, in UTC.
        lake: Where the tables are.
        found: Statements, each on its own period, else on ``period``.
        period: What was asked for.
    """
    periods = {one.period or period for one in found}
    last = _published(spark, lake, periods)
    fresh, rows = [], []
    for one in found:
        figures, of = one.figures(), one.period or period
        key = (of, one.subject.cluster, one.objective.name, *_names(one))
        number, before = last.get(key, (0, None))
        if before == figures:
            continue
        fresh.append(one)
        rows.append(_row(one, figures, of, number + 1))
    if rows:
        schema = ", ".join(f"`{column.name}` {column.type}" for column in tables.SLA.columns)
        ordered = [tuple(row[name] for name in tables.SLA.column_names) for row in rows]
        lakes.append(lake, tables.SLA, spark.createDataFrame(ordered, schema))
    return fresh


def _published(spark: SparkSession, lake: Lake, periods: set[Period]) -> dict[Any, tuple[int, Any]]:
    """The last statement's number and figures by period, cluster, objective and subject."""
    rows = lakes.read(spark, lake, tables.SLA)
    last: dict[Any, tuple[int, Any]] = {}
    wanted = tables.SLA.column_names
    names = wanted[wanted.index("expected_us") :]
    for period in periods:
        stated = rows.where(
            (F.col("grain") == period.grain)
            & (F.col("window") == F.lit(period.start))
            & (F.col("window_end") == F.lit(period.end))
        )
        for row in stated.orderBy("statement").collect():
            figures = row.asDict()
            last[period, row["cluster"], row["objective"], *(row[name] for name in _SUBJECT)] = (
                row["statement"],
                {name: figures[name] for name in names},
            )
    return last


def _names(one: Statement) -> tuple[str | int | None, ...]:
    return (*one.subject.key, one.subject.partition)


def _row(one: Statement, figures: dict[str, Any], period: Period, number: int) -> dict[str, Any]:
    year = period.start.isocalendar().year if period.grain == periods.WEEK else period.start.year
    return {
        "grain": period.grain,
        "period": str(year),
        "cluster": one.subject.cluster,
        "window": period.start,
        "window_end": period.end,
        "statement": number,
        "stated_at": dt.datetime.now(dt.UTC),
        "objective": one.objective.name,
        **dict(zip(_SUBJECT, _names(one), strict=True)),
        "target": one.objective.target,
        **figures,
    }
