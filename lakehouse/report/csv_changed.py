"""The CSV tables of budgets that burn, and of planned maintenance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakehouse.report.csv_columns import OWNED, SUBJECT, VERDICT, Column, Table
from lakehouse.report.subjects import subjects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lakehouse.report.csv_columns import Facts, Row

_KEYS: Final = tuple(column.name for column in (*SUBJECT, *OWNED))
_NAMES: Final = ("clusters", "topics", "users", "clients", "groups", "sources")


def _burns(facts: Facts) -> Iterable[Row]:
    return (
        {**{key: one.get(key) for key in _KEYS}, **pair, "objective": objective.get("name")}
        for objective, one in subjects(facts)
        for pair in one.get("burn") or ()
    )


def _rate(length: str, key: str) -> Callable[[Row], Any]:
    return lambda row: (row.get(f"{length}_rate") or {}).get(key)


def _rates(length: str) -> tuple[Column, ...]:
    return (
        Column(f"{length}_rate", f"rate over {length}; 1 uses the budget up in just its window",
               _rate(length, "rate")),
        Column(f"{length}_rate_low", f"what {length}_rate is at least", _rate(length, "low")),
        Column(f"{length}_rate_high", f"what {length}_rate is at most", _rate(length, "high")),
    )  # fmt: skip


def _planned(facts: Facts) -> Iterable[Row]:
    return facts.get("maintenance") or ()


def _concerned(key: str) -> Callable[[Row], str]:
    return lambda row: " ".join(str(one) for one in row.get(key) or ())


def _without(facts: Facts) -> Iterable[Row]:
    return (
        {**one, "objective": objective.get("name")}
        for objective, one in subjects(facts)
        if one.get("maintenance")
    )


def _left(key: str) -> Callable[[Row], Any]:
    return lambda row: (row.get("without_maintenance") or {}).get(key)


TABLES: Final = (
    Table(
        "burn_rates", "objective, subject and pair of lengths that burns, burnt or may burn",
        _burns,
        (
            *SUBJECT,
            Column("at", "end of both lengths, UTC"),
            Column("long", "the longer length, such as 1h"),
            Column("short", "the shorter one, such as 5m"),
            Column("limit", "rate that both must reach"),
            Column("verdict", "at the end: burning, uncertain, calm or no_data"),
            *_rates("long"),
            *_rates("short"),
            Column("burnt_us", "microseconds of the period in which it burnt for certain"),
            *OWNED,
        ),
    ),
    Table(
        "maintenance", "window of planned maintenance", _planned,
        (
            Column("start", "its start, UTC"),
            Column("end", "its end, UTC"),
            Column("reason", "why, by the file of maintenance"),
            *(
                Column(key, f"patterns of the {key} it concerns, with spaces between; "
                       "empty: whichever", _concerned(key))
                for key in _NAMES
            ),
        ),
    ),
    Table(
        "without_maintenance", "objective and subject that maintenance concerned", _without,
        (
            *SUBJECT,
            VERDICT,
            Column("attainment", "with it, as in attainment.csv, 0 to 1"),
            Column("verdict_without", "without it; empty: nothing is left", _left("verdict")),
            Column("expected_without_us", "microseconds that are left", _left("expected_us")),
            Column("bad_without_us", "microseconds seen bad of them", _left("bad_us")),
            Column("attainment_without", "share of them, 0 to 1", _left("attainment")),
            Column("attainment_without_low", "what it is at least", _left("attainment_low")),
            Column("attainment_without_high", "what it is at most", _left("attainment_high")),
            *OWNED,
        ),
    ),
)  # fmt: skip
