"""Tiered storage: uploads and deletions that lagged, and what clients read back."""

from typing import Any, Final

from lakehouse.core import display
from lakehouse.report import figures
from lakehouse.report.evidence import Rows
from lakehouse.report.facts.kafka import remote_reads, tier_lag
from lakehouse.report.facts.kafka.remote_reads import ReadingBroker
from lakehouse.report.facts.kafka.tier_lag import TierBroker
from lakehouse.report.figures import Row, length
from lakehouse.report.tables.contents import count, most, name, of, peak, size, time
from lakehouse.report.tables.section import Claim, counted, section
from lakehouse.report.tables.table_spec import Cell, Column, TableSpec

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


def _throttled(row: Row) -> str:
    return length(row.get("held_back_us"))


SECTION: Final = section(
    "tiered",
    "Tiered storage",
    counted(
        tier_lag.QUESTION,
        Claim(TOPICS, _lagged),
        Claim(BROKERS, _throttled, "throttled by a copy quota", is_own=False),
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
