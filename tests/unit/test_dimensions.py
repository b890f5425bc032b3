"""gold/metrics, gold/objectives and gold/owners: their rows, and when a rollup writes them."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import write_deltalake

from collector.delivery.arrow import to_arrow
from lakehouse import tables
from lakehouse.core.lake import Lake
from lakehouse.core.metrics import UNAVAILABLE
from lakehouse.core.objective import TimeWindow
from lakehouse.engines.engine import ask
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.report import owners
from lakehouse.rollup import dimensions
from lakehouse.slo.openslo import objective_files
from tests import rollups
from tests.gold_builder import put
from tests.lake_builder import made

if TYPE_CHECKING:
    from pathlib import Path

SHIPPED = objective_files.load()
NOON = dt.datetime(2026, 11, 16, 12, tzinfo=dt.UTC)
OWN = ("acme.queue", "acme", ["broker"], "gauge", "{order}", "idle", "Orders in the queue.")

Row = dict[str, Any]


@pytest.fixture
def engine(tmp_path: Path) -> LocalEngine:
    """Return the engine of a lake with gold's empty tables."""
    rollups.prepare(tmp_path)
    return LocalEngine(Lake(str(tmp_path)))


def update(engine: LocalEngine, *objectives: Any) -> list[str]:
    """Run an update and return the changed tables."""
    changed: list[str] = []
    dimensions.update(engine, objectives or SHIPPED, lambda: None, changed.append)
    return changed


def rows(engine: LocalEngine, table: tables.Table) -> list[Row]:
    return engine.collect(engine.rows(table)).to_pylist()


def metric(name: str, *own: Any) -> Row:
    (found,) = (row for row in dimensions.metrics(own) if row["metric"] == name)
    return found


def test_second_update_commits_nothing(engine: LocalEngine) -> None:
    updated = [table.name for table in tables.DIMENSIONS if table is not tables.OWNERS]
    assert updated[:2] == ["metrics", "objectives"]
    assert update(engine) == updated
    assert update(engine) == []
    assert update(engine, *reversed(SHIPPED)) == [], "the order of objectives has no meaning"
    written = (tables.METRICS, tables.OBJECTIVES, tables.OWNERS)
    assert [engine.detail(table).version for table in written] == [1, 1, 0]


def test_metric_has_unit_meaning_and_source() -> None:
    row = metric("kafka.topic.remote_copy_lag.bytes")
    assert (row["unit"], row["kind"], row["level"]) == ("By", "gauge", "topic")
    assert (row["families"], row["read_from"], row["is_own"]) == (["tiered"], ["jmx"], False)
    assert row["since"]
    assert row["meaning"]


def test_metric_of_several_families_has_one_row() -> None:
    row = metric("kafka.partition.under_min_isr")
    assert row["families"] == ["metadata_log", "min_isr", "partitions"]
    assert row["read_from"] == ["admin", "jmx", "metadata_log"]
    assert row["since"] == "1.0.0", "of JMX"


def test_own_metric_is_listed_once_and_never_replaces_a_shipped_one() -> None:
    changed = ("jvm.cpu_load", "jvm", ["broker"], "counter", "m", "idle", "Something else.")
    other = (*OWN[:4], "{other}", *OWN[5:])
    found = metric("acme.queue", OWN, other, changed)
    assert (found["unit"], found["is_own"], found["level"]) == ("{order}", True, None)
    assert metric("jvm.cpu_load", changed)["unit"] == "1"


def test_catalogue_of_the_lake_is_read(engine: LocalEngine, tmp_path: Path) -> None:
    _, family, roles, kind, unit, absent, meaning = OWN
    row = ("c", OWN[0], family, roles, kind, unit, absent, 0, 0, meaning, "agent-1")
    table = tables.METRIC_DEFINITIONS
    write_deltalake(made(tmp_path, table), to_arrow(table, [row]), mode="append")
    update(engine)
    (found,) = (one for one in rows(engine, tables.METRICS) if one["metric"] == OWN[0])
    assert (found["meaning"], found["unit"], found["roles"]) == (meaning, unit, roles)


def test_every_objective_names_a_metric_with_a_row() -> None:
    known = {row["metric"] for row in dimensions.metrics(())}
    assert UNAVAILABLE in known
    assert {name for one in SHIPPED for name in one.metrics} <= known


def test_changed_objective_ends_and_starts_a_version(engine: LocalEngine) -> None:
    first = next(one for one in SHIPPED if not (one.where or one.match))
    others = [one for one in SHIPPED if one is not first]
    update(engine)
    stricter = replace(
        first, target=0.5, window=TimeWindow(28, "d", None), match={"topic": ("a*",)}
    )
    assert update(engine, stricter, *others) == ["objectives"]
    found = [row for row in rows(engine, tables.OBJECTIVES) if row["objective"] == first.name]
    before, after = sorted(found, key=lambda row: row["valid_from"])
    assert before["valid_until"] == after["valid_from"]
    assert (before["target"], before["applies_to"]) == (first.target, None)
    assert after["valid_until"] is None
    assert (after["target"], after["time_window"], after["is_rolling"]) == (0.5, "28d", True)
    assert after["applies_to"] == "topic=a*"


def test_removed_objective_ends_and_a_returned_one_starts_again(engine: LocalEngine) -> None:
    first, *others = SHIPPED
    for objectives in (SHIPPED, others, SHIPPED):
        update(engine, *objectives)
    found = [row for row in rows(engine, tables.OBJECTIVES) if row["objective"] == first.name]
    assert sorted(row["valid_until"] is None for row in found) == [False, True]
    current = "SELECT count(*) FROM {rows} r WHERE r.valid_until IS NULL"
    assert ask(engine, current, rows=engine.rows(tables.OBJECTIVES)) == [(len(SHIPPED),)]


def test_owners_are_of_subjects_and_only_a_change_commits(
    engine: LocalEngine, tmp_path: Path
) -> None:
    root, seen = engine.lake.root, dict.fromkeys(("first_seen", "last_seen"), NOON)
    for key in (
        {"kind": "topic", "topic": "payments.in"}, {"kind": "topic", "topic": "scratch"},
        {"kind": "client", "user_name": "svc", "client_id": "billing-1"},
        {"kind": "quota", "client_id": "billing-1"}, {"kind": "source", "source": "broker-1"},
    ):  # fmt: skip
        put(root, tables.SUBJECTS, {"cluster": "c", **key, **seen})
    file = tmp_path / "owners.yaml"
    file.write_text(
        'owners:\n- {team: payments, topics: "payments.*", clients: "billing-*"}\n'
        '- {owner: Ada, tier: gold, sources: "broker-*"}\n'
    )
    loaded = owners.load(file)
    for _ in range(2):
        dimensions.update_owners(engine, loaded.labels)
    assert engine.detail(tables.OWNERS).version == 1
    found = {
        (row["kind"], row["topic"] or row["client_id"] or row["source"]): (
            row["team"], row["owner"], row["tier"]
        )
        for row in rows(engine, tables.OWNERS)
    }  # fmt: skip
    assert found == {
        ("topic", "payments.in"): ("payments", None, None),
        ("client", "billing-1"): ("payments", None, None),
        ("source", "broker-1"): (None, "Ada", "gold"),
    }
    dimensions.update_owners(engine, owners.NO_OWNERS.labels)
    assert rows(engine, tables.OWNERS) == []
