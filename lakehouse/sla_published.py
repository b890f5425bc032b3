"""gold/sla: what was stated. A figure that has changed since is stated again under the next number.

The old statement stays.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lakehouse import periods, tables
from lakehouse.existence import SUBJECT
from lakehouse.gold_rows import text
from lakehouse.periods import micros
from lakehouse.rollup import lease, shapes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.periods import Period
    from lakehouse.rollup.engine import Engine
    from lakehouse.statement import Statement

_SUBJECT: Final = (*SUBJECT, "partition")


def publish(engine: Engine, found: Sequence[Statement], period: Period) -> list[Statement]:
    """Append to gold/sla what is new or has changed; returns just that.

    Args:
        engine: Writes gold.
        found: Statements, each on its own period, else on ``period``.
        period: What was asked for.

    Raises:
        LeaseHeldError: A rollup, or another who publishes, is at work.
    """
    with lease.held(engine, lease.USUAL) as held:
        last = _published(engine, {one.period or period for one in found})
        fresh, rows = [], []
        for one in found:
            figures, of = one.figures(), one.period or period
            key = (
                of,
                one.subject.cluster,
                one.objective.name,
                *one.subject.key,
                one.subject.partition,
            )
            number, before = last.get(key, (0, None))
            if before != figures:
                fresh.append(one)
                rows.append(_row(one, figures, of, number + 1))
        if rows:
            held.check()
            table = pa.Table.from_pylist(rows, shapes.of_table(tables.SLA))
            engine.write(tables.SLA, engine.relation(table))
    return fresh


def _published(engine: Engine, wanted: set[Period]) -> dict[Any, tuple[int, Any]]:
    """The last statement's number and figures by period, cluster, objective and subject."""
    of_them = " OR ".join(
        f"(r.grain = {text(one.grain)} AND r.window = {micros(one.start)} "
        f"AND r.window_end = {micros(one.end)})"
        for one in wanted
    )
    sql = f"SELECT r.* FROM {{rows}} r WHERE {of_them or 'false'} ORDER BY r.statement"
    rows = engine.collect(engine.query(sql, rows=engine.rows(tables.SLA))).to_pylist()
    periods_ = {(one.grain, micros(one.start), micros(one.end)): one for one in wanted}
    last: dict[Any, tuple[int, Any]] = {}
    for row in rows:
        period = periods_[row["grain"], row["window"], row["window_end"]]
        key = (period, row["cluster"], row["objective"], *(row[name] for name in _SUBJECT))
        last[key] = (row["statement"], {name: row[name] for name in tables.SLA_FIGURES})
    return last


def _row(one: Statement, figures: dict[str, Any], period: Period, number: int) -> dict[str, Any]:
    year = period.start.isocalendar().year if period.grain == periods.WEEK else period.start.year
    return {
        "grain": period.grain,
        "period": str(year),
        "cluster": one.subject.cluster,
        "window": micros(period.start),
        "window_end": micros(period.end),
        "statement": number,
        "stated_at": micros(dt.datetime.now(dt.UTC)),
        "objective": one.objective.name,
        **one.subject.names,
        "partition": one.subject.partition,
        "target": one.objective.target,
        **figures,
    }
