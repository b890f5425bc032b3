"""Columns that nobody declared: their names never enter SQL, and their values reach no reader."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable, write_deltalake

from lakehouse import tables
from lakehouse.cli.main import main
from lakehouse.core import lake as lakes
from lakehouse.core.delta_rs import Location
from lakehouse.engines import local_relations
from lakehouse.engines.delta_tables import row_schema
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.engines.relation import Relation
from lakehouse.errors import EngineError, TableLogError, TableSchemaError
from lakehouse.ops import pseudonymize
from tests import hostile_columns, rollups

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse.tables import Table

pytestmark = pytest.mark.slow

TABLES: Final = (*tables.BRONZE, *tables.GOLD, *tables.ROLLUP_STATE)
MANY: Final = tuple(f"column {number}" for number in range(1_000))
HOUR: Final = rollups.HOUR


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake that is rolled up, of two clients and a topic."""
    root = tmp_path_factory.mktemp("clean") / "lake"
    batch = rollups.hours(1, 0, HOUR)
    clients: list[tuple[str | None, str | None]] = [("alice", "app"), (None, "billing")]
    batch.idle("kafka.client.produce.throttle_time", 0, 300, clients)
    batch.commit(root)
    DeltaTable.create(
        f"{root}/{tables.EVENTS.path}",
        schema=row_schema(tables.EVENTS), configuration=tables.EVENTS.properties,
        partition_by=["date"], raise_if_key_not_exists=False,
    )  # fmt: skip
    rollups.prepare(root)
    rollups.local(root)
    return root


