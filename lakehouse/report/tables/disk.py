"""Disk use: size of each topic, and the time until its retention.bytes is reached."""

import math
from typing import Any, Final

from lakehouse.core import display
from lakehouse.report.evidence import Rows
from lakehouse.report.facts.storage import QUESTION, StoredTopic
from lakehouse.report.figures import Facts, Row, length
from lakehouse.report.tables.contents import name, number, of, size, text_of, word
from lakehouse.report.tables.section import (
    Part,
    coverage_clause,
    figures_known,
    plain,
    section,
    unanswered,
)
from lakehouse.report.tables.table_spec import Cell, Column, TableSpec


def _first_full(row: Row) -> Any:
    """Sort topics that fill up first, then the largest."""
    left = row.get("reached_us") if row.get("verdict") == "filling" else None
    return -(math.inf if left is None else left), row.get("disk_bytes_mean") or 0.0


def _limit(row: Row) -> Cell:
    value = row.get("retention_bytes")
    return Cell(("none" if value == -1 else size(value),), order=value)


def _fullest(row: Row) -> Cell:
    share = row.get("full_share_max")
    if row.get("verdict") == "unlimited":
        return Cell()
    return Cell((display.percent(share),), order=share)


def _full_in(row: Row) -> Cell:
    if row.get("verdict") != "filling":
        return Cell()
    return Cell((length(row.get("reached_us")),), order=row.get("reached_us"))


TOPICS: Final = TableSpec(
    rows=Rows(StoredTopic, "capacity.topics"),
    caption="Topics on brokers' disks",
    noun="topic",
    columns=(
        Column("Topic", name("topic")),
        Column("On disk, mean", number("disk_bytes_mean", size)),
        Column("retention.bytes", of(_limit, "retention_bytes")),
        Column("Fullest partition", of(_fullest, "full_share_max", "verdict")),
        Column("Trend", word("fills", "verdict")),
        Column("Full in", of(_full_in, "reached_us", "verdict")),
    ),
    worst=_first_full,
)


def _stored(facts: Facts) -> Part:
    decided = figures_known(facts, QUESTION)
    rows = TOPICS.bad_rows(TOPICS.all_rows(facts))
    if not decided.is_answered or not rows:
        return unanswered(decided) if decided.reason else Part("0 topics")
    sizes = [row["disk_bytes_mean"] for row in rows if row.get("disk_bytes_mean") is not None]
    said = []
    if sizes:
        said.append(f"{display.plural(len(sizes), 'topic')} with {size(sum(sizes))}")
    if missing := len(rows) - len(sizes):
        said.append(f"{display.plural(missing, 'topic')} without size data")
    full = sum(row.get("verdict") == "full" for row in rows)
    if full:
        said.append(f"{display.plural(full, 'topic')} at retention.bytes")
    if rows[0].get("verdict") == "filling":
        first = text_of(TOPICS.columns[0].content.cell(rows[0]))
        said.append(f"{first} reaches retention.bytes first, in {text_of(_full_in(rows[0]))}")
    said.append(coverage_clause(decided, "topic"))
    return Part(plain("; ".join(filter(None, said))), (TOPICS.listing(facts),))


SECTION: Final = section("disk", "Disk use", _stored)
