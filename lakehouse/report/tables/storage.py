"""Storage of topics: disk use, time until retention.bytes, tiered storage, and the cost by team.

Costs are the use of each owner's topics, clients and groups.
"""

import math
from dataclasses import replace
from typing import Any, Final

from lakehouse.core import display
from lakehouse.report import evidence, figures
from lakehouse.report.facts.fields import LABELS, Rows
from lakehouse.report.facts.sections import remote_storage, tier_lag
from lakehouse.report.facts.sections.capacity import CAPACITY_QUESTION, StoredTopic
from lakehouse.report.figures import Facts, Row, length, value_at
from lakehouse.report.owners import GIB, MONTH_SECONDS, Account
from lakehouse.report.tables.section import Claim, Part, counted, section
from lakehouse.report.tables.table_spec import Cell, Column, TableSpec, most, size


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
        Column.name("Topic", "topic"),
        Column.number("On disk, mean", "disk_bytes_mean", size),
        Column.of("retention.bytes", _limit, "retention_bytes"),
        Column.of("Fullest partition", _fullest, "full_share_max", "verdict"),
        Column.word("Trend", "fills", "verdict"),
        Column.of("Full in", _full_in, "reached_us", "verdict"),
    ),
    worst=_first_full,
)


def _stored(facts: Facts) -> Part:
    decided = evidence.decide_by_coverage(facts, CAPACITY_QUESTION)
    rows = STORED.bad_rows(STORED.all_rows(facts))
    if not decided.is_answered or not rows:
        return Part.of([decided.reason or "0 topics"])
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
        first, left = STORED.columns[0].cell(rows[0]), _full_in(rows[0])
        said.append(f"{first.sentence} reaches retention.bytes first, in {left.sentence}")
    said.append(decided.coverage_clause("topic"))
    return Part.of(said, [STORED.listing(facts)])


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
        Column.name("Topic", "topic"),
        Column.time("Upload lag", "copy.lagging_us"),
        Column.peak("Waiting for upload, max", "copy.max_bytes", size),
        Column.time("Deletion lag", "delete.lagging_us"),
        Column.peak("Waiting for deletion, max", "delete.max_bytes", size),
        Column.count("Failed uploads", "copies_failed"),
        Column.count("Failed deletions", "deletions_failed"),
        Column.of("Metric", _flags, "flags", is_figure=False),
    ),
    worst=_badness,
    quiet="had no lag",
)

BROKERS: Final = TableSpec(
    rows=Rows(tier_lag.TierBroker, "tier_lag.brokers", ("held_back_us",)),
    caption="Brokers throttled by their copy quota",
    noun="broker",
    columns=(
        Column.name("Broker", "source"),
        Column.time("Throttled", "held_back_us"),
        Column.peak("Wait, max", "held_back_ms_max", display.milliseconds),
        Column.peak("Copy rate, max", "copy_rate_max", lambda rate: f"{size(rate)}/s"),
    ),
    worst=most("held_back_us"),
)

WAITING: Final = TableSpec(
    rows=Rows(
        tier_lag.LaggingPartition,
        "tier_lag.partitions",
        ("waiting_bytes_max", "deletable_bytes_max"),
    ),
    caption="Partitions with segments that wait for upload or deletion",
    noun="partition",
    columns=(
        Column.name("Topic", "topic"),
        Column.number("Partition", "partition", str),
        Column.peak("Waiting for upload, max", "waiting_bytes_max", size),
        Column.peak("Longest upload", "upload_seconds_max", display.seconds),
        Column.peak("Waiting for deletion, max", "deletable_bytes_max", size),
        Column.peak("Failed deletions, max", "deletions_failed_max"),
    ),
    worst=most("waiting_bytes_max", "deletable_bytes_max"),
)

ORPHANS: Final = TableSpec(
    rows=Rows(tier_lag.OrphanedPartition, "tier_lag.orphans", ("bytes_max",)),
    caption="Deleted topics with segments in remote storage",
    noun="partition of a deleted topic",
    columns=(
        Column.name("Topic", "topic"),
        Column.number("Partition", "partition", str),
        Column.peak("In remote storage, max", "bytes_max", size),
        Column.peak("Segments, max", "segments_max"),
    ),
    worst=most("bytes_max"),
)

HELD: Final = TableSpec(
    rows=Rows(tier_lag.HeldTopic, "tier_lag.held_topics"),
    caption="Topics with delayed uploads",
    noun="topic",
    columns=(
        Column.name("Topic", "topic"),
        Column.number("remote.copy.lag.ms", "copy_lag_ms"),
        Column.number("remote.copy.lag.bytes", "copy_lag_bytes"),
    ),
    unknown="",
)

