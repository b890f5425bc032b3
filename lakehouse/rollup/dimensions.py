"""Dimensions of gold: the rows of gold/metrics, gold/objectives and gold/owners.

Each table is small. One commit replaces all of its rows, and only if a row differs.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from lakehouse import tables
from lakehouse.core.metrics import COVERAGE, UNAVAILABLE, shipped_meanings, shipped_rows
from lakehouse.core.objective import Objective
from lakehouse.core.periods import now_us
from lakehouse.core.subjects import SUBJECT_COLUMNS
from lakehouse.engines.engine import Engine
from lakehouse.engines.gold_reader import Row, catalogue_rows, subjects
from lakehouse.kernel import arrow_types
from lakehouse.rollup import lease
from lakehouse.tables import Table

_DERIVED: Final = {
    UNAVAILABLE: ("1", "partition", "1 while a partition is under its min ISR or has no leader."),
    COVERAGE: ("s", "source", "Time that the scrapes of a source cover."),
}
"""Unit, subject type and meaning of metrics that no agent reads."""

_OWN: Final = ("metric", "family", "roles", "kind", "unit", "absent", "description")


class _Definition(NamedTuple):
    """A definition of a metric; empty text is not known."""

    metric: str
    family: str
    roles: Sequence[str]
    kind: str
    unit: str
    absent: str
    meaning: str
    level: str = ""
    read_from: str = ""
    since: str = ""
    is_own: bool = False


def update(
    engine: Engine, objectives: Iterable[Objective], check: Callable[[], None],
    step: Callable[[str], None],
) -> None:  # fmt: skip
    """Update gold/metrics and gold/objectives.

    Args:
        engine: Engine of the lake; the lease is held.
        objectives: The objectives of the rollup.
        check: Called before each commit; raises if the lease is lost.
        step: Receives the name of each changed table.
    """
    before = {table: _rows(engine, table) for table in (tables.METRICS, tables.OBJECTIVES)}
    own = catalogue_rows(engine, tables.METRIC_DEFINITIONS, _OWN)
    after = {
        tables.METRICS: metrics(own),
        tables.OBJECTIVES: versions(before[tables.OBJECTIVES], objectives, now_us()),
    }
    for table, rows in after.items():
        if _is_changed(table, before[table], rows):
            check()
            _replace(engine, table, rows)
            step(table.name)


def update_owners(engine: Engine, owner_of: Callable[[Row], Mapping[str, str | None]]) -> None:
    """Update gold/owners.

    Args:
        engine: Engine of the lake.
        owner_of: Returns team, owner and tier of a row with the names of a subject.

    Raises:
        LeaseHeldError: A rollup is running.
    """
    rows = []
    for one in subjects(engine):
        labels = owner_of(one.names)
        if one.kind in ("topic", "client", "group", "source") and any(labels.values()):
            names = dict(zip(SUBJECT_COLUMNS, one.key, strict=True))
            rows.append({"cluster": one.cluster, "kind": one.kind, **names, **labels})
    if _is_changed(tables.OWNERS, _rows(engine, tables.OWNERS), rows):
        with lease.hold(engine, lease.USUAL) as held:
            held.check()
            _replace(engine, tables.OWNERS, rows)


def metrics(own: Iterable[Sequence[Any]]) -> list[Row]:
    """Return the rows of gold/metrics.

    If a metric has several definitions, the shipped definition counts, otherwise the first
    definition in the lake.

    Args:
        own: Definitions in the catalogues of the lake, with the columns of ``_OWN``.
    """
    by_metric: defaultdict[str, list[_Definition]] = defaultdict(list)
    for one in (
        *_shipped(),
        *(_Definition(*row)._replace(is_own=True) for row in sorted(own, key=repr)),
    ):
        by_metric[one.metric].append(one)
    return [_metric(by_metric[name]) for name in sorted(by_metric)]


def _shipped() -> Iterator[_Definition]:
    """Yield shipped definitions, of each metric first the definition of JMX."""
    for row in sorted(shipped_rows(), key=lambda row: (row["metric"], row["via"] != "jmx")):
        yield _Definition(
            row["metric"], row["family"], row["roles"].split(), row["kind"], row["unit"],
            row["absent"], row["description"], row["level"], row["via"], row["since"],
        )  # fmt: skip
    by_name = {row["metric"]: row for row in shipped_rows()}
    for name, one in shipped_meanings().traits.items():
        if one.side == "low":  # objectives name the value and not its bounds
            value, low = one.bound_of, by_name[name]
            meaning = f"Value between {value}.low and {value}.high."
            yield _Definition(value, "", (), low["kind"], low["unit"], "", meaning, low["level"])
    for name, (unit, level, meaning) in _DERIVED.items():
        yield _Definition(name, "", (), "gauge", unit, "", meaning, level)


def _metric(every: Sequence[_Definition]) -> Row:
    first = every[0]
    return {
        "metric": first.metric,
        "kind": first.kind,
        "unit": first.unit,
        "meaning": first.meaning or None,
        "level": first.level or None,
        "families": sorted({one.family for one in every if one.family}),
        "roles": sorted({role for one in every for role in one.roles}),
        "read_from": sorted({one.read_from for one in every if one.read_from}),
        "absent": first.absent or None,
        "since": first.since or None,
        "is_own": first.is_own,
    }


def versions(before: Iterable[Row], objectives: Iterable[Objective], at_us: int) -> list[Row]:
    """Return the rows of gold/objectives.

    Args:
        before: The present rows.
        objectives: The objectives of the rollup.
        at_us: Start of new and changed versions, and end of the versions before them (µs).
    """
    wanted = {one.name: _version(one) for one in objectives}
    rows, kept = [], set()
    for row in before:
        name = row["objective"]
        if row["valid_until"] is not None:
            rows.append(row)
        elif row == {**row, **wanted.get(name, {"objective": None})}:
            rows.append(row)
            kept.add(name)
        else:
            rows.append({**row, "valid_until": at_us})
    new = (row for name, row in wanted.items() if name not in kept)
    return [*rows, *({**row, "valid_from": at_us, "valid_until": None} for row in new)]


def _version(one: Objective) -> Row:
    chosen = [f"{name}={','.join(patterns)}" for name, patterns in sorted(one.match.items())]
    chosen += [f"{name}={value:g}" for name, value in sorted(one.where.items())]
    return {
        "objective": one.name,
        "title": one.title,
        "meaning": one.description,
        "level": one.level,
        "metric": one.metric,
        "comparison": one.op,
        "threshold": float(one.threshold),
        "target": float(one.target),
        "time_window": one.window.name,
        "is_rolling": one.window.is_rolling,
        "budgeting": one.method,
        "unknown_as": one.unknown,
        "service": one.service or None,
        "team": ", ".join(one.labels.get("team", ())) or None,
        "applies_to": "; ".join(chosen) or None,
        "composites": sorted(part.composite for part in one.composites),
    }


def _rows(engine: Engine, table: Table) -> list[Row]:
    """Return the rows of a table, with its declared columns."""
    found = engine.collect(engine.rows(table)).to_pylist()
    return [{name: row.get(name) for name in table.column_names} for row in found]


def _is_changed(table: Table, before: Iterable[Row], after: Iterable[Row]) -> bool:
    """Return True if two lists have different rows in any order."""
    one, other = (
        sorted(repr([row[name] for name in table.column_names]) for row in rows)
        for rows in (before, after)
    )
    return one != other


def _replace(engine: Engine, table: Table, rows: Sequence[Row]) -> None:
    """Replace all rows of a table; its first column is never null."""
    made = arrow_types.of_table(table)
    values = arrow_types.rows(made, ([row[name] for name in made.names] for row in rows))
    engine.write(table, values if rows else None, f"{table.column_names[0]} >= ''")
