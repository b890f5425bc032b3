"""Incidents: the stretches of gold/incidents joined over hours and sources, by one SQL text.

The report, ``explain``, charts, events and the views use this text (``incidents.sql``), so their
incidents are equal.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from lakehouse.core.periods import Span
from lakehouse.engines.engine import Engine, ask
from lakehouse.engines.relation import Relation, Rows, select
from lakehouse.gold.texts import COLUMNS, INSTANTS, NAMES, joined_incidents


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


def relation(stretches: Rows, where: str = "true", cluster: str = "r.cluster") -> Relation:
    """Return ``joined_incidents`` as a relation.

    Args:
        stretches: Rows of gold/incidents.
        where: A condition on ``r``.
        cluster: The expression of the column ``cluster`` on ``r``; can also separate periods.
    """
    names = (f"r.{name} AS {INSTANTS.get(name, name)}" for name in COLUMNS[1:])
    chosen = ", ".join((f"{cluster} AS cluster", *names))
    read = select(f"SELECT {chosen} FROM {{rows}} r WHERE {where}", rows=stretches)
    joining = joined_incidents("{stretches}")
    return select(f"WITH {joining} SELECT i.* FROM joined_incidents i", stretches=read)


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
