"""What metrics mean by the catalogues of a lake's agents, and by the shipped one."""

from lakehouse import tables
from lakehouse.core.metrics import Definition, Families, families_by_metric, shipped
from lakehouse.engines.engine import Engine, ask
from lakehouse.errors import TableNotFoundError


def families_of(engine: Engine) -> Families:
    """The families that read each metric, by any of these catalogues."""
    return families_by_metric(definitions(engine))


def definitions(engine: Engine) -> set[Definition]:
    """The meaning of each metric in the lake's catalogues and in the shipped one."""
    return {*shipped(), *own_definitions(engine)}


def own_definitions(engine: Engine) -> list[Definition]:
    """The meaning of each metric in the lake's catalogues, in order; none of older agents."""
    try:
        rows = engine.rows(tables.METRIC_DEFINITIONS)
    except TableNotFoundError:  # older agents do not make it
        return []
    listed = ", ".join(f"r.{name}" for name in Definition._fields)
    order = "r.metric, r.family, r.kind, r.unit, r.description"
    sql = f"SELECT DISTINCT {listed} FROM {{rows}} r ORDER BY {order}"
    return [Definition(*row) for row in ask(engine, sql, rows=rows)]
