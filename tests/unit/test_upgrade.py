"""Gold of older versions, taken over by the local engine: older names, and the first layout."""

from __future__ import annotations

import datetime as dt
import shutil
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakehouse import tables
from lakehouse.core import lake as lakes, table_notes
from lakehouse.core.periods import Period, micros
from lakehouse.core.table_faults import older
from lakehouse.core.table_notes import DUE, NOTE, Gap, Noted
from lakehouse.engines import delta_tables
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.errors import LeaseHeldError, OlderGoldError
from lakehouse.rollup import lease
from lakehouse.rollup.gold_tables import EVERY
from lakehouse.rollup.upgrade import upgrade
from lakehouse.slo import attainment
from lakehouse.slo.openslo import objective_files
from tests import rollups
from tests.lake_builder import BASE
from tests.rollups import hours, rolled, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from lakehouse.tables import Table

pytestmark = pytest.mark.slow

MONDAY = dt.datetime(2026, 11, 16, 23, tzinfo=dt.UTC)
HOUR, WINDOW = dt.timedelta(hours=1), dt.timedelta(minutes=5)
HOUR_US, WINDOW_US = 3_600_000_000, 300_000_000
LATER = {"date", "spill_sum_us"}
COMPARED: Final = (tables.SUBJECTS, *tables.OF_HOURS, tables.SLA)
"""Tables whose every row stays as it is."""


def engine_of(lake: Path) -> LocalEngine:
    return LocalEngine(lakes.Lake(str(lake)))


def make_older(lake: Path) -> None:
    """Give the tables of gold their older names, with the same rows and notes of tables."""
    for table in EVERY:
        own = DeltaTable(f"{lake}/{table.path}")
        before = older(table)
        if before.path == table.path and before.column_names == table.column_names:
            continue
        rows = own.to_pyarrow_table().select(table.column_names)
        renamed = rows.rename_columns(before.column_names)
        properties = own.metadata().configuration
        shutil.rmtree(lake / table.path)
        partition_by = [before.column_names[table.positions[one]] for one in table.partition_by]
        made = DeltaTable.create(
            f"{lake}/{before.path}", renamed.schema, partition_by=partition_by,
            configuration=properties, description="of old", raise_if_key_not_exists=False,
        )  # fmt: skip
        if rows.num_rows:
            write_deltalake(made, renamed, mode="append")
    note(lake)


def note(lake: Path) -> None:
    """Note the older tables in the last row of gold/progress, as a rollup of theirs did."""
    found = {}
    for table in (*table_notes.CHECKED, tables.PROGRESS):
        delta = DeltaTable(f"{lake}/{older(table).path}")
        found[older(table).name] = Noted(str(delta.metadata().id), delta.version())
    delta = DeltaTable(f"{lake}/{tables.PROGRESS.path}")
    rows = delta.to_pyarrow_table()
    notes = pa.array([table_notes.of_tables(found)] * len(rows), pa.list_(pa.string()))
    at = rows.column_names.index("tables")
    write_deltalake(delta, rows.set_column(at, "tables", notes), mode="overwrite")


