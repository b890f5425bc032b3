"""Gold of the first layout, changed in place by the local engine."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakehouse import tables
from lakehouse.core import lake as lakes
from lakehouse.engines import delta_tables
from lakehouse.engines.completeness import details
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.rollup.table_schemas import EVERY, of_first_layout, upgrade

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from lakehouse.tables import Table

pytestmark = pytest.mark.slow

MONDAY = dt.datetime(2026, 11, 16, 23, tzinfo=dt.UTC)
HOUR, WINDOW = dt.timedelta(hours=1), dt.timedelta(minutes=5)
HOUR_US, WINDOW_US = 3_600_000_000, 300_000_000
LATER = {"date", "spill_sum_us"}


def first_layout(lake: Path, table: Table, rows: Iterable[dict[str, Any]]) -> None:
    """A table as the first version made it: its columns after grain and period."""
    kept = [
        delta_tables.stored(column)
        for column in table.columns
        if column.name not in LATER | ({"spill_us"} if table is not tables.SLI else set())
    ]
    text = [pa.field(name, pa.string(), nullable=False) for name in ("grain", "period")]
    shape = pa.schema([*text, *kept])
    delta = DeltaTable.create(
        f"{lake}/{table.path}", shape, partition_by=["grain", "period"],
        configuration=table.properties, description="of old",
    )  # fmt: skip
    whole = [
        dict.fromkeys(shape.names) | {"period": f"{row['window']:%Y-%m-%d}"} | row for row in rows
    ]
    write_deltalake(delta, pa.Table.from_pylist(whole, shape), mode="append")


def sli(window: dt.datetime, topic: str, good: int, **more: int) -> dict[str, Any]:
    bad = {name: more.pop(name, 0) for name in ("bad_us", "bad_low_us", "bad_high_us")}
    row = {"grain": "5m", "cluster": "c", "window": window, "objective": "o", "topic": topic}
    return row | bad | {"good_us": good, "seen_us": WINDOW_US, "spill_us": 0} | more


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    topic = {"cluster": "c", "metric": "m", "topic": "t"}
    for table in tables.HOURS:
        subject = topic if table is tables.TOPICS else {}
        rows = [
            subject | {"grain": grain, "window": window, "observed_us": us}
            for grain, window, us in (
                ("5m", MONDAY, 1), ("5m", MONDAY + HOUR, 2), ("1h", MONDAY, 3), ("1d", MONDAY, 4),
                ("1w", MONDAY, 5),
            )
        ]  # fmt: skip
        if table is tables.SLI:
            rows = [sli(MONDAY + number * WINDOW, "good", WINDOW_US) for number in range(12)]
            rows += [sli(MONDAY + number * WINDOW, "late", WINDOW_US) for number in range(1, 12)]
            rows[-1]["spill_us"] = 7
            possible = [sli(MONDAY + number * WINDOW, "may", WINDOW_US) for number in range(12)]
            possible[0] |= {"bad_high_us": 9, "spill_us": 5}
            possible[3] |= {"bad_high_us": 9, "spill_us": 6}
            never = [sli(MONDAY + HOUR, "null", 1) | {"spill_us": None, "seen_us": None}]
            rows += possible + never
        first_layout(tmp_path, table, rows if subject or table is tables.SLI else [])
    bucket = {"cluster": "c", "metric": "m", "sign": 1, "bucket": 3, "value_seconds": 1.0}
    first_layout(tmp_path, tables.DISTRIBUTIONS, [
        bucket | {"grain": grain, "window": MONDAY, "duration_us": us}
        for grain, us in (("5m", 1), ("1h", 2), ("1d", 3))
    ])  # fmt: skip
    first_layout(tmp_path, tables.REJECTED, [
        {"grain": "5m", "cluster": "c", "window": MONDAY + HOUR, "reason": "why", "table": "runs",
         "rows": 2, "start": MONDAY},
    ])  # fmt: skip
    return tmp_path


def rows(engine: LocalEngine, table: Table) -> list[dict[str, Any]]:
    return list(engine.collect(engine.rows(table)).to_pylist())


def upgraded(engine: LocalEngine, most: int = 99) -> None:
    """Upgrade gold; before the commit after so many the process dies."""
    left = iter(range(most))

    def check() -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    upgrade(
        engine,
        of_first_layout(details(engine, EVERY)),
        details(engine, EVERY),
        300,
        check,
        lambda _: None,
    )


def test_finest_rows_and_hours_become_two_tables(lake: Path) -> None:
    engine = LocalEngine(lakes.Lake(str(lake)))
    assert len(of_first_layout(details(engine, EVERY))) == len(tables.HOURS) + 2
    upgraded(engine)
    assert of_first_layout(details(engine, EVERY)) == []
    (hour,) = rows(engine, tables.TOPICS)
    assert (hour["observed_us"], hour["date"], hour["spill_us"]) == (3, MONDAY.date(), None)
    windows = rows(engine, tables.WINDOWS["topics"])
    assert sorted((row["observed_us"], row["date"].day) for row in windows) == [(1, 16), (2, 17)]
    for table in (*tables.HOURS, *tables.WINDOWS.values(), tables.DISTRIBUTIONS, tables.REJECTED):
        made = DeltaTable(f"{lake}/{table.path}")
        assert made.metadata().partition_columns == ["date"]
        assert made.metadata().description == table.comment
        assert [(one.name, one.nullable) for one in made.schema().fields] == [
            (one.name, one.nullable) for one in table.columns
        ]
    assert [row["duration_us"] for row in rows(engine, tables.DISTRIBUTIONS)] == [2]
    (row,) = rows(engine, tables.REJECTED)
    assert (row["date"].day, row["rows"], row["table"]) == (17, 2, "runs")


def test_hours_of_sli_are_sums_and_only_what_was_not_good_stays_finest(lake: Path) -> None:
    engine = LocalEngine(lakes.Lake(str(lake)))
    upgraded(engine)
    names = ("good_us", "bad_high_us", "seen_us", "spill_us")
    found = {row["topic"]: tuple(row[name] for name in names) for row in rows(engine, tables.SLI)}
    assert found == {
        "good": (HOUR_US, 0, HOUR_US, 0),
        # The spill of a later window lies in the hour.
        "late": (HOUR_US - WINDOW_US, 0, HOUR_US - WINDOW_US, 0),
        "may": (HOUR_US, 18, HOUR_US, 5),
        "null": (1, 0, None, None),
    }
    kept = [row["topic"] for row in rows(engine, tables.WINDOWS["sli"])]
    assert {topic: kept.count(topic) for topic in kept} == {"late": 11, "may": 12, "null": 1}


@pytest.mark.parametrize("most", range(0, 18, 3))
def test_a_kill_between_commits_loses_and_doubles_nothing(lake: Path, most: int) -> None:
    whole = LocalEngine(lakes.Lake(str(lake)))
    with pytest.raises(KeyboardInterrupt):
        upgraded(whole, most)
    upgraded(whole)
    assert [row["observed_us"] for row in rows(whole, tables.TOPICS)] == [3]
    assert len(rows(whole, tables.WINDOWS["topics"])) == 2
    assert len(rows(whole, tables.SLI)) == 4
    assert len(rows(whole, tables.WINDOWS["sli"])) == 24
    assert len(rows(whole, tables.DISTRIBUTIONS)) == 1
