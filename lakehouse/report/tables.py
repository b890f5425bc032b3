"""The tables of the report: which columns each has and what makes a row a bad one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lakehouse.report import figures, words
from lakehouse.report.listing import Cell, Column, Draft, figure, names, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse.report.figures import Figure, Row

KINDS: Final = {
    "produce": "writing",
    "fetch": "reading",
    "request": "request time",
    "controller_mutation": "topic changes",
}
_INCIDENTS: Final = {"under_min_isr": "under minimum", "leaderless": "no leader"}
_OUTCOMES: Final = {"refused": "refused", "timeout": "no answer in time", "skipped": "skipped"}
_FLAGS: Final = {"known_wrong": "this Kafka version is known to report it wrongly"}


def _subject(heading: str, *keys: str) -> Column:
    return Column(heading, names(lambda row: figures.subject(row, keys)), numeric=False)


def _one(heading: str, key: str) -> Column:
    """A name whose column says what it is."""
    return Column(heading, names(lambda row: figures.single(row.get(key))), numeric=False)


def _time(heading: str, stem: str) -> Column:
    return Column(heading, figure(lambda row: figures.time(row, stem)))


def _plain(heading: str, key: str, write: Callable[[float | None], str]) -> Column:
    return Column(heading, figure(lambda row: figures.plain(row.get(key), write(row.get(key)))))


def _span(seconds: float | None) -> str:
    return words.duration(None if seconds is None else round(seconds * 1_000_000))


def _span_us(us: float | None) -> str:
    return words.duration(None if us is None else round(us))


def _at(heading: str, key: str) -> Column:
    def cell(row: Row) -> Cell:
        return Cell(text=words.day_and_time(row.get(key)), order=row.get(key))

    return Column(heading, cell, numeric=False)


TOPICS: Final = Draft(
    "Topics",
    "topic",
    (
        _one("Topic", "topic"),
        _time("Unavailable", "unavailable_any"),
        _time("Under minimum", "any"),
        _time("Partition-time under", "under"),
        _time("Partition-time leaderless", "leaderless"),
        _plain("At minimum", "at_min_us", _span_us),
        _plain("Most at once", "max_concurrent", words.count),
    ),
    "Unavailable: at least one partition was under its minimum or had no leader. "
    "Partition-time adds up over partitions: two for a minute make two minutes.",
    lambda row: figures.badness(row, "unavailable_any", "any", "leaderless"),
)

PARTITIONS: Final = Draft(
    "Partitions",
    "partition",
    (
        _subject("Partition", "topic", "partition"),
        _time("Under minimum", "under"),
        _time("Without a leader", "leaderless"),
        Column(
            "Incidents",
            figure(lambda row: _number(len(row.get("incidents") or ()))),
        ),
    ),
    badness=lambda row: figures.badness(row, "under", "leaderless"),
)

INCIDENTS: Final = Draft(
    "Incidents",
    "incident",
    (
        _at("Began", "start"),
        Column("Lasted", figure(figures.incident_length)),
        Column("What", text(lambda row: _INCIDENTS.get(str(row.get("kind")), "")), numeric=False),
        _subject("Partition", "topic", "partition"),
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
        _one("Broker", "source"),
        _plain("Broker's own count", "under_min_isr_partition_seconds", _span),
        _plain("Sum of its partitions", "sum_of_partitions_seconds", _span),
        _plain("Leaderless", "leaderless_partition_seconds", _span),
    ),
    "Partition-time. The first two are read from different beans and should agree, "
    "but for what changed between two readings.",
)

CLIENTS: Final = Draft(
    "Clients",
    "client",
    (
        _subject("Client", "user", "client_id"),
        Column(
            "Quota on",
            text(lambda row: KINDS.get(str(row.get("kind")), words.line(row.get("kind")))),
            numeric=False,
        ),
        _time("Throttled", "throttled"),
        _plain("Mean wait", "throttle_ms_mean", words.milliseconds),
        _plain("Longest wait", "throttle_ms_max", words.milliseconds),
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
    return figures.time({**lag, "unknown_us": row.get("unknown_us")}, "lagging")


def _cautions(row: Row) -> str:
    return "; ".join(_FLAGS.get(flag, words.line(flag)) for flag in row.get("flags") or ())


def tier_badness(row: Row) -> tuple[float, float]:
    """How bad a topic's lag is, uploads and deletions alike."""
    return max(
        figures.badness({**(row.get(way) or {}), "unknown_us": row.get("unknown_us")}, "lagging")
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
        _one("Topic", "topic"),
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
        _one("Group", "group"),
        _subject("Partition", "topic", "partition"),
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
        _one("Topic", "topic"),
        _plain("Requests", "requests", words.count),
        _plain("Read", "bytes", words.size),
        _plain("Errors", "errors", words.count),
    ),
    badness=lambda row: (row.get("bytes") or 0, row.get("requests") or 0),
)

REMOTE_BROKERS: Final = Draft(
    "Remote reads by broker",
    "broker",
    (
        _one("Broker", "source"),
        _plain("Reads", "reads", words.count),
        _plain("Mean time of a read", "read_ms_mean", words.milliseconds),
    ),
    badness=lambda row: row.get("reads") or 0,
)


def _outcomes(row: Row) -> str:
    counted = row.get("outcomes") or {}
    return ", ".join(f"{_OUTCOMES.get(k, words.line(k))} {n:,}" for k, n in counted.items())


def _share(row: Row) -> Figure:
    share = row.get("percent")
    return figures.plain(share, words.percent(None if share is None else share / 100, "down"))


SOURCES: Final = Draft(
    "Who was read, and how much of the time",
    "source",
    (
        _one("Source", "source"),
        _one("Family", "family"),
        Column("Seen", figure(_share)),
        _plain("Not seen", "unknown_us", _span_us),
        _plain("Read every", "interval_us", _span_us),
        Column("Readings", text(_outcomes), numeric=False),
        _one("First error", "first_error"),
    ),
    badness=lambda row: figures.badness(row)[1],
)


def _why(row: Row) -> str:
    outcome = row.get("outcome")
    return _OUTCOMES.get(str(outcome), words.line(outcome)) if outcome else "never read"


GAPS: Final = Draft(
    "Gaps",
    "gap",
    (
        _at("From", "start"),
        _at("To", "end"),
        _one("Source", "source"),
        _one("Family", "family"),
        Column("Why", text(_why), numeric=False),
        _one("Error", "error"),
    ),
    badness=lambda row: figures.incident_length(row).order or 0,
)


def _happening(row: Row) -> str:
    return words.line(row.get("kind")).replace("_", " ")


EVENTS: Final = Draft(
    "What changed, in the order it was noticed",
    "event",
    (
        _at("When", "at"),
        Column("What", text(_happening), numeric=False),
        _one("Source", "source"),
        _subject("Of", "topic", "partition", "user", "client_id", "group"),
        _one("Before", "old"),
        _one("After", "new"),
    ),
)
