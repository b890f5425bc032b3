"""The tables of the five questions: their columns, and what makes a row a bad one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lakehouse.report import columns, figures, words
from lakehouse.report.figures import Figure
from lakehouse.report.listing import Column, Draft, figure, names, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse.report.figures import Row

KINDS: Final = {
    "produce": "writing",
    "fetch": "reading",
    "request": "request time",
    "controller_mutation": "topic changes",
}
_INCIDENTS: Final = {"under_min_isr": "under minimum", "leaderless": "no leader"}
_FLAGS: Final = {"known_wrong": "this Kafka version is known to report it wrongly"}


def partition_time(row: Row, stem: str) -> Figure:
    """Time of a topic's partitions together, with what nobody saw of them together."""
    together = row.get("partitions_unknown_us", row.get("unknown_us"))
    return figures.time({**row, "unknown_us": together}, stem)


TOPICS: Final = Draft(
    "Topics",
    "topic",
    (
        columns.one("Topic", "topic"),
        columns.time("Unavailable", "unavailable_any"),
        columns.time("Under minimum", "any"),
        Column("Partition-time under", figure(lambda row: partition_time(row, "under"))),
        Column("Partition-time leaderless", figure(lambda row: partition_time(row, "leaderless"))),
        columns.plain("At minimum", "at_min_us", columns.span_us),
        columns.plain("Most at once", "max_concurrent", words.count),
    ),
    "Unavailable: at least one partition was under its minimum or had no leader. "
    "Partition-time adds up over partitions: two for a minute make two minutes.",
    lambda row: figures.badness(row, "unavailable_any", "any", "leaderless"),
)

PARTITIONS: Final = Draft(
    "Partitions",
    "partition",
    (
        columns.subject("Partition", "topic", "partition"),
        columns.time("Under minimum", "under"),
        columns.time("Without a leader", "leaderless"),
        Column(
            "Incidents",
            figure(lambda row: _number(len(row.get("incidents") or ()))),
        ),
    ),
    badness=lambda row: figures.badness(row, "under", "leaderless"),
)


def _what(row: Row) -> str:
    said = _INCIDENTS.get(str(row.get("kind")), "")
    return f"{said}, in planned maintenance" if row.get("planned") else said


INCIDENTS: Final = Draft(
    "Incidents",
    "incident",
    (
        columns.at("Began", "start"),
        Column("Lasted", figure(figures.incident_length)),
        Column("What", text(_what), numeric=False),
        columns.subject("Partition", "topic", "partition"),
        Column(
            "Told by",
            names(lambda row: tuple(figures.name(one) for one in row.get("sources") or ())),
            numeric=False,
        ),
    ),
    badness=lambda row: figures.incident_length(row).order or 0,
)

BROKERS: Final = Draft(
    "Cross-check by broker",
    "broker",
    (
        columns.one("Broker", "source"),
        columns.plain("Broker's own count", "under_min_isr_partition_seconds", columns.span),
        columns.plain("Sum of its partitions", "sum_of_partitions_seconds", columns.span),
        columns.plain("Leaderless", "leaderless_partition_seconds", columns.span),
    ),
    "Partition-time. The first two are read from different beans and should agree, "
    "but for what changed between two readings.",
)

CLIENTS: Final = Draft(
    "Clients",
    "client",
    (
        columns.subject("Client", "user", "client_id"),
        Column(
            "Quota on",
            text(lambda row: KINDS.get(str(row.get("kind")), words.line(row.get("kind")))),
            numeric=False,
        ),
        columns.time("Throttled", "throttled"),
        columns.plain("Mean wait", "throttle_ms_mean", words.milliseconds),
        columns.plain("Longest wait", "throttle_ms_max", words.milliseconds),
        Column("Mean rate", figure(lambda row: _rate(row, "rate_mean"))),
        Column("Highest rate", figure(lambda row: _rate(row, "rate_max"))),
        Column("Quota", figure(lambda row: _rate(row, "quota"))),
    ),
    badness=lambda row: figures.badness(row, "throttled"),
)


def _rate(row: Row, key: str) -> Figure:
    unit = str(row.get("rate_unit") or "")
    return figures.plain(row.get(key), words.quantity(row.get(key), unit))


def _number(value: float) -> Figure:
    return figures.plain(value, words.count(value))


