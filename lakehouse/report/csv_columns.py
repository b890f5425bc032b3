"""What the CSV tables are made of: columns, and those that several tables share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

Facts = Mapping[str, Any]
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, what it says, and how a row gives it (by default under its name)."""

    name: str
    meaning: str
    get: Callable[[Row], Any] | None = None

    def of(self, row: Row) -> Any:
        """The row's value; None where it is not known."""
        return row.get(self.name) if self.get is None else self.get(row)


@dataclass(frozen=True, slots=True)
class Table:
    """One file: its name without ``.csv``, what a row is, the rows in the facts, the columns."""

    name: str
    each: str
    rows: Callable[[Facts], Iterable[Row]]
    columns: tuple[Column, ...]


_COMMON: Final = (
    Column("cluster", "cluster of the report"),
    Column("from", "start of the report's period, UTC"),
    Column("to", "end of the report's period, UTC"),
)
"""First in every file, so that the files of several weeks or clusters can be put together."""

TOPIC: Final = Column("topic", "topic")
PARTITION: Final = Column("partition", "partition")
USER: Final = Column("user", "authenticated principal; empty: the quota has no user")
CLIENT: Final = Column("client_id", "client id; empty: the quota has no client id")
GROUP: Final = Column("group", "consumer group")
SOURCE: Final = Column("source", "broker or other source that was read")
UNKNOWN: Final = Column("unknown_us", "microseconds that nobody saw")
OBJECTIVE: Final = Column("objective", "name of the objective")
SUBJECT: Final = (OBJECTIVE, TOPIC, PARTITION, USER, CLIENT, GROUP, SOURCE)
"""Whom a judgement is about, and by which objective."""

VERDICT: Final = Column("verdict", "met, missed, uncertain or no_data")


OWNED: Final = (
    Column("team", "team that owns it, by the file of owners"),
    Column("owner", "its owner"),
    Column("tier", "its tier"),
)


def bounded(stem: str, what: str) -> tuple[Column, ...]:
    """A duration and its two bounds."""
    return (
        Column(f"{stem}_us", f"microseconds {what}"),
        Column(f"{stem}_low_us", f"what {stem}_us is at least"),
        Column(f"{stem}_high_us", f"what {stem}_us is at most"),
    )


def section(name: str, key: str) -> Callable[[Facts], Iterable[Row]]:
    """The rows of a section; none where the facts have no such section."""
    return lambda facts: (facts.get(name) or {}).get(key) or ()


def columns(table: Table) -> tuple[Column, ...]:
    """All columns of a file, those first that every file has."""
    return (*_COMMON, *table.columns)
