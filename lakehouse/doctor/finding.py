"""What the doctor found: how bad it is, what, where, and what to do."""

from __future__ import annotations

import datetime as dt
from typing import Final, Literal, NamedTuple

from lakehouse.report import words

Severity = Literal["error", "warning", "info"]

Check = Literal[
    "agent_version", "capped", "catalogue", "clock_future", "clock_set", "clock_skew", "dropped",
    "engine", "family", "files", "gap", "kafka_version", "log", "log_growth", "lost_commits",
    "missing", "protocol", "rejected", "restarts", "rollup", "schema", "silent", "spool",
    "uncheckpointed", "unknown", "unread", "unwatched",
]  # fmt: skip
"""What a program goes by; docs/doctor.md says what each means."""

LATE: Final = dt.timedelta(minutes=30)
"""By default: a window, its sealing and two of the longest commit intervals that docs advise."""

ORDER: Final[tuple[Severity, ...]] = ("error", "warning", "info")
"""From what loses data or makes figures wrong, over what will, to what is worth knowing."""

_WHY_LIMIT: Final = 120


class Finding(NamedTuple):
    """One thing that is not as it should be.

    Attributes:
        severity: error: data is lost or unknown now, or cannot be read; warning: it will be, or it
            was; info: to know.
        check: Which check found it; stands in docs/doctor.md.
        where: A table, or a cluster and a source.
        what: One sentence, without names that could hide anything.
        todo: What to do, one sentence.
    """

    severity: Severity
    check: Check
    where: str
    what: str
    todo: str


def span(length: dt.timedelta) -> str:
    """A length of time as people read it."""
    microseconds = round(length.total_seconds() * 1e6)
    return words.duration(microseconds).replace("\u00a0", " ")


def when(at: dt.datetime) -> str:
    """An instant, UTC, to the second."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def named(text: str) -> str:
    """A name from outside, fit to be shown."""
    return words.shorten(words.visible(text))


def why(text: str | None) -> str:
    """A reason from outside, in brackets; nothing where there is none."""
    return f" ({words.line(text, _WHY_LIMIT)})" if text else ""


def counted(number: int, noun: str) -> str:
    """A number with its noun."""
    return words.plural(number, noun).replace("\u00a0", " ")


def some(names: list[str], most: int = 3) -> str:
    """The first names of a list, and how many others there are."""
    shown = ", ".join(named(one) for one in names[:most])
    others = len(names) - most
    return f"{shown} and {counted(others, 'other')}" if others > 0 else shown


def place(cluster: str, source: str) -> str:
    """Where: a source of a cluster."""
    return f"{named(cluster)} {named(source)}"
