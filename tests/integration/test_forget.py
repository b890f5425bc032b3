"""A name that the lake forgets: another takes its place, and every figure stays."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from deltalake import DeltaTable

from lakehouse import tables
from lakehouse.cli.main import main
from lakehouse.core import lake as lakes
from lakehouse.core.delta_rs import locate
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.ops.pseudonymize import find
from lakehouse.rollup.plan import Wanted
from lakehouse.rollup.run import rollup
from lakehouse.rollup.verify import verify
from lakehouse.slo.openslo import objective_files
from tests import rollups
from tests.everywhere import small_fleet
from tests.lake_builder import Batch, made

if TYPE_CHECKING:
    from pathlib import Path

OTHER = "forgotten-0"
THROTTLE = "kafka.client.fetch.throttle_time"


NAME = "ada"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A fleet, and a client that was busy as a user and idle as a client id."""
    for batch in small_fleet.batches():
        batch.commit(tmp_path)
    own = Batch(agent="agent-of-ada")
    own.run(THROTTLE, 0.0, 60.0, 25.0, user=NAME, client_id="loader")
    own.idle(THROTTLE, 0.0, 300.0, [("grace", "loader"), ("grace", NAME), (None, NAME)])
    own.commit(tmp_path)
    made(tmp_path, tables.EVENTS)
    rollups.local(tmp_path)
    return tmp_path


def forget(lake: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["forget", str(lake), *options])


def gold(lake: Path) -> dict[str, list[str]]:
    return rollups.rows_of(
        lake, tuple(table for table in tables.GOLD if table is not tables.PROGRESS)
    )


def holds(folder: Path, name: str) -> list[str]:
    """The Parquet files below a folder in which any text is the name."""
    return [
        str(file.relative_to(folder))
        for file in folder.rglob("*.parquet")
        if f"'{name}'" in str(pq.ParquetFile(file).read().to_pylist())
    ]


def test_every_figure_stays_and_no_row_has_the_name(lake: Path) -> None:
    before = gold(lake)
    ran = forget(lake, NAME, "--as", OTHER, "--json")
    assert ran.exit_code == 0, ran.output
    rows: dict[str, int] = json.loads(ran.stdout)["rows"]
    assert {one for one, count in rows.items() if count} >= {
        "bronze/runs", "bronze/members", "gold/clients", "gold/subjects", "gold/sli",
    }  # fmt: skip
    after = gold(lake)
    assert after != before
    assert {
        table: sorted(one.replace(repr(NAME), repr(OTHER)) for one in found)
        for table, found in before.items()
    } == {table: sorted(found) for table, found in after.items()}
    assert not sum(rows for _, rows in find(locate(str(lake), None), NAME))


def test_gold_after_forget_equals_a_rollup_of_bronze(lake: Path) -> None:
    assert forget(lake, NAME, "--as", OTHER).exit_code == 0
    engine = LocalEngine(lakes.at(str(lake)))
    again = rollup(engine, objective_files.load(), Wanted(tidy="never"))
    assert again.hours == 0, "nothing new was measured"
    assert verify(engine, objective_files.load(), 2, 1).differences == ()
    assert CliRunner().invoke(main, ["maintain", str(lake), "--once"]).exit_code == 0


def test_clean_up_removes_the_files_that_have_it(lake: Path) -> None:
    assert holds(lake, NAME)
    assert forget(lake, NAME).exit_code == 0
    assert holds(lake, NAME), "versions from before have it still"
    for log in lake.glob("*/*/_delta_log"):
        delta = DeltaTable(str(log.parent))
        delta.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    assert holds(lake, NAME) == []


def test_a_name_of_quotes_is_a_name(lake: Path) -> None:
    odd = "o'Brien\\ \" ; -- €"
    assert forget(lake, NAME, "--as", odd).exit_code == 0
    assert forget(lake, odd, "--as", NAME).exit_code == 0
    assert not sum(rows for _, rows in find(locate(str(lake), None), odd))


def test_a_dry_run_counts_and_changes_nothing(lake: Path) -> None:
    before = gold(lake)
    counted = json.loads(forget(lake, NAME, "--dry-run", "--json").stdout)
    assert gold(lake) == before
    done = json.loads(forget(lake, NAME, "--json").stdout)
    assert counted["rows"] == done["rows"]


def test_forget_unknown_name_is_one_line(lake: Path) -> None:
    ran = forget(lake, "unheard-of")
    assert ran.exit_code == 1
    assert ran.stderr.splitlines()[-1] == "jmxlake: no table contains that name"


def test_while_a_rollup_is_at_work_gold_waits(lake: Path) -> None:
    engine = LocalEngine(lakes.at(str(lake)))
    from lakehouse.rollup.lease import USUAL, hold  # noqa: PLC0415

    with hold(engine, USUAL):
        ran = forget(lake, NAME, "--as", OTHER)
    assert ran.exit_code == 1
    assert "is rolling up" in ran.stderr
    found: dict[str, Any] = dict(find(locate(str(lake), None), NAME))
    assert found["bronze/runs"] == 0
    assert found["gold/clients"] > 0
    assert forget(lake, NAME, "--as", OTHER).exit_code == 0
