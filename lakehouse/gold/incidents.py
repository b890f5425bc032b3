"""Incidents: the stretches of gold/incidents joined over hours and sources, by one SQL text.

The report, ``explain``, charts, events and the views use this text (``incidents.sql``), so their
incidents are equal.
"""

import functools
from collections.abc import Sequence
from importlib import resources
from typing import Any, Final, NamedTuple

from lakehouse.core.periods import Span
from lakehouse.engines.engine import Engine, ask
from lakehouse.engines.relation import Relation, Rows, select

_INSTANTS: Final = {"started_at": "s", "ended_at": "e"}
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

_COLUMNS: Final = (*SERIES, "source", *_INSTANTS, "lead_us", "tail_us", "worst", "total")
"""The columns of gold/incidents that the text reads."""


class Incident(NamedTuple):
    """A span in which a series was bad without a break, by any source; instants in microseconds.

    Attributes:
        metric: The metric in bronze.
        level: Level of the series: partition, topic, client, group or source.
        source: The source of a series of level source, otherwise None.
        start: First instant at which a source reported it.
        end: End of the last reading that reported it.
        lead_us: It may have started this long before ``start``.
        tail_us: It may have ended this long before ``end``.
        worst: Greatest value that one source reported.
        total: Sum of the values of its runs; of a counter its increase.
        sources: The sources that reported it, in order.
    """

    metric: str
    level: str
    topic: str | None
    partition: int | None
    user: str | None
    client_id: str | None
    group: str | None
    source: str | None
    start: int
    end: int
    lead_us: int
    tail_us: int
    worst: float
    total: float
    sources: tuple[str, ...]

    @property
    def span(self) -> Span:
        """From its start to its end."""
        return (self.start, self.end)


@functools.cache
def text(stretches: str) -> str:
    """Return the common table expressions that end with ``joined_incidents``.

    Args:
        stretches: A table, or a name that the engine replaces.
    """
    sql = resources.files(__package__).joinpath("incidents.sql").read_text("utf-8")
    lines = "\n".join(line for line in sql.splitlines() if not line.startswith("--"))
    return lines.replace("{series}", ", ".join(SERIES)).replace("{stretches}", stretches)


def relation(stretches: Rows, where: str = "true", cluster: str = "r.cluster") -> Relation:
    """Return ``joined_incidents`` as a relation.

    Args:
        stretches: Rows of gold/incidents.
        where: A condition on ``r``.
        cluster: The expression of the column ``cluster`` on ``r``; can also separate periods.
    """
    names = (f"r.{name} AS {_INSTANTS.get(name, name)}" for name in _COLUMNS[1:])
    chosen = ", ".join((f"{cluster} AS cluster", *names))
    read = select(f"SELECT {chosen} FROM {{rows}} r WHERE {where}", rows=stretches)
    return select(f"WITH {text('{stretches}')} SELECT i.* FROM joined_incidents i", stretches=read)


def joined(engine: Engine, stretches: Relation, where: str = "true") -> list[Incident]:
    """Return the incidents that stretches make, oldest first; see ``relation``."""
    columns = ", ".join(f"i.{name}" for name in NAMES[1:])
    found = relation(stretches, where)
    rows = ask(engine, f"SELECT {columns} FROM {{found}} i", found=found)
    return sorted(map(incident, rows), key=order)


def incident(row: Sequence[Any]) -> Incident:
    """Return the incident of a row with the columns of ``NAMES`` after the first."""
    return Incident._make((*row[:-1], tuple(sorted(row[-1]))))


def order(one: Incident) -> tuple[str | int, ...]:
    """Return the sort key of incidents: oldest first."""
    names = (one.topic, one.user, one.client_id, one.group, one.source)
    partition = -1 if one.partition is None else one.partition
    return (one.start, one.metric, *(name or "" for name in names), partition, one.end)


def stretches(cluster: str = "cluster") -> str:
    """Return the columns that the text reads, of the table itself in the SQL of ``views.sql``.

    Args:
        cluster: The expression of the column ``cluster``.
    """
    others = (
        f"micros({name}) AS {_INSTANTS[name]}" if name in _INSTANTS else name
        for name in _COLUMNS[1:]
    )
    return ", ".join((f"{cluster} AS cluster", *others))
