"""Storage of topics: disk use, time until retention.bytes, tiered-storage lag, remote reads."""

import math
from typing import Any, Final

from lakehouse.core import display
from lakehouse.report import figures
from lakehouse.report.facts.fields import Rows
from lakehouse.report.facts.sections import remote_reads, tier_lag
from lakehouse.report.facts.sections.remote_reads import ReadingBroker
from lakehouse.report.facts.sections.storage import QUESTION, StoredTopic
from lakehouse.report.facts.sections.tier_lag import (
    HeldTopic,
    LaggingPartition,
    OrphanedPartition,
    TierBroker,
)
from lakehouse.report.figures import Facts, Row, length
from lakehouse.report.tables.section import (
    Claim,
    Part,
    counted,
    coverage_clause,
    figures_known,
    plain,
    section,
    unanswered,
)
from lakehouse.report.tables.table_spec import (
    Cell,
    Column,
    TableSpec,
    count,
    most,
    name,
    number,
    of,
    peak,
    size,
    text_of,
    time,
    word,
)


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


STORED: Final = TableSpec(
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
    rows = STORED.bad_rows(STORED.all_rows(facts))
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
        first = text_of(STORED.columns[0].content.cell(rows[0]))
        said.append(f"{first} reaches retention.bytes first, in {text_of(_full_in(rows[0]))}")
    said.append(coverage_clause(decided, "topic"))
    return Part(plain("; ".join(filter(None, said))), (STORED.listing(facts),))


DISK: Final = section("disk", "Disk use", _stored)


_WAYS: Final = {"copy": "upload", "delete": "deletion"}


def _worse(row: Row) -> str:
    """Return the way in which a topic lagged longer."""
    return max(_WAYS, key=lambda way: figures.badness(_lag(row, way), "lagging"))


def _lag(row: Row, way: str) -> Row:
    return {"unknown_us": row.get("unknown_us"), **(row.get(way) or {})}


def _badness(row: Row) -> Any:
    return figures.badness(_lag(row, _worse(row)), "lagging"), row.get("copies_failed") or 0


def _lagged(row: Row) -> str:
    way = _worse(row)
    lag = _lag(row, way)
    if not lag.get("lagging_us"):
        return f"{failures(row)} failed" if failures(row) else "lag not known"
    peak_ = lag.get("max_bytes")
    least = "" if lag.get("unknown_us") == 0 else "at least "
    waiting = f", peak {least}{size(peak_)}" if peak_ else ""
    return f"{_WAYS[way]} lag {length(lag['lagging_us'])}{waiting}"


def failures(row: Row) -> str:
    """Return how many uploads and deletions failed; empty without any."""
    failed = {"upload": row.get("copies_failed"), "deletion": row.get("deletions_failed")}
    return " and ".join(display.plural(round(n), noun) for noun, n in failed.items() if n)


def _flags(row: Row) -> Cell:
    is_wrong = "known_wrong" in (row.get("flags") or ())
    return Cell(("unreliable in this Kafka version" if is_wrong else "",))


TOPICS: Final = TableSpec(
    rows=tier_lag.QUESTION.bad[0],
    caption="Tiered topics with lag or failures",
    noun="tiered topic",
    columns=(
        Column("Topic", name("topic")),
        Column("Upload lag", time("lagging", "copy")),
        Column("Waiting for upload, max", peak("copy.max_bytes", size)),
        Column("Deletion lag", time("lagging", "delete")),
        Column("Waiting for deletion, max", peak("delete.max_bytes", size)),
        Column("Failed uploads", count("copies_failed")),
        Column("Failed deletions", count("deletions_failed")),
        Column("Metric", of(_flags, "flags", is_figure=False)),
    ),
    worst=_badness,
    quiet="had no lag",
)

BROKERS: Final = TableSpec(
    rows=Rows(TierBroker, "tier_lag.brokers", ("held_back_us",)),
    caption="Brokers throttled by their copy quota",
    noun="broker",
    columns=(
        Column("Broker", name("source")),
        Column("Throttled", time("held_back")),
        Column("Wait, max", peak("held_back_ms_max", display.milliseconds)),
        Column("Copy rate, max", peak("copy_rate_max", lambda rate: f"{size(rate)}/s")),
    ),
    worst=most("held_back_us"),
)

WAITING: Final = TableSpec(
    rows=Rows(
        LaggingPartition, "tier_lag.partitions", ("waiting_bytes_max", "deletable_bytes_max")
    ),
    caption="Partitions with segments that wait for upload or deletion",
    noun="partition",
    columns=(
        Column("Topic", name("topic")),
        Column("Partition", number("partition", str)),
        Column("Waiting for upload, max", peak("waiting_bytes_max", size)),
        Column("Longest upload", peak("upload_seconds_max", display.seconds)),
        Column("Waiting for deletion, max", peak("deletable_bytes_max", size)),
        Column("Failed deletions, max", peak("deletions_failed_max")),
    ),
    worst=most("waiting_bytes_max", "deletable_bytes_max"),
)

ORPHANS: Final = TableSpec(
    rows=Rows(OrphanedPartition, "tier_lag.orphans", ("bytes_max",)),
    caption="Deleted topics with segments in remote storage",
    noun="partition of a deleted topic",
    columns=(
        Column("Topic", name("topic")),
        Column("Partition", number("partition", str)),
        Column("In remote storage, max", peak("bytes_max", size)),
        Column("Segments, max", peak("segments_max")),
    ),
    worst=most("bytes_max"),
)

HELD: Final = TableSpec(
    rows=Rows(HeldTopic, "tier_lag.held_topics"),
    caption="Topics with delayed uploads",
    noun="topic",
    columns=(
        Column("Topic", name("topic")),
        Column("remote.copy.lag.ms", number("copy_lag_ms")),
        Column("remote.copy.lag.bytes", number("copy_lag_bytes")),
    ),
    unknown="",
)

READ: Final = TableSpec(
    rows=remote_reads.QUESTION.bad[0],
    caption="Topics read from remote storage",
    noun="tiered topic",
    columns=(
        Column("Topic", name("topic")),
        Column("Requests", count("requests")),
        Column("Read", count("bytes", size)),
        Column("Errors", count("errors")),
    ),
    worst=most("bytes", "requests"),
)

READERS: Final = TableSpec(
    rows=Rows(ReadingBroker, "remote_reads.brokers", ("held_back_us",)),
    caption="Brokers throttled by their fetch quota",
    noun="broker",
    columns=(
        Column("Broker", name("source")),
        Column("Throttled", time("held_back")),
        Column("Wait, max", peak("held_back_ms_max", display.milliseconds)),
    ),
    worst=most("held_back_us"),
)


def _kept(row: Row) -> str:
    return size(row.get("bytes_max"))


def _throttled(row: Row) -> str:
    return length(row.get("held_back_us"))


TIERED: Final = section(
    "tiered",
    "Tiered storage",
    counted(
        tier_lag.QUESTION,
        Claim(TOPICS, _lagged),
        Claim(BROKERS, _throttled, "throttled by a copy quota", is_own=False),
        Claim(ORPHANS, _kept, "left in remote storage", is_own=False),
        more=(WAITING, HELD),
    ),
    counted(
        remote_reads.QUESTION,
        Claim(
            READ,
            lambda row: size(row.get("bytes")),
            "read from remote storage",
            worst="most from",
        ),
        Claim(READERS, _throttled, "throttled by a fetch quota", is_own=False),
    ),
)
