"""The tables of what was seen: sources, their gaps, and events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakehouse.report import columns, figures, words
from lakehouse.report.listing import Column, Draft, figure, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse.report.figures import Figure, Row

_OUTCOMES: Final = {"refused": "refused", "timeout": "no answer in time", "skipped": "skipped"}


def _outcomes(row: Row) -> str:
    counted = row.get("outcomes") or {}
    return ", ".join(f"{_OUTCOMES.get(k, words.line(k))} {n:,}" for k, n in counted.items())


def share(row: Row) -> Figure:
    """How much of the expected time was seen."""
    percent = row.get("percent")
    said = words.percent(None if percent is None else percent / 100, "down")
    return figures.plain(percent, said)


def seen_column() -> Column:
    """How much of the expected time was seen, as a column."""
    return Column("Seen", figure(share))


SOURCES: Final = Draft(
    "Who was read, and how much of the time",
    "source",
    (
        columns.one("Source", "source"),
        columns.one("Family", "family"),
        seen_column(),
        columns.plain("Not seen", "unknown_us", columns.span_us),
        columns.plain("Read every", "interval_us", columns.span_us),
        Column("Readings", text(_outcomes), numeric=False),
        columns.one("First error", "first_error"),
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
        columns.at("From", "start"),
        columns.at("To", "end"),
        columns.one("Source", "source"),
        columns.one("Family", "family"),
        Column("Why", text(_why), numeric=False),
        columns.one("Error", "error"),
    ),
    badness=lambda row: figures.incident_length(row).order or 0,
)


def omitted(facts: Mapping[str, Any]) -> str:
    """That there were more events than are listed, in a sentence; empty where all are."""
    left = facts.get("events_omitted") or {}
    named = {words.line(kind).replace("_", " "): count for kind, count in left.items()}
    told = ", ".join(f"{kind} {count:,} times" for kind, count in named.items())
    return f"Not listed, but noticed later in the cluster: {told}." if told else ""


def _happening(row: Row) -> str:
    return words.line(row.get("kind")).replace("_", " ")


EVENTS: Final = Draft(
    "What changed, in the order it was noticed",
    "event",
    (
        columns.at("When", "at"),
        Column("What", text(_happening), numeric=False),
        columns.one("Source", "source"),
        columns.subject("Of", "topic", "partition", "user", "client_id", "group"),
        columns.one("Before", "old"),
        columns.one("After", "new"),
    ),
)
