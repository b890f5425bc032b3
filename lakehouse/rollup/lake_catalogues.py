"""Definitions of metrics in the catalogues of a lake's agents and in the shipped catalogue."""

from lakehouse import tables
from lakehouse.core.metrics import Definition, Families, families_by_metric, shipped
from lakehouse.engines.engine import Engine, ask
from lakehouse.errors import TableNotFoundError


def families_of(engine: Engine) -> Families:
    """Return the families that read each metric, in any of these catalogues."""
    return families_by_metric(definitions(engine))


def definitions(engine: Engine) -> set[Definition]:
    """Return the definitions of metrics in the lake's catalogues and in the shipped catalogue."""
    return {*shipped(), *own_definitions(engine)}


def own_definitions(engine: Engine) -> list[Definition]:
    """Return the definitions of metrics in the lake's catalogues, in order."""
    try:
        rows = engine.rows(tables.METRIC_DEFINITIONS)
    except TableNotFoundError:  # older agents do not create the table
        return []
    listed = ", ".join(f"r.{name}" for name in Definition._fields)
    order = "r.metric, r.family, r.kind, r.unit, r.description"
    sql = f"SELECT DISTINCT {listed} FROM {{rows}} r ORDER BY {order}"
    return [Definition(*row) for row in ask(engine, sql, rows=rows)]
