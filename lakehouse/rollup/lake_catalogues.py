"""The meaning of metrics in the catalogues of a lake's agents, and in the shipped one."""

from typing import Any

from lakehouse import tables
from lakehouse.core.metrics import (
    Definition,
    Meanings,
    Trait,
    meanings_of,
    shipped,
    shipped_traits,
)
from lakehouse.engines.engine import Engine, ask
from lakehouse.errors import TableNotFoundError


def meanings(engine: Engine) -> Meanings:
    """Return the families and traits of each metric, from every one of these catalogues."""
    return meanings_of(definitions(engine), {*shipped_traits(), *_own_traits(engine)})


def definitions(engine: Engine) -> set[Definition]:
    """Return the meaning of each metric in the lake's catalogues and in the shipped one."""
    return {*shipped(), *own_definitions(engine)}


def own_definitions(engine: Engine) -> list[Definition]:
    """Return the meaning of each metric in the lake's catalogues, in order."""
    order = "r.metric, r.family, r.kind, r.unit, r.description"
    listed = ", ".join(f"r.{name}" for name in Definition._fields)
    sql = f"SELECT DISTINCT {listed} FROM {{rows}} r ORDER BY {order}"
    return [Definition(*row) for row in _asked(engine, tables.METRIC_DEFINITIONS, sql)]


def _own_traits(engine: Engine) -> list[Trait]:
    listed = ", ".join(f"r.{name}" for name in Trait._fields)
    sql = f"SELECT DISTINCT {listed} FROM {{rows}} r"
    return [Trait(*row) for row in _asked(engine, tables.METRIC_TRAITS, sql)]


def _asked(engine: Engine, table: tables.Table, sql: str) -> list[tuple[Any, ...]]:
    """Return rows of a table that older agents do not create; without it none."""
    try:
        rows = engine.rows(table)
    except TableNotFoundError:
        return []
    return ask(engine, sql, rows=rows)
