"""DuckDB's extension ``delta`` reads gold and its views, with the blocks of docs/views.md.

The test has its own environment, because the package index has the extension only for other
versions of DuckDB than the rollup's. ``make test-packaging`` runs it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest
from click.testing import CliRunner

from lakehouse.cli.main import main
from tests.docs.pages import under
from tests.docs.test_reading import PAGE, TABLE
from tests.packaging.conftest import Environment, uv

if TYPE_CHECKING:
    from pathlib import Path

VERSION: Final = "1.5.5"
_ASK: Final = """
import duckdb, json, pathlib, shutil, sys
import duckdb_extension_delta as package
(file,) = pathlib.Path(package.__file__).parent.rglob("delta.duckdb_extension")
connection = duckdb.connect()
(platform,) = connection.execute("PRAGMA platform").fetchone()
folder = pathlib.Path.home() / ".duckdb/extensions" / file.parent.name / platform
folder.mkdir(parents=True)
shutil.copy(file, folder)  # the folder of INSTALL
print(json.dumps([connection.execute(sql).fetchall() for sql in json.loads(sys.argv[1])]))
"""


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    made = Environment(tmp_path / "venv", tmp_path / "home")
    made.home.mkdir()
    uv("venv", str(made.folder))
    wanted = [f"duckdb=={VERSION}", f"duckdb-extension-delta=={VERSION}"]
    uv("pip", "install", "--python", str(made.folder / "bin/python"), *wanted)
    return made


def test_extension_reads_gold_and_views(
    environment: Environment, lake: Path, wanted: list[tuple[str, float]]
) -> None:
    blocks = under(PAGE, "sql")["DuckDB"]
    of_tables, of_views = (sql.replace(TABLE, f"{lake}/gold/topics") for sql in blocks)
    views = CliRunner().invoke(main, ["views", "--dialect", "duckdb", str(lake)])
    assert views.exit_code == 0, views.output
    ran = environment.run("python", "-c", _ASK, json.dumps([of_tables, views.stdout, of_views]))
    assert ran.returncode == 0, ran.stderr
    by_tables, _, by_views = json.loads(ran.stdout)
    answer = [[topic, pytest.approx(minutes)] for topic, minutes in wanted]
    assert by_tables == answer
    assert by_views == answer
    assert f"{VERSION} with the extension" in PAGE
