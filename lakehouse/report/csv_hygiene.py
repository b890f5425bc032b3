"""The CSV tables of what asks to be tidied up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lakehouse.report.csv_columns import (
    CLIENT,
    GROUP,
    OWNED,
    TOPIC,
    USER,
    Column,
    Table,
    section,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse.report.csv_columns import Facts, Row

_KIND: Final = Column("kind", "produce, fetch, request or controller_mutation")
_UNIT: Final = Column("rate_unit", "unit of rates and quota (UCUM)")


def _topics(facts: Facts) -> Iterable[Row]:
    lists = ("replication_one", "no_spare_replica")
    return (
        {"finding": name, **row}
        for name in lists
        for row in (facts.get("hygiene") or {}).get(name) or ()
    )


def _find(row: Row) -> str:
    return str(row["finding"])


def _least(row: Row) -> int:
    return int(bool(row.get("suggested_at_least")))


def _holder(name: str) -> Column:
    meaning = "user" if name == "user" else "client id"
    return Column(
        f"quota_{name}",
        f"{meaning} of the quota in force; empty: it has none",
        lambda row: (row.get("quota_of") or {}).get(name),
    )


TABLES: Final = (
    Table(
        "hygiene_topics", "topic without a replica to spare", _topics,
        (
            Column("finding", "replication_one, or no_spare_replica: all must be in sync", _find),
            TOPIC,
            Column("partitions", "how many partitions it has"),
            Column("replication_factor", "how many replicas"),
            Column("min_insync_replicas", "how many must be in sync"),
            *OWNED,
        ),
    ),
    Table(
        "hygiene_overtaken", "group and topic that retention is about to overtake",
        section("hygiene", "overtaken"),
        (
            GROUP, TOPIC,
            Column("least_seconds", "how long retention leaves it, at least; 0: overtaken now"),
            Column("as_of", "when that was told, UTC"),
            *OWNED,
        ),
    ),
    Table(
        "hygiene_near_quota", "client near its quota", section("hygiene", "near_quota"),
        (
            USER, CLIENT, _KIND,
            Column("rate_max_of_a_broker", "highest rate on one broker, in rate_unit"),
            Column("quota", "the quota in force for it, of each broker, in rate_unit"),
            _holder("user"), _holder("client_id"),
            Column("share", "rate_max_of_a_broker of quota, 1 is all of it"),
            Column("suggested", "a quota that would do, in rate_unit"),
            Column("suggested_at_least", "1: the quota slowed it down, it may need more", _least),
            _UNIT,
            *OWNED,
        ),
    ),
    Table(
        "hygiene_unused_quotas", "quota that nobody used", section("hygiene", "unused_quotas"),
        (
            Column("user", "user of the quota; <default>: all who have none of their own"),
            Column("client_id", "client id of the quota, likewise"),
            _KIND,
            Column("quota", "the quota, of each broker, in rate_unit"),
            _UNIT,
            *OWNED,
        ),
    ),
)  # fmt: skip
