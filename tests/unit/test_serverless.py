"""What Databricks does to a rollup and a report, by fakes of it.

``f01`` to ``f24`` in a test's name are findings of tests/databricks_findings.yaml.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import types
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from pyspark.errors import PySparkException

from lakehouse import tables
from lakehouse.cli.main import main
from lakehouse.cli.maintain import maintain
from lakehouse.core.lake import Lake
from lakehouse.engines.engine import LeaseRow
from lakehouse.engines.spark_engine import STAGING, SparkEngine
from tests import sample_facts
from tests.deploy.bundle_file import ROOT
from tests.servers import PASSWORD, USER, Authority, Mailbox, mail_server

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 11, 16, tzinfo=UTC)
LAKEHOUSE = sorted((ROOT / "lakehouse").rglob("*.py"))
CATALOG = Lake("main.bronze", "main.gold", "main.bronze")


class FakeDetail:
    """A fake of what DESCRIBE DETAIL says of a table without features."""

    def collect(self) -> list[dict[str, None]]:
        return [{"properties": None, "tableFeatures": None}]


class FakeServerless:
    """A session that refuses settings, and whose statements meet another writer at first."""

    def __init__(self, conflicts: int = 0) -> None:
        self.conf = self
        self.conflicts = conflicts
        self.asked: list[str] = []

    def get(self, name: str) -> str:
        if name != "spark.sql.session.timeZone":
            raise PySparkException(f"[CONFIG_NOT_AVAILABLE] Configuration {name} is not available")
        return "UTC"

    def getTags(self) -> set[str]:  # noqa: N802 - Spark's name
        return set()

    def addTag(self, tag: str) -> None:  # noqa: N802 - Spark's name
        pass

    def removeTag(self, tag: str) -> None:  # noqa: N802 - Spark's name
        pass

    def sql(self, text: str) -> FakeServerless:
        self.asked.append(text)
        return self

    def select(self, *_: str) -> FakeDetail:
        return FakeDetail()

    @property
    def columns(self) -> list[str]:
        return list(tables.LEASE.column_names)

    def collect(self) -> list[dict[str, int]]:
        if self.conflicts:
            self.conflicts -= 1
            raise PySparkException("[DELTA_CONCURRENT_DELETE_READ] by OPTIMIZE")
        return [{"num_affected_rows": 1}]


def engine(session: FakeServerless) -> SparkEngine:
    return SparkEngine(session, CATALOG)  # type: ignore[arg-type]


def test_f01_a_session_that_says_no_setting_gets_files_of_their_due_size() -> None:
    assert engine(FakeServerless())._adaptive


def test_f01_settings_are_read_in_one_place_and_only_the_time_zone_is_set() -> None:
    found = set()
    for path in LAKEHOUSE:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(func=ast.Attribute(attr=how, value=ast.Attribute(attr="conf"))):
                    found.add((path.name, how, ast.unparse(node.args[0])))
    assert found == {
        ("spark_session.py", "get", "name"),  # in setting(), which takes a refusal for an answer
        ("spark_session.py", "get", "_ZONE"),
        ("notebook.py", "set", "'spark.sql.session.timeZone'"),
    }


@pytest.mark.parametrize("conflicts", range(4))
def test_f08_a_lease_is_taken_beside_an_optimize_of_the_platform(conflicts: int) -> None:
    session = FakeServerless(conflicts)
    taken = engine(session).swap(LeaseRow(), LeaseRow("a", "host", 1, 2))
    assert taken is (conflicts < 3)
    writes = {one for one in session.asked if not one.startswith(("DESCRIBE ", "SELECT "))}
    assert len(writes) == 1, "what it saw is asked for again each time"


def test_f07_a_length_of_time_moves_with_the_days(monkeypatch: pytest.MonkeyPatch) -> None:
    (option,) = (one for one in maintain.params if one.name == "read_until")

    def until(text: str) -> Any:
        return option.type.convert(text, None, None)()

    class Clock(datetime):
        """One that is set."""

        at = NOW

        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            assert tz is UTC
            return cls.at

    monkeypatch.setattr("lakehouse.cli.maintain.dt.datetime", Clock)
    read_until = option.type.convert("7d", None, None)
    assert read_until() == (NOW - timedelta(days=7)).date()
    Clock.at = NOW + timedelta(days=6, hours=1)
    assert read_until() == (NOW - timedelta(days=1)).date()
    assert until("2h") == (NOW + timedelta(days=5)).date(), "never less than that"
    assert until("2026-11-01").isoformat() == "2026-11-01"
    assert until("never") is None
    refused = CliRunner().invoke(main, ["maintain", "/lake", "--read-until", "7d"])
    assert "requires --gold none" in refused.stderr


def test_f14_published_statements_can_be_had_back_for_a_month() -> None:
    for table in (*tables.GOLD, *tables.ROLLUP_STATE):
        days = "30" if table in (tables.SLA, tables.OBJECTIVES) else "1"
        kept = table.properties["delta.deletedFileRetentionDuration"]
        assert kept == f"interval {days} days", table.name
        log = int(table.properties["delta.logRetentionDuration"].split()[1])
        assert log >= int(days), "a version is read by its log"


def test_f17_the_rollup_s_own_tables_say_no_more_than_gold() -> None:
    assert STAGING.column_names == ("target", "rows"), "gold's rows, packed"
    names = {"user", "client_id", "group", "topic"}
    for table in (*tables.ROLLUP_STATE, tables.PROGRESS):
        assert not names & set(table.column_names)


class FakeDbutils:
    """The secrets of a workspace."""

    def __init__(self, values: dict[tuple[str, str], str]) -> None:
        self.secrets, self._values = self, values

    def get(self, scope: str, key: str) -> str:
        if (scope, key) not in self._values:
            raise RuntimeError(f"Secret does not exist with scope: {scope} and key: {key}")
        return self._values[scope, key]


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
def test_f21_a_report_is_mailed_with_a_secret_of_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sdk = types.ModuleType("databricks.sdk.runtime")
    sdk.dbutils = FakeDbutils({("jmxlake", "password"): PASSWORD})  # type: ignore[attr-defined]
    for name in ("databricks", "databricks.sdk"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "databricks.sdk.runtime", sdk)
    authority = Authority.made(tmp_path)
    facts, settings = tmp_path / "report.json", tmp_path / "send.yaml"
    facts.write_text(json.dumps(sample_facts.demo() | {"timelines": []}))

    def sent(key: str, port: int) -> Any:
        settings.write_text(
            f"mail: {{host: localhost, port: {port}, username: {USER}, from: a@example.org,"
            f" to: [b@example.org], attach: [], ca_file: {authority.file},"
            f" password_databricks: jmxlake/{key}}}\n"
        )
        return CliRunner().invoke(main, ["send", str(facts), "--settings", str(settings)])

    with mail_server(Mailbox(), "starttls", authority) as box:
        assert sent("password", box.port).exit_code == 0
        wrong = sent("other", box.port)
    ((_, to, _, encrypted),) = box.got
    assert (to, encrypted) == (("b@example.org",), True)
    assert wrong.exit_code == 1
    (line,) = wrong.stderr.splitlines()
    assert "the Databricks secret jmxlake/other: Secret does not exist" in line


def test_f21_there_is_one_mail_client() -> None:
    files = [*LAKEHOUSE, *(ROOT / "deploy/databricks").iterdir(), *(ROOT / "dashboards").iterdir()]
    found = [one.name for one in files if "smtplib" in one.read_text("utf-8")]
    assert found == ["delivery.py"]
    assert "egress is restricted" in (ROOT / "docs/databricks.md").read_text("utf-8")


def test_f23_f24_the_page_of_engines_gives_today_s_reasons() -> None:
    said = re.sub(r"\s+", " ", (ROOT / "docs/engines.md").read_text("utf-8"))
    assert "lose commits, unless both have Delta's `S3DynamoDBLogStore`" in said
    assert "does not exist over Connect" not in said
