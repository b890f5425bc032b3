"""The CSV tables of verdicts, and of what things cost whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakehouse.report.csv_columns import (
    OBJECTIVE,
    OWNED,
    SUBJECT,
    TOPIC,
    UNKNOWN,
    VERDICT,
    Column,
    Table,
    bounded,
    section,
)
from lakehouse.report.subjects import subjects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lakehouse.report.csv_columns import Facts, Row


def _subjects(facts: Facts) -> Iterable[Row]:
    return (
        {
            **subject,
            "objective": one.get("name"),
            **{key: one.get(key) for key in ("target", "window", "method")},
            "window_from": one.get("from"),
            "window_to": one.get("to"),
        }
        for one, subject in subjects(facts)
    )


def _of(when: str, key: str) -> Callable[[Row], Any]:
    return lambda row: (row.get(when) or {}).get(key)


def _not_known(row: Row) -> str:
    counts = (row.get("not_known") or {}).items()
    return " ".join(f"{name}={count}" for name, count in counts if count)


_ATTAINMENT: Final = (
    *SUBJECT,
    Column("target", "share of time that shall be good"),
    Column("method", "how time counts, such as GoodSeconds or Timeslices"),
    Column("window", "the objective's window, such as 1w or 28d"),
    Column("window_from", "start of the time it is stated of, UTC"),
    Column("window_to", "its end, UTC"),
    Column("expected_us", "microseconds in which the subject existed"),
    Column("good_us", "microseconds seen wholly and good"),
    *bounded("bad", "seen bad"),
    UNKNOWN,
    Column("attainment", "good per good and bad time, 0 to 1"),
    Column("attainment_low", "with unknown time bad and bad time at its most"),
    Column("attainment_high", "with unknown time good and bad time at its least"),
    Column("budget_us", "microseconds that may be bad"),
    Column("budget_left_us", "budget_us less bad_us; below 0 it is overspent"),
    VERDICT,
    *OWNED,
)  # fmt: skip

TABLES: Final = (
    Table(
        "verdicts", "objective, worst first", lambda facts: facts.get("verdicts") or (),
        (
            OBJECTIVE,
            Column("title", "the objective in words"),
            Column("target", "share of time that shall be good"),
            VERDICT,
            Column("subjects", "how many subjects were judged"),
            Column("missed", "how many of them missed it"),
            Column("uncertain", "of how many it cannot be said"),
            Column("no_data", "of how many nothing was seen"),
            Column("met", "how many of them met it"),
        ),
    ),
    Table("attainment", "objective and subject", _subjects, _ATTAINMENT),
    Table(
        "attainment_business_hours", "objective and subject, of business hours alone",
        lambda facts: _subjects(facts.get("business_hours") or {}), _ATTAINMENT,
    ),
    Table(
        "restated", "figure that was published otherwise",
        lambda facts: facts.get("restated") or (),
        (
            *SUBJECT,
            Column("stated_at", "when the old one was published, UTC", _of("before", "stated_at")),
            Column("attainment_before", "the old figure, 0 to 1", _of("before", "attainment")),
            Column("bad_before_us", "the old bad time, microseconds", _of("before", "bad_us")),
            Column("verdict_before", "the old verdict", _of("before", "verdict")),
            Column("attainment_now", "the figure now", _of("now", "attainment")),
            Column("bad_now_us", "the bad time now, microseconds", _of("now", "bad_us")),
            Column("verdict_now", "the verdict now", _of("now", "verdict")),
            *OWNED,
        ),
    ),
    Table(
        "tiering_topics", "topic of which the remote store holds or moved something",
        section("tiering", "topics"),
        (
            TOPIC,
            Column("uploaded_bytes", "bytes uploaded to the remote store"),
            Column("read_bytes", "bytes read from it"),
            Column("stored_byte_seconds", "bytes stored there times the seconds they were seen"),
            UNKNOWN,
            *OWNED,
        ),
    ),
    Table(
        "owners", "owner, by the file of owners; nobody's last", section("owners", "accounts"),
        (
            *OWNED,
            Column("topics", "how many topics it has"),
            Column("clients", "how many clients with a quota or throttling"),
            Column("groups", "how many groups that may have lost offsets"),
            *bounded("throttled", "throttled, summed over clients and kinds of quota"),
            Column("uploaded_bytes", "bytes uploaded to the remote store"),
            Column("read_bytes", "bytes read from it"),
            Column("stored_byte_seconds", "bytes stored there times the seconds they were seen"),
            Column("offsets_low", "offsets deleted before they were read, at least"),
            Column("offsets_high", "the same, at most"),
            Column("not_known", "what the sums leave out, such as clients=2", _not_known),
            Column("unknown_us", "microseconds that nobody saw, summed over clients and topics"),
            Column("cost", "of what is known, in the currency of the file of owners"),
        ),
    ),
)  # fmt: skip