READ: Final = TableSpec(
    rows=remote_storage.QUESTION.bad[0],
    caption="Topics read from remote storage",
    noun="tiered topic",
    columns=(
        Column.name("Topic", "topic"),
        Column.count("Requests", "requests"),
        Column.count("Read", "bytes", size),
        Column.count("Errors", "errors"),
    ),
    worst=most("bytes", "requests"),
)

READERS: Final = TableSpec(
    rows=Rows(remote_storage.ReadingBroker, "remote_reads.brokers", ("held_back_us",)),
    caption="Brokers throttled by their fetch quota",
    noun="broker",
    columns=(
        Column.name("Broker", "source"),
        Column.time("Throttled", "held_back_us"),
        Column.peak("Wait, max", "held_back_ms_max", display.milliseconds),
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
        remote_storage.QUESTION,
        Claim(
            READ,
            lambda row: size(row.get("bytes")),
            "read from remote storage",
            worst="most from",
        ),
        Claim(READERS, _throttled, "throttled by a fetch quota", is_own=False),
    ),
)


def _owner(row: Row) -> Cell:
    names = (figures.name(row[key]) for key in LABELS if row.get(key) is not None)
    return Cell.names(dict.fromkeys(names), ("no owner",))


def _some(column: Column, nouns: str) -> Column:
    """Return a column with the number of subjects that its figure leaves out."""
    path = f"not_known.{nouns}"

    def cell(row: Row) -> Cell:
        missing = value_at(row, path) or 0
        text = f"without {display.plural(missing, nouns.removesuffix('s'))}" if missing else ""
        return column.cell(row)._replace(bounds=text)

    return replace(column, cell=cell, keys=(*column.keys, path))


def _share(share: float | None) -> str:
    return "" if share is None else display.share(share, 0)


def _gib_months(byte_seconds: float | None) -> str:
    if byte_seconds is None:
        return display.NOT_KNOWN
    return f"{byte_seconds / MONTH_SECONDS / GIB:,.1f}" if byte_seconds else "0"


def _cost(row: Row) -> str:
    cost, currency = row.get("cost"), row.get("currency")
    if cost is None:
        return display.NOT_KNOWN
    return f"{cost:,.2f}" + (f"\u00a0{display.line(currency)}" if currency is not None else "")


ACCOUNTS: Final = TableSpec(
    rows=Rows(Account, "owners.accounts"),
    caption="Owners",
    noun="owner",
    columns=(
        Column.of("Owner", _owner, *LABELS, is_figure=False),
        Column.number("Topics", "topics"),
        Column.number("Clients", "clients"),
        Column.number("Groups", "groups"),
        Column.number("Highest budget used", "highest_used", _share),
        Column.number("Total budget used", "total_used", _share),
        _some(Column.number("Throttled", "throttled_us", length), "clients"),
        _some(Column.between("Messages lost (offsets)", "offsets"), "groups"),
        Column.number("Uploaded", "uploaded_bytes", size),
        Column.number("Read back", "read_bytes", size),
        _some(
            Column.number("Stored (GiB-months)", "stored_byte_seconds", _gib_months), "topics"
        ),
        Column.number("On disk (GiB-months)", "disk_byte_seconds", _gib_months),
        Column.of("Cost", _cost, "cost"),
    ),
    file="owners",
    unknown="",
)  # fmt: skip


def _costs(facts: Facts) -> Part | None:
    if not facts.get("owners"):
        return None
    accounts, currency = facts["owners"]["accounts"], facts["owners"].get("currency")
    owned = [row for row in accounts if any(row.get(key) for key in LABELS)]
    unowned: Row = next((row for row in accounts if row not in owned), {})
    teams = {row["team"] for row in owned if row.get("team") is not None}
    said = [display.plural(len(teams), "team")]
    said += [
        f"{display.plural(unowned[key], key[:-1])} without an owner"
        for key in ("topics", "clients", "groups")
        if unowned.get(key)
    ]
    cost = "The owners file has no prices, so the table has no costs."
    if currency is not None:
        cost = f"Costs are in {display.line(currency)} and include known amounts only."
    rows = [{**row, "currency": currency} for row in accounts]
    listing = ACCOUNTS.listing({**facts, "owners": None}, rows)
    return Part.of(said, [listing], [cost])


COSTS: Final = section("owners", "Cost by team", _costs)
