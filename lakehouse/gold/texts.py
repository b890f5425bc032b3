"""SQL texts of incidents and events. They need no engine, so the views are printed without one."""

import functools
from importlib import resources
from typing import Final

from lakehouse.gold.event_kinds import kind_sql

INSTANTS: Final = {"started_at": "s", "ended_at": "e"}
"""Instants of a stretch, with the names that the text has for them in microseconds."""

SERIES: Final = (
    "cluster", "metric", "level", "topic", "partition_id", "user_name", "client_id",
    "consumer_group",
)  # fmt: skip
"""The columns that identify a series in the text."""

NAMES: Final = (
    *SERIES, "own_source", "s", "e", "lead_us", "tail_us", "worst", "total", "sources",
)  # fmt: skip
"""The columns of ``joined_incidents`` that make an ``Incident``; the first is the cluster."""

COLUMNS: Final = (*SERIES, "source", *INSTANTS, "lead_us", "tail_us", "worst", "total")
"""The columns of gold/incidents that the text reads."""


@functools.cache
def joined_incidents(stretches: str) -> str:
    """Return the common table expressions that end with ``joined_incidents``.

    Args:
        stretches: A table, or a name that the engine replaces.
    """
    series = ", ".join(SERIES)
    return _statement("incidents.sql").replace("{series}", series).replace("{stretches}", stretches)


def stretches(cluster: str = "cluster") -> str:
    """Return the columns that the text reads, of the table itself in the SQL of ``views.sql``.

    Args:
        cluster: The expression of the column ``cluster``.
    """
    others = (
        f"micros({name}) AS {INSTANTS[name]}" if name in INSTANTS else name for name in COLUMNS[1:]
    )
    return ", ".join((f"{cluster} AS cluster", *others))


@functools.cache
def grouped_incidents(slacks: str) -> str:
    """Return the common table expressions from ``joined_incidents`` to ``grouped_incidents``.

    Args:
        slacks: The relation of slacks: a name, or one that the engine replaces.
    """
    sql, (kind, of) = _statement("events.sql"), kind_sql()
    words = {"kind": kind, "of": of, "slacks": slacks, "incident": ", ".join(NAMES)}
    for name, word in words.items():
        sql = sql.replace(f"{{{name}}}", word)
    return sql


def _statement(file: str) -> str:
    """Return the SQL of a file without its comments."""
    sql = resources.files(__package__).joinpath(file).read_text("utf-8")
    return "\n".join(line for line in sql.splitlines() if not line.startswith("--"))