@pytest.fixture(scope="module")
def current(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hours of two clusters, rolled up and stated; bronze then holds the last hour only."""
    lake = tmp_path_factory.mktemp("current") / "lake"
    for number, cluster in enumerate(("cluster-a", "cluster-b"), 1):
        hours(number, 0, rollups.HOUR, cluster=cluster).commit(lake)
    engine = engine_of(lake)
    rolled(engine)
    period = Period(BASE, BASE + 2 * HOUR)
    found = attainment.read(engine, objective_files.load(), period, micros(period.end))
    assert attainment.publish(engine, found, period)
    for table in (tables.RUNS, tables.SCRAPES):
        DeltaTable(f"{lake}/{table.path}").delete(f"start < '{(BASE + HOUR).isoformat()}'")
    return lake


@pytest.fixture(scope="module")
def current_rows(current: Path) -> dict[str, list[str]]:
    return rows_of(current, COMPARED)


@pytest.fixture(scope="module")
def older_names(current: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with older names."""
    lake = tmp_path_factory.mktemp("older") / "lake"
    shutil.copytree(current, lake)
    make_older(lake)
    return lake


@pytest.fixture
def before(older_names: Path, tmp_path: Path) -> Path:
    lake = tmp_path / "before"
    shutil.copytree(older_names, lake)
    return lake


def names_below(lake: Path) -> set[str]:
    return {one.name for one in (lake / "gold").iterdir()}


def assert_taken_over(lake: Path, current: Path, current_rows: dict[str, list[str]]) -> None:
    assert names_below(lake) == {table.name for table in EVERY}
    assert rows_of(lake, COMPARED) == current_rows
    for table in EVERY:
        made, wanted = (DeltaTable(f"{one}/{table.path}") for one in (lake, current))
        assert made.schema() == wanted.schema()
        assert made.metadata().partition_columns == wanted.metadata().partition_columns
        assert made.metadata().description == table.comment


def test_older_names_become_these_and_every_row_stays(
    before: Path, current: Path, current_rows: dict[str, list[str]]
) -> None:
    told: list[str] = []
    assert upgrade(engine_of(before), told.append) == len(told) == len(EVERY) - 2
    assert {table.name for table in EVERY} - set(told) == {"lease", "metrics"}  # nothing is renamed
    assert told[-1] == "progress"
    assert_taken_over(before, current, current_rows)
    names = [one for one in tables.PROGRESS.column_names if one != "tables"]
    ours, theirs = (
        engine_of(one).collect(engine_of(one).rows(tables.PROGRESS)).to_pylist()[0]
        for one in (before, current)
    )
    assert [ours[one] for one in names] == [theirs[one] for one in names]
    assert upgrade(engine_of(before)) == 0
    assert rolled(engine_of(before)).hours == 0
    assert rows_of(before, COMPARED) == current_rows


def test_nothing_reads_or_writes_gold_with_older_names(before: Path) -> None:
    engine = engine_of(before)
    for table in (tables.PROGRESS, tables.SUBJECTS, tables.TOPICS, tables.SLA):
        with pytest.raises(OlderGoldError, match="Run jmxlake upgrade LAKE first"):
            engine.rows(table)
    with pytest.raises(OlderGoldError, match="Run jmxlake upgrade LAKE first"):
        rolled(engine)
    assert "sources" not in names_below(before)


@pytest.mark.parametrize("most", [1, 4, 27])
def test_killed_takeover_goes_on(
    before: Path, current: Path, current_rows: dict[str, list[str]], most: int
) -> None:
    left = iter(range(most))

    def step(_: str) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        upgrade(engine_of(before), step)
    with pytest.raises(OlderGoldError):
        rolled(engine_of(before))
    upgrade(engine_of(before))
    assert_taken_over(before, current, current_rows)


def test_killed_before_an_older_table_is_dropped(
    before: Path,
    current: Path,
    current_rows: dict[str, list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def drop(self: LocalEngine, table: Table) -> None:  # noqa: ARG001 - of the protocol
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(LocalEngine, "drop", drop)
        with pytest.raises(KeyboardInterrupt):
            upgrade(engine_of(before))
    assert {"sources", "brokers"} <= names_below(before)
    upgrade(engine_of(before))
    assert_taken_over(before, current, current_rows)


def test_takeover_needs_the_lease(before: Path) -> None:
    engine = engine_of(before)
    with (
        lease.hold(engine_of(before), lease.USUAL),
        pytest.raises(LeaseHeldError, match="is rolling up since"),
    ):
        upgrade(engine)
    assert "brokers" in names_below(before)


def test_noted_gaps_stay_and_a_replaced_table_is_in_doubt(before: Path) -> None:
    engine, gap = engine_of(before), Gap(0, HOUR_US, "the table was missing")
    noted = table_notes.properties([gap], due=False)
    engine.set_properties(older(tables.SOURCES), noted)
    engine.set_properties(older(tables.TOPICS), noted)
    clients = before / tables.CLIENTS.path
    rows = DeltaTable(str(clients)).to_pyarrow_table()
    shutil.rmtree(clients)
    write_deltalake(str(clients), rows, partition_by=["date"])
    upgrade(engine)
    for table in (tables.SOURCES, tables.TOPICS):
        found = DeltaTable(f"{before}/{table.path}").metadata().configuration
        assert table_notes.gaps(found) == [gap]
        assert found[DUE] == "false"
    doubted = DeltaTable(str(clients)).metadata().configuration
    assert doubted[DUE] == "true"
    assert "the table was replaced" in doubted[NOTE]


def first_layout(lake: Path, table: Table, rows: Iterable[dict[str, Any]]) -> None:
    """A table as the first version made it: its columns after grain and period."""
    before = older(table)
    kept = [
        delta_tables.stored(column)
        for column in before.columns
        if column.name not in LATER | ({"spill_us"} if table is not tables.SLI else set())
    ]
    text = [pa.field(name, pa.string(), nullable=False) for name in ("grain", "period")]
    shape = pa.schema([*text, *kept])
    delta = DeltaTable.create(
        f"{lake}/{before.path}", shape, partition_by=["grain", "period"],
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


def killed(engine: LocalEngine, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Upgrade gold; before the rebuild after so many the process dies."""
    left, whole = iter(range(most)), engine.rebuild

    def rebuild(table: Table, rows: Any) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        whole(table, rows)

    monkeypatch.setattr(engine, "rebuild", rebuild)
    with pytest.raises(KeyboardInterrupt):
        upgrade(engine)


def test_finest_rows_and_hours_become_two_tables(lake: Path) -> None:
    engine = engine_of(lake)
    assert upgrade(engine) == len(tables.HOURS) + 2
    assert upgrade(engine) == 0
    (hour,) = rows(engine, tables.TOPICS)
    assert (hour["series_seen_us"], hour["date"], hour["before_us"]) == (3, MONDAY.date(), None)
    windows = rows(engine, tables.WINDOWS["topics"])
    assert sorted((row["series_seen_us"], row["date"].day) for row in windows) == [(1, 16), (2, 17)]
    for table in (*tables.HOURS, *tables.WINDOWS.values(), tables.DISTRIBUTIONS, tables.REJECTED):
        made = DeltaTable(f"{lake}/{table.path}")
        assert made.metadata().partition_columns == ["date"]
        assert made.metadata().description == table.comment
        assert [(one.name, one.nullable) for one in made.schema().fields] == [
            (one.name, one.nullable) for one in table.columns
        ]
    assert [row["series_us"] for row in rows(engine, tables.DISTRIBUTIONS)] == [2]
    (row,) = rows(engine, tables.REJECTED)
    assert (row["date"].day, row["row_count"], row["table_name"]) == (17, 2, "runs")


def test_hours_of_sli_are_sums_and_only_what_was_not_good_stays_finest(lake: Path) -> None:
    engine = engine_of(lake)
    upgrade(engine)
    names = ("good_us", "bad_high_us", "seen_us", "before_us")
    found = {row["topic"]: tuple(row[name] for name in names) for row in rows(engine, tables.SLI)}
    assert found == {
        "good": (HOUR_US, 0, HOUR_US, 0),
        # What lies before a later window is in the hour.
        "late": (HOUR_US - WINDOW_US, 0, HOUR_US - WINDOW_US, 0),
        "may": (HOUR_US, 18, HOUR_US, 5),
        "null": (1, 0, None, None),
    }
    kept = [row["topic"] for row in rows(engine, tables.WINDOWS["sli"])]
    assert {topic: kept.count(topic) for topic in kept} == {"late": 11, "may": 12, "null": 1}


@pytest.mark.parametrize("most", range(0, 18, 5))
def test_a_kill_between_commits_loses_and_doubles_nothing(
    lake: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed(engine_of(lake), most, monkeypatch)
    whole = engine_of(lake)
    upgrade(whole)
    assert [row["series_seen_us"] for row in rows(whole, tables.TOPICS)] == [3]
    assert len(rows(whole, tables.WINDOWS["topics"])) == 2
    assert len(rows(whole, tables.SLI)) == 4
    assert len(rows(whole, tables.WINDOWS["sli"])) == 24
    assert len(rows(whole, tables.DISTRIBUTIONS)) == 1
