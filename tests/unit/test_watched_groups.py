"""Groups that count per topic: the first place with groups for the topic (KIP-490)."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable, write_deltalake

from collector.delivery.watched_groups_table import WatchedGroupsTable
from collector.errors import LakeError, LakeSchemaError
from collector.sources.admin.watched_groups import (
    GroupRules,
    Owners,
    Row,
    WatchedGroups,
    owners_of,
)
from collector.spool.spool import Spool
from lakehouse.cli.main import main
from lakehouse.tables import RUNS, WATCHED_GROUPS, watched_groups_fault

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOON = dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC)
SCHEMA = pa.schema(
    {"topic": pa.string(), "groups": pa.list_(pa.string()), "set_by": pa.string(),
     "set_at": pa.timestamp("us", "UTC")}
)  # fmt: skip


def owners(*rows: tuple[str, list[str]]) -> Owners:
    return owners_of(Row(topic, groups) for topic, groups in rows)


@pytest.mark.parametrize(
    ("own", "table", "file", "default", "counted"),
    [
        ("", [], {}, True, "abc"),
        ("", [], {}, False, ""),
        ("", [], {"t": ["a"]}, True, "a"),
        ("", [], {"t": []}, True, ""),
        ("", [], {"other": ["a"]}, False, ""),
        ("", [("t", ["b"])], {"t": ["a"]}, True, "b"),
        ("", [("t", ["!*"])], {"t": ["a"]}, True, ""),
        ("", [("t", ["!b"])], {}, False, "ac"),
        ("", [("t*", ["b"]), ("t", ["c"]), ("?", ["a"])], {}, True, "c"),
        ("", [("*", ["b"]), ("[t]", ["c"])], {}, True, "c"),
        ("c , a", [("t", ["b"])], {"t": ["b"]}, False, "ac"),
        (" , ", [("t", ["b"])], {}, True, "b"),
        ("*", [], {}, True, ""),
    ],
)
def test_first_place_with_groups_applies(
    own: str, table: list[tuple[str, list[str]]], file: dict[str, list[str]],
    counted: str, *, default: bool,
) -> None:  # fmt: skip
    rules = GroupRules(file, owners(*table), default=default)
    assert "".join(group for group in "abc" if rules.counts(group, "t", own)) == counted


def test_newest_row_of_a_topic_applies() -> None:
    rows = [Row("t", ["new"], 3), Row("t", ["old"], 2), Row("t", ["undated"]), Row("t", [], 4)]
    for order in (rows, rows[::-1]):
        found = owners_of(order)
        assert found.rules == {"t": ("new",)}
        assert [*found.rejected] == ["t"]


@pytest.mark.parametrize(
    ("topic", "groups"),
    [
        ("", ["g"]), (None, ["g"]), ("a b", ["g"]), ("a[", ["g"]), ("a[]", ["g"]), ("é", ["g"]),
        ("x" * 1_001, ["g"]), ("t", []), ("t", None), ("t", ["g", ""]), ("t", ["!"]),
        ("t", [None]), ("t", ["g" * 1_001]), ("t", ["g"] * 201),
    ],
)  # fmt: skip
def test_invalid_row_is_rejected_and_others_apply(
    topic: str | None, groups: list[str | None] | None
) -> None:
    found = owners_of([Row(topic, groups), Row("good-*", ["!console-*"])])
    assert found.rules == {"good-*": ("!console-*",)}
    ((shown, why),) = found.rejected.items()
    assert shown == (topic or "")[:1_000]
    assert why == watched_groups_fault(topic, groups)


def test_patterns_beyond_the_limit_are_rejected() -> None:
    found = owners(*((f"{'x' * (n // 10 + 1)}{n}*", ["g"]) for n in range(203)), ("name", ["g"]))
    assert (len(found.rules), len(found.rejected)) == (201, 3)
    assert "name" in found.rules


def test_many_stars_do_not_take_long() -> None:
    rules = GroupRules(owners=owners(("*a" * 400 + "b", ["*a" * 400 + "b"])))
    assert rules.counts("a" * 900, "a" * 240)
    assert not GroupRules(owners=owners(("*", ["*a" * 400 + "b"]))).counts("a" * 900, "t")


def test_rules_without_a_topic_are_named() -> None:
    found = owners(("orders", ["g"]), ("gone", ["g"]), ("pay*", ["g"]), ("tmp-*", ["g"]))
    assert [*found.unmatched({"orders", "payments"})] == ["gone", "tmp-*"]


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    with Spool(tmp_path / "spool.db", 1 << 20) as opened:
        yield opened


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    (tmp_path / "lake" / RUNS.path / "_delta_log").mkdir(parents=True)
    return tmp_path / "lake"


def run(lake: Path, *options: str) -> list[dict[str, object]]:
    ran = CliRunner().invoke(main, ["watched-groups", str(lake), "--json", *options])
    assert ran.exit_code == 0, ran.output
    return [json.loads(line) for line in ran.output.splitlines()]


def append(lake: Path, topics: list[str]) -> None:
    """Append rows as any other engine could."""
    rows = [{"topic": topic, "groups": ["g"], "set_at": NOON} for topic in topics]
    table = pa.Table.from_pylist(rows, SCHEMA)
    write_deltalake(str(lake / WATCHED_GROUPS.path), table, mode="append")


def test_command_creates_the_table_and_agents_read_it(lake: Path, spool: Spool) -> None:
    watched = WatchedGroups()
    table = WatchedGroupsTable(str(lake), dict, watched, spool)
    table.read()
    assert watched.owners == Owners(), "the table does not exist"
    assert run(lake) == []
    (row,) = run(lake, "--topic", "orders", "--group", "a", "--group", "!b", "--set-by", "me")
    assert (row["topic"], row["groups"], row["set_by"]) == ("orders", ["a", "!b"], "me")
    table.read()
    assert watched.owners == Owners({"orders": ("a", "!b")})
    run(lake, "--topic", "orders", "--group", "c")
    append(lake, ["bad["])
    table.read()
    assert watched.owners.rules == {"orders": ("c",)}
    assert [*watched.owners.rejected] == ["bad["]


@pytest.mark.parametrize(
    "options", [["--topic", "t"], ["--group", "g"], ["--topic", "a b", "--group", "g"]]
)
def test_command_refuses_an_invalid_row(lake: Path, options: list[str]) -> None:
    assert CliRunner().invoke(main, ["watched-groups", str(lake), *options]).exit_code != 0


def test_last_known_rules_survive_a_failed_read_and_a_restart(lake: Path, spool: Spool) -> None:
    run(lake, "--topic", "orders", "--group", "a")
    first = WatchedGroups()
    WatchedGroupsTable(str(lake), dict, first, spool).read()
    shutil.rmtree(lake / WATCHED_GROUPS.path)
    second = WatchedGroups()
    table = WatchedGroupsTable(str(lake), dict, second, spool)
    assert second.owners == first.owners
    with pytest.raises(LakeError, match="missing"):
        table.read()
    assert second.owners.rules == first.owners.rules
    assert "missing" in str(second.owners.failure)
    run(lake)
    table.read()
    assert second.owners == Owners()
    another = WatchedGroups()
    WatchedGroupsTable(str(lake / "another"), dict, another, spool)
    assert another.owners == Owners()


def test_table_that_is_not_usable_is_one_line(lake: Path, spool: Spool) -> None:
    place, watched = lake / WATCHED_GROUPS.path, WatchedGroups(Owners({"t": ("g",)}))
    table = WatchedGroupsTable(str(lake), dict, watched, spool)
    write_deltalake(str(place), pa.table({"topic": ["t"], "groups": ["g"]}))
    with pytest.raises(LakeSchemaError, match=r"no column set_at.*watched-groups"):
        table.read()
    shutil.rmtree(place)
    DeltaTable.create(str(place), SCHEMA, configuration={"delta.enableDeletionVectors": "true"})
    with pytest.raises(LakeSchemaError, match="do not support deletionVectors"):
        table.read()
    shutil.rmtree(place)
    run(lake)
    append(lake, [f"t{n}" for n in range(10_001)])
    with pytest.raises(LakeError, match="more than 10,000 rows"):
        table.read()
    newest = place / "_delta_log" / f"{DeltaTable(str(place)).version():020}.json"
    newest.write_text("{")
    with pytest.raises(LakeError) as caught:
        table.read()
    assert "\n" not in str(caught.value)
    assert watched.owners.failure == str(caught.value)


_READ = """
import re, sys
from pathlib import Path
from collector.delivery.watched_groups_table import WatchedGroupsTable
from collector.errors import LakeError
from collector.sources.admin.watched_groups import WatchedGroups
from collector.spool.spool import Spool
with Spool(Path(sys.argv[2]), 1 << 20) as spool:
    try:
        WatchedGroupsTable(sys.argv[1], dict, WatchedGroups(), spool).read()
    except LakeError as error:
        print(error)
print(int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) >> 10)
"""


def test_rows_that_unpack_to_gigabytes_are_refused_in_little_memory(
    lake: Path, tmp_path: Path
) -> None:
    row = {"topic": "x" * 1_000, "groups": ["g" * 1_000] * 200, "set_at": NOON}
    batch = pa.RecordBatch.from_pylist([row] * 100, SCHEMA)  # 20 MB
    place = lake / WATCHED_GROUPS.path
    write_deltalake(str(place), pa.RecordBatchReader.from_batches(SCHEMA, [batch] * 50))
    assert sum(file.stat().st_size for file in place.glob("*.parquet")) < 1 << 20
    ran = subprocess.run(
        [sys.executable, "-c", _READ, str(lake), str(tmp_path / "spool.db")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    line, peak = ran.stdout.splitlines()
    assert "the rows exceed 16 MiB; delete old rows" in line
    assert int(peak) < 400