@pytest.fixture
def lake(clean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Copy it; afterwards no SQL of a name has written its file."""
    yield from copied(clean, tmp_path, monkeypatch)


def copied(original: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    shutil.copytree(original, folder / "lake")
    elsewhere = folder / "working directory"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    yield folder / "lake"
    assert list(elsewhere.iterdir()) == []


def rows(root: Path, table: Table) -> list[dict[str, Any]]:
    engine = LocalEngine(lakes.at(str(root)))
    found = engine.collect(engine.rows(table)).to_pylist()
    return sorted(found, key=repr)


def run(*arguments: str) -> str:
    """The output of a command that ended well."""
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_table_with_hostile_columns_reads_as_before(clean: Path, lake: Path, table: Table) -> None:
    before = rows(clean, table)
    hostile_columns.add(lake, table, *hostile_columns.NAMES, *MANY)
    after = rows(lake, table)
    without_time = [{k: v for k, v in row.items() if k != "written"} for row in after]
    assert without_time == [{k: v for k, v in r.items() if k != "written"} for r in before]
    assert set().union(*after) <= {*table.column_names, "epoch_hour", "misdated", "written"}


@pytest.mark.parametrize("name", hostile_columns.NAMES, ids=range(len(hostile_columns.NAMES)))
def test_hostile_column_is_not_in_sql(lake: Path, name: str) -> None:
    hostile_columns.add(lake, tables.SUBJECTS, name)
    delta = DeltaTable(f"{lake}/{tables.SUBJECTS.path}")
    text = local_relations.of_files(tables.SUBJECTS, delta, [], None)
    (hostile,) = tables.SUBJECTS.undeclared(field.name for field in delta.schema().fields)
    assert hostile == name
    clean_text = local_relations.of_files(
        tables.SUBJECTS, DeltaTable(f"{lake}/{tables.SUBJECTS.path}", version=0), [], None
    )
    assert text == clean_text


@pytest.fixture(scope="module")
def altered(clean: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lake with new hours in bronze, and with hostile columns in every table."""
    root = tmp_path_factory.mktemp("altered") / "lake"
    shutil.copytree(clean, root)
    rollups.hours(2, 5 * HOUR).commit(root)
    for table in TABLES:
        hostile_columns.add(root, table, *hostile_columns.NAMES)
    return root


@pytest.fixture
def hostile(altered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Copy it; afterwards no SQL of a name has written its file."""
    yield from copied(altered, tmp_path, monkeypatch)


def test_rollup_with_hostile_columns_writes_the_same_rows(hostile: Path, clean: Path) -> None:
    other = hostile.parent / "other"
    shutil.copytree(clean, other)
    rollups.hours(2, 5 * HOUR).commit(other)
    run("rollup", str(other), "--engine", "local", "--tidy", "never")
    run("rollup", str(hostile), "--engine", "local", "--tidy", "never")
    of = (*tables.OF_HOURS, tables.SUBJECTS)
    assert rollups.rows_of(hostile, of) == rollups.rows_of(other, of)
    assert any(len(rows(hostile, table)) > len(rows(clean, table)) for table in of)
    run("rollup", str(hostile), "--engine", "local", "--tidy", "now", "--since", "2026-11-16")
    assert rollups.rows_of(hostile, of) == rollups.rows_of(other, of)
    run("verify", str(hostile), "--engine", "local")


def test_report_and_explain_ignore_hostile_columns(hostile: Path, clean: Path) -> None:
    said = []
    for root in (clean, hostile):
        file = hostile.parent / f"{root.name}.json"
        run("report", str(root), "--json", str(file))
        facts = json.loads(file.read_text())
        said.append({key: facts[key] for key in facts if key != "generated_at"})
    assert said[0] == said[1]
    texts = [run("explain", str(root), "t").splitlines() for root in (clean, hostile)]
    told = [[line for line in text if not line.startswith("jmxlake: ")] for text in texts]
    assert told[0] == told[1] != []


def test_weekly_with_hostile_columns_publishes_statements(hostile: Path) -> None:
    assert rows(hostile, tables.SLA) == []
    run("weekly", str(hostile), "--engine", "local")
    published = rows(hostile, tables.SLA)
    assert published
    assert {*published[0]} <= {*tables.SLA.column_names, "epoch_hour", "misdated"}


@pytest.mark.parametrize("table", tables.GOLD, ids=lambda table: table.name)
def test_export_with_hostile_columns_has_the_declared(hostile: Path, table: Table) -> None:
    filled = rows(hostile, table)
    file = hostile.parent / "rows.parquet"
    result = CliRunner().invoke(
        main, ["export", str(hostile), table.name, "--format", "parquet", "--out", str(file)]
    )
    assert (result.exit_code == 0) == bool(filled), result.output
    if filled:
        assert pq.read_schema(file).names == list(table.column_names)


def test_doctor_names_unknown_columns_escaped(hostile: Path) -> None:
    result = CliRunner().invoke(main, ["doctor", str(hostile), "--json"])
    assert result.exit_code == 4, result.output
    findings = json.loads(result.output)["findings"]
    found = {one["where"]: one for one in findings if one["check"] == "unknown_columns"}
    assert found.keys() == {table.path for table in TABLES}
    assert found[tables.RUNS.path]["severity"] == "error"
    assert found[tables.TOPICS.path]["severity"] == "warning"
    assert f"{len(hostile_columns.NAMES)} columns" in found[tables.TOPICS.path]["what"]
    assert [one for one in findings if one["check"] in {"unknown", "schema"}] == []
    text = CliRunner().invoke(main, ["doctor", str(hostile)]).output
    assert text.isprintable() or not set(text) & {"\x1b", "\x07", "\u202e", "\t"}


def test_doctor_of_a_clean_lake_has_no_unknown_columns(clean: Path) -> None:
    result = CliRunner().invoke(main, ["doctor", str(clean), "--json"])
    checks = {one["check"] for one in json.loads(result.output)["findings"]}
    assert "unknown_columns" not in checks


def test_maintain_refuses_hostile_columns_in_one_line(hostile: Path) -> None:
    result = CliRunner().invoke(main, ["maintain", str(hostile)])
    assert result.exit_code == 3
    assert "another schema" in result.output
    assert not set(result.output) & {"\x1b", "\x07", "\u202e"}


def test_forget_with_hostile_columns_renames_everywhere(hostile: Path) -> None:
    run("forget", str(hostile), "alice", "--as", "nobody")
    assert dict(pseudonymize.find(Location(str(hostile)), "alice")) != {}
    assert sum(dict(pseudonymize.find(Location(str(hostile)), "alice")).values()) == 0
    assert dict(pseudonymize.find(Location(str(hostile)), "nobody"))[tables.MEMBERS.path] == 1
    delta = DeltaTable(f"{hostile}/{tables.MEMBERS.path}")
    assert tables.MEMBERS.undeclared(field.name for field in delta.schema().fields)


def test_name_with_nul_is_refused_in_one_line(lake: Path) -> None:
    hostile_columns.add(lake, tables.SUBJECTS, "nul\0")
    with pytest.raises(TableSchemaError, match=r"column nul\\u0000 contains a NUL"):
        rows(lake, tables.SUBJECTS)
    result = CliRunner().invoke(main, ["export", str(lake), "subjects", "--format", "csv"])
    assert (result.exit_code, result.output.count("\n")) == (1, 1)


@pytest.mark.parametrize("name", hostile_columns.RESERVED)
def test_column_of_a_change_feed_does_not_hide_new_rows(clean: Path, lake: Path, name: str) -> None:
    rollups.hours(2, 5 * HOUR).commit(lake)
    hostile_columns.add(lake, tables.RUNS, name)
    before = len(rows(clean, tables.SOURCES))
    assert rollups.local(lake).how == "recovered"
    assert len(rows(lake, tables.SOURCES)) > before


@pytest.mark.parametrize("table", [tables.RUNS, tables.SOURCES], ids=lambda table: table.name)
def test_hostile_columns_of_data_files_are_not_read(clean: Path, lake: Path, table: Table) -> None:
    """The log does not name them: who may write a file chooses its columns."""
    before = rows(clean, table)
    for file in (lake / table.path).rglob("*.parquet"):
        whole = pq.read_table(file, partitioning=None)
        more = [*hostile_columns.NAMES, *hostile_columns.RESERVED, "DATE", "date", "Cluster"]
        for name in (name for name in more if name not in whole.column_names):
            whole = whole.append_column(name, pa.array([7] * whole.num_rows))
        pq.write_table(whole, file)
    for row in (after := rows(lake, table)):
        row.pop("written", None)
    for row in before:
        row.pop("written", None)
    assert after == before


def test_file_without_declared_columns_has_null_rows(lake: Path) -> None:
    (file,) = (lake / tables.SUBJECTS.path).glob("*.parquet")
    number = len(rows(lake, tables.SUBJECTS))
    pq.write_table(pa.table({hostile_columns.NAMES[0]: [1] * number}), file)
    assert [row["cluster"] for row in rows(lake, tables.SUBJECTS)] == [None] * number


@pytest.mark.parametrize(
    "name",
    # Its folder has this name, for which delta-rs takes no control characters.
    [one for one in hostile_columns.NAMES if len(one) < 200 and not {*one} & {*"\n\x07\\"}],
    ids=lambda name: repr(name)[:20],
)
def test_hostile_partition_column_is_not_read(lake: Path, name: str) -> None:
    before = rows(lake, tables.SUBJECTS)
    whole = DeltaTable(f"{lake}/{tables.SUBJECTS.path}").to_pyarrow_table()
    shutil.rmtree(lake / tables.SUBJECTS.path)
    odd = whole.append_column(name, pa.array(["'; x"] * whole.num_rows))
    write_deltalake(f"{lake}/{tables.SUBJECTS.path}", odd, partition_by=[name])
    assert rows(lake, tables.SUBJECTS) == before


def test_partition_column_with_backslash_is_refused(lake: Path) -> None:
    whole = DeltaTable(f"{lake}/{tables.SUBJECTS.path}").to_pyarrow_table()
    shutil.rmtree(lake / tables.SUBJECTS.path)
    odd = whole.append_column("\\", pa.array(["x"] * whole.num_rows))
    write_deltalake(f"{lake}/{tables.SUBJECTS.path}", odd, partition_by=["\\"])
    with pytest.raises(TableLogError, match="not a file below the table"):
        rows(lake, tables.SUBJECTS)


def test_partition_values_are_text(lake: Path) -> None:
    value = f"'] ; {hostile_columns.NAMES[0]}"
    whole = DeltaTable(f"{lake}/{tables.SUBJECTS.path}").to_pyarrow_table()
    shutil.rmtree(lake / tables.SUBJECTS.path)
    at = whole.column_names.index("cluster")
    odd = whole.set_column(at, "cluster", pa.array([value] * whole.num_rows))
    write_deltalake(f"{lake}/{tables.SUBJECTS.path}", odd, partition_by=["cluster"])
    assert {row["cluster"] for row in rows(lake, tables.SUBJECTS)} == {value}


def test_declared_column_of_another_type_is_refused(lake: Path) -> None:
    shutil.rmtree(lake / tables.SUBJECTS.path)
    odd = pa.table({"cluster": [{"\x1b[31m": 1}], "kind": ["topic"]})
    write_deltalake(f"{lake}/{tables.SUBJECTS.path}", odd)
    with pytest.raises(TableSchemaError, match=r"cluster is struct<\\u001b\[31m:bigint>, not"):
        rows(lake, tables.SUBJECTS)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1; SELECT 2",
        f"COPY (SELECT 1) TO '{hostile_columns.WRITTEN}'",
        f"SELECT 1; COPY (SELECT 1) TO '{hostile_columns.WRITTEN}'; SELECT 2",
        "SET threads = 1",
        "",
    ],
)
def test_engine_runs_one_select(lake: Path, sql: str) -> None:
    engine = LocalEngine(lakes.at(str(lake)))
    with pytest.raises(EngineError, match="not one SELECT"):
        engine.collect(Relation(sql))


@pytest.mark.parametrize(
    "sql",
    [
        "FROM read_text('{outside}')",
        "FROM read_text('{lake}/../outside.txt')",
        "FROM glob('{outside}*')",
        "FROM read_text('/etc/hostname')",
        "FROM read_parquet('https://127.0.0.1:1/x.parquet')",
        "FROM read_parquet('s3://bucket/x.parquet')",
        "FROM sqlite_scan('{outside}', 't')",
    ],
)
def test_engine_reads_nothing_outside_the_lake(lake: Path, sql: str) -> None:
    outside = lake.parent / "outside.txt"
    outside.write_text("secret")
    engine = LocalEngine(lakes.at(str(lake)))
    with pytest.raises(EngineError, match=r"disabled|does not exist|not loaded|autoload"):
        engine.collect(Relation(sql.format(outside=outside, lake=lake)))


def test_engine_settings_are_locked(lake: Path) -> None:
    engine = LocalEngine(lakes.at(str(lake)))
    names = ("enable_external_access", "lock_configuration", "autoload_known_extensions")
    listed = ", ".join(f"current_setting('{name}') AS {name}" for name in names)
    (row,) = engine.collect(Relation(f"SELECT {listed}")).to_pylist()
    assert row == dict(zip(names, (False, True, False), strict=True))


def moved(folder: Path, disk: Path) -> None:
    """Move a folder to another disk, and leave a link to it."""
    folder.rename(disk)
    folder.symlink_to(disk)


def test_lake_with_linked_folders_is_read(lake: Path) -> None:
    """Read a lake behind a link; a folder of tables and two tables in it are links as well."""
    before = {table: rows(lake, table) for table in TABLES}
    for number, linked in enumerate(("bronze/runs", "gold/topics", "gold", "")):
        moved(lake / linked, lake.parent / f"disk {number}")
    assert {table: rows(lake, table) for table in TABLES} == before
    rollups.hours(2, 5 * HOUR).commit(lake)
    run("rollup", str(lake), "--engine", "local", "--tidy", "never")
    assert len(rows(lake, tables.TOPICS)) > len(before[tables.TOPICS])


def test_link_within_a_table_is_refused_in_one_line(lake: Path) -> None:
    folder = next((lake / tables.RUNS.path).glob("date=*"))
    moved(folder, lake.parent / "another disk")
    with pytest.raises(TableLogError, match="is a symbolic link to"):
        rows(lake, tables.RUNS)