def lagging(row: Row, way: str) -> Figure:
    """How long a topic lagged, with ``copy`` or ``delete``."""
    lag = row.get(way) or {}
    return figures.time({"unknown_us": row.get("unknown_us"), **lag}, "lagging")


def _cautions(row: Row) -> str:
    return "; ".join(_FLAGS.get(flag, words.line(flag)) for flag in row.get("flags") or ())


def tier_badness(row: Row) -> tuple[float, float]:
    """How bad a topic's lag is, uploads and deletions alike."""
    return max(
        figures.badness({"unknown_us": row.get("unknown_us"), **(row.get(way) or {})}, "lagging")
        for way in ("copy", "delete")
    )


def _lag(heading: str, way: str, key: str, write: Callable[[float | None], str]) -> Column:
    def get(row: Row) -> Figure:
        value = (row.get(way) or {}).get(key)
        return figures.plain(value, write(value))

    return Column(heading, figure(get))


TIERS: Final = Draft(
    "Tiered topics",
    "topic",
    (
        columns.one("Topic", "topic"),
        Column("Behind with uploads", figure(lambda row: lagging(row, "copy"))),
        _lag("At most", "copy", "max_bytes", words.size),
        _lag("Segments", "copy", "max_segments", words.count),
        _lag("At the end", "copy", "last_bytes", words.size),
        Column("Behind with deletions", figure(lambda row: lagging(row, "delete"))),
        _lag("At most", "delete", "max_bytes", words.size),
        _lag("At the end", "delete", "last_bytes", words.size),
        Column("Caution", text(_cautions), numeric=False),
    ),
    badness=tier_badness,
)

GROUPS: Final = Draft(
    "Groups",
    "partition",
    (
        columns.one("Group", "group"),
        columns.subject("Partition", "topic", "partition"),
        Column("Offsets lost", figure(figures.offsets)),
    ),
    badness=lambda row: (
        0.5 if row.get("offsets_high") is None else row["offsets_high"],
        figures.badness(row)[1],
    ),
)

REMOTE_TOPICS: Final = Draft(
    "Remote reads by topic",
    "topic",
    (
        columns.one("Topic", "topic"),
        columns.plain("Requests", "requests", words.count),
        columns.plain("Read", "bytes", words.size),
        columns.plain("Errors", "errors", words.count),
    ),
    badness=lambda row: (row.get("bytes") or 0, row.get("requests") or 0),
)

REMOTE_BROKERS: Final = Draft(
    "Remote reads by broker",
    "broker",
    (
        columns.one("Broker", "source"),
        columns.plain("Reads", "reads", words.count),
        columns.plain("Mean time of a read", "read_ms_mean", words.milliseconds),
    ),
    badness=lambda row: row.get("reads") or 0,
)


def _bounded(row: Row, name: str, write: Callable[[float | None], str]) -> Figure:
    """A count with its bounds; where only these are known, they are the figure."""
    value, low, high = (row.get(f"{name}{end}") for end in ("", "_low", "_high"))
    between = f"{write(low)} to {write(high)}" if low != high else ""
    if value is None:
        known = None not in (low, high)
        return Figure((between or write(high)) if known else words.NOT_KNOWN, order=high)
    return Figure(write(value), between, order=value)


def _index(heading: str, name: str, write: Callable[[float | None], str] = words.count) -> Column:
    return Column(heading, figure(lambda row: _bounded(row, name, write)))


REMOTE_INDEXES: Final = Draft(
    "Fetches of indexes by broker",
    "broker",
    (
        columns.one("Broker", "source"),
        Column("Basis", text(lambda row: words.line(row.get("basis"))), numeric=False),
        _index("Index fetches", "fetches"),
        _index("Round trips", "round_trips"),
        _index("Time", "seconds", columns.span),
        _index("If one fetched all", "at_once"),
        _index("Round trips saved", "saved"),
        _index("Time saved", "saved_seconds", columns.span),
    ),
    "Measured: a plugin's beans count what went to the store. Modelled: 3 index fetches for each "
    "segment read, which are the bytes read by the mean size of a segment in the store; at most "
    "one segment a read. What one fetch of all indexes would save is modelled everywhere: of 2 to "
    "3 fetches a segment one is left where measured, of 3 where modelled.",
    lambda row: row.get("round_trips_high") or 0,
)
