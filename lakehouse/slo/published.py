"""gold/sla: published statements. A changed figure is published again under the next number.

Earlier statements remain.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow as pa

from lakehouse import tables
from lakehouse.core import periods
from lakehouse.core.subjects import SUBJECT_COLUMNS
from lakehouse.engines.engine import Engine
from lakehouse.engines.gold_reader import Row
from lakehouse.engines.relation import select, text
from lakehouse.kernel import arrow_types
from lakehouse.rollup import gold_tables, lease
from lakehouse.slo.sla_statement import Statement

_FIGURES: Final = ("corrections", *tables.SLA_FIGURES, *tables.SLA_AGREED)
_KEY: Final = (
    "period_kind", "period_start", "period_end", "cluster", "objective", *SUBJECT_COLUMNS,
    "partition_id",
)  # fmt: skip


def publish(
    engine: Engine, statements: Sequence[Statement], period: periods.Period,
    restated: list[Statement] | None = None, time_zone: str | None = None,
) -> list[Statement]:  # fmt: skip
    """Append new and changed statements to gold/sla, and return them.

    Args:
        engine: Writes gold.
        statements: Statements, each on its own period, or on ``period`` where it has none.
        period: The period of the report.
        restated: Receives the statements that were published with other figures before.
        time_zone: Name of the time zone of the period.

    Raises:
        LeaseHeldError: A rollup or another publication is running.
    """
    with lease.hold(engine, lease.USUAL) as held:
        last = _last_published(engine, {one.period or period for one in statements})
        changed, rows = [], []
        for statement in statements:
            row = _row(statement, statement.period or period) | {"time_zone": time_zone}
            before, figures = last.get(_values(row, _KEY)), _values(row, _FIGURES)
            if before is None or _values(before, _FIGURES) != figures:
                changed.append(statement)
                if before is not None and restated is not None:
                    restated.append(statement)
                rows.append(row | {"statement": before["statement"] + 1 if before else 1})
        if rows:
            held.check()
            detail = engine.detail(tables.SLA)
            if gold_tables.is_outdated(engine.lake, tables.SLA, detail):  # an earlier version's
                gold_tables.prepare(engine, tables.SLA)
            table = pa.Table.from_pylist(rows, arrow_types.of_table(tables.SLA))
            engine.write(tables.SLA, table)
    return changed


def _last_published(engine: Engine, wanted: Iterable[periods.Period]) -> dict[tuple[Any, ...], Row]:
    """Return the last row of each key."""
    conditions = (
        f"(r.period_kind = {text(period.grain)} "
        f"AND r.period_start = {periods.micros(period.start)} "
        f"AND r.period_end = {periods.micros(period.end)})"
        for period in wanted
    )
    where = " OR ".join(conditions) or "false"
    sql = f"SELECT r.* FROM {{rows}} r WHERE {where} ORDER BY r.statement"
    rows = engine.collect(select(sql, rows=engine.rows(tables.SLA))).to_pylist()
    return {_values(row, _KEY): row for row in rows}


def _values(row: Row, names: Iterable[str]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in names)  # older tables lack some columns


def _row(statement: Statement, period: periods.Period) -> Row:
    policy, corrections = statement.objective.unknown, statement.corrections
    agreed = statement.agreed  # none without a correction
    middle = period.start + (period.end - period.start) / 2  # its Monday may start on a Sunday, UTC
    year = middle.isocalendar().year if period.grain == periods.WEEK else period.start.year
    return {
        "period_kind": period.grain,
        "period_year": str(year),
        "cluster": statement.subject.cluster,
        "period_start": periods.micros(period.start),
        "period_end": periods.micros(period.end),
        "stated_at": periods.now_us(),
        "objective": statement.objective.name,
        **dict(zip(SUBJECT_COLUMNS, statement.subject.key, strict=True)),
        "partition_id": statement.subject.partition,
        "target": statement.objective.target,
        "unknown_as": None if policy == "interval" else policy,
        "corrections": json.dumps([one.to_json() for one in corrections]) if corrections else None,
        **statement.figures(),
        **{name: getattr(agreed, name.removeprefix("agreed_"), None) for name in tables.SLA_AGREED},
    }
