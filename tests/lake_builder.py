"""Bronze as agents write it, made by hand: seconds after a base instant, rows in plain Python.

The tables are written by delta-rs through the agents' own conversion, so that Spark reads in tests
what it reads in production.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable, write_deltalake

from collector.delivery import arrow
from lakehouse import tables

if TYPE_CHECKING:
    from pathlib import Path

BASE = dt.datetime(2026, 11, 16, 10, tzinfo=dt.UTC)  # a Monday
CLUSTER = "cluster-a"


def micros(seconds: float) -> int:
    return int(BASE.timestamp()) * 1_000_000 + round(seconds * 1_000_000)


@dataclass
class Batch:
    """Rows of one commit to each table."""

    agent: str = "agent-1"
    number: int = 1
    runs: list[dict[str, Any]] = field(default_factory=list)
    members: list[dict[str, Any]] = field(default_factory=list)
    scrapes: list[dict[str, Any]] = field(default_factory=list)

    def run(
        self,
        metric: str,
        start: float,
        end: float,
        value: float | None,
        *,
        source: str = "broker-1",
        cluster: str = CLUSTER,
        lead: float = 0.0,
        tail: float = 0.0,
        flags: tuple[str, ...] = (),
        **subject: Any,
    ) -> None:
        """A run of one series, at seconds after the base."""
        row = dict.fromkeys(tables.RUNS.column_names)
        row.update(
            date=micros(start) // 86_400_000_000, cluster=cluster, source=source, metric=metric,
            start=micros(start), end=micros(end), lead_us=round(lead * 1e6),
            tail_us=round(tail * 1e6), value=value, scrapes=1, series=1, flags=list(flags) or None,
            agent=self.agent, batch=self.number,
        )  # fmt: skip
        row.update(subject)
        self.runs.append(row)

    def counter(
        self, metric: str, start: float, end: float, value: float | None, **rest: Any
    ) -> None:
        self.run(metric, start, end, value, flags=(tables.FLAG_INCREASE,), **rest)

    def zeros(
        self, metric: str, start: float, end: float, topic: str, partitions: list[int], **rest: Any
    ) -> None:
        """Partitions of a topic that were zero: one row and a set, or one row of its own."""
        if len(partitions) == 1:
            self.run(metric, start, end, 0.0, topic=topic, partition=partitions[0], **rest)
        elif partitions:
            name = self.set_of(
                "partitions", topic, sorted(partitions), None, rest.get("cluster", CLUSTER)
            )
            self.run(
                metric, start, end, 0.0, topic=topic, series=len(partitions), members=name, **rest
            )

    def idle(
        self,
        metric: str,
        start: float,
        end: float,
        clients: list[tuple[str | None, str | None]],
        **rest: Any,
    ) -> None:
        """Clients that were observed and idle."""
        name = self.set_of("clients", None, None, clients, rest.get("cluster", CLUSTER))
        self.run(metric, start, end, None, series=len(clients), members=name, **rest)

    def set_of(
        self, kind: str, topic: str | None, partitions: Any, clients: Any, cluster: str
    ) -> str:
        name = hashlib.sha256(repr((kind, topic, partitions, clients)).encode()).hexdigest()[:32]
        row = {
            "set": name, "cluster": cluster, "kind": kind, "topic": topic, "partitions": partitions,
            "clients": clients, "agent": self.agent, "batch": self.number,
        }  # fmt: skip
        if row not in self.members:
            self.members.append(row)
        return name

    def scrape(
        self, family: str, start: float, end: float, outcome: str = "ok", *,
        source: str = "broker-1", cluster: str = CLUSTER, error: str | None = None,
    ) -> None:  # fmt: skip
        self.scrapes.append(
            {
                "date": micros(start) // 86_400_000_000,
                "cluster": cluster,
                "source": source,
                "family": family,
                "start": micros(start),
                "end": micros(end),
                "outcome": outcome,
                "scrapes": max(1, round((end - start) / 10)),
                "beans": 10,
                "dropped_series": 0,
                "seconds_total": 0.5,
                "seconds_max": 0.1,
                "interval_us": 10_000_000,
                "max_gap_us": 25_000_000,
                "catalogue": "test",
                "kafka_version": "4.3.1",
                "error": error,
                "agent": self.agent,
                "batch": self.number,
            }
        )

    def commit(self, lake: Path) -> None:
        """Append to bronze; tables are made as agents make them."""
        for table, rows in (
            (tables.MEMBERS, self.members), (tables.RUNS, self.runs), (tables.SCRAPES, self.scrapes)
        ):  # fmt: skip
            delta = made(lake, table)
            if rows:
                ordered = [tuple(row[name] for name in table.column_names) for row in rows]
                write_deltalake(delta, arrow.to_arrow(table, ordered), mode="append")


def made(lake: Path, table: tables.Table) -> DeltaTable:
    """A table, as agents make it."""
    return DeltaTable.create(
        str(lake / table.path),
        schema=arrow.schema(table),
        mode="ignore",
        partition_by=list(table.partition_by),
        configuration=table.properties,
        raise_if_key_not_exists=False,
    )
