"""When the SQL alerts of the bundle fire, and when not: over the views of real lakes, by DuckDB."""

from __future__ import annotations

import datetime as dt
import operator
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.deploy.bundle_file import read
from tests.lake_builder import BASE, Batch
from tests.sql_views import asked, in_duckdb, jmxlake

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import duckdb

pytestmark = pytest.mark.reads

ALERTS: Final = read()["resources"]["alerts"]
HOURS: Final = 9
END: Final = HOURS * 3600
WINDOW: Final = 300
ISR: Final = "kafka.partition.under_min_isr"
OPERATORS: Final = {"GREATER_THAN": operator.gt}
SCHEMA: Final = "${var.catalog}.${resources.schemas.views.name}."

Lake = tuple[int, int, tuple[int, int] | None]
"""Until when broker-2 is read, until when the cluster lists it, and when a partition is bad."""
QUIET: Final[Lake] = (END, END, None)


def _batch(read_until: int, listed_until: int, bad: tuple[int, int] | None) -> Batch:
    batch = Batch()
    for at in range(0, END, WINDOW):
        end = at + WINDOW
        named = {"topic": "orders", "partition": 0}
        is_bad = bad is not None and bad[0] <= at < bad[1]
        batch.run(ISR, at, end, float(is_bad), **named)
        batch.run("kafka.topic.partitions", at, end, 1.0, topic="orders")
        for node, until in (("broker-1", END), ("broker-2", listed_until)):
            if at < until:
                batch.run("kafka.cluster.node.fenced", at, end, 0.0, labels=[("node", node)])
        for source, until in (("broker-1", END), ("broker-2", read_until)):
            for family in ("min_isr", "topology") if at < until else ():
                batch.scrape(family, at, end, source=source)
    return batch


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Lake], Path]:
    """A lake that is rolled up, with its hours stated."""

    @cache
    def made(told: Lake) -> Path:
        root = tmp_path_factory.mktemp("alerts")
        _batch(*told).commit(root)
        jmxlake("rollup", str(root), "--engine", "local")
        jmxlake("slo", "publish", str(root), "--from", _iso(0), "--to", _iso(END))
        return root

    return made


def _iso(seconds: float) -> str:
    return f"{BASE + dt.timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


def _fires(connection: duckdb.DuckDBPyConnection, alert: dict[str, Any]) -> bool:
    """Whether the first row of an alert's query meets its condition, as on the platform."""
    (row,) = asked(connection, alert["query_text"].replace(SCHEMA, "kafka."))
    evaluation = alert["evaluation"]
    compare = OPERATORS[evaluation["comparison_operator"]]
    value = row[evaluation["source"]["name"]]
    assert value is not None, "what is not known would never fire"
    return bool(compare(value, evaluation["threshold"]["value"]["double_value"]))


@pytest.mark.parametrize(
    ("told", "minutes", "wanted"),
    [
        (QUIET, 20, set()),
        (QUIET, 170, set()),
        (QUIET, 190, {"rollup_late"}),
        (QUIET, 43200, {"rollup_late"}),
        ((END - 1500, END, None), 20, set()),
        ((END - 2400, END, None), 20, {"agent_silent"}),
        ((END - 2400, END - 2400, None), 20, set()),
        ((END, END, (END - 7200, END - 5400)), 20, {"budget_burning"}),
        ((END, END, (3600, 5400)), 20, set()),
    ],
    ids=[
        "all is well", "before the next rollup", "no rollup for three hours", "none for a month",
        "a broker is late", "a broker is not read", "a broker has left the cluster",
        "a topic was bad", "a topic was bad and is not any more",
    ],
)  # fmt: skip
def test_alert_fires_on_its_condition_only(
    told: Lake, minutes: int, wanted: set[str], lake: Callable[[Lake], Path]
) -> None:
    now = f"TIMESTAMPTZ '{_iso(END + 60 * minutes)}'"
    connection = in_duckdb(lake(told), now=now)
    assert {name for name, alert in ALERTS.items() if _fires(connection, alert)} == wanted


def test_rates_are_bad_time_per_time_that_may_be_bad(lake: Callable[[Lake], Path]) -> None:
    (row,) = asked(in_duckdb(lake((END, END, (END - 7200, END - 5400)))), "FROM budget_burn")
    assert (row["objective"], row["topic"]) == ("min-isr", "orders")
    bad = 1800 / 3600
    assert row["rate_6h"] == pytest.approx(bad / (6 * 0.001))
    assert row["rate_3d"] == pytest.approx(bad / (72 * 0.001))


def test_each_query_is_a_few_lines_over_a_view() -> None:
    for alert in ALERTS.values():
        assert len(alert["query_text"].splitlines()) <= 3
        assert re.fullmatch(r"SELECT .+\nFROM \S+(\nWHERE .+)?\n", alert["query_text"])
