"""Notebooks over Spark Connect, compared with ``jmxlake report`` of the same week.

The lake is the small fleet of ``tests/everywhere``. The local engine makes the report. The
notebooks run unchanged in a client without Java. A notebook is equal if each table of its page is a
table of the report's page, with the same cells, and its SQL cell adds up to figures of report.json.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests import page_reader
from tests.everywhere import small_fleet
from tests.rig.connect_server import ConnectServer
from tests.rig.spark_processes import bare_environment
from tests.sql_views import jmxlake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Row = dict[str, Any]
Figures = dict[Any, Any]

NOTEBOOKS: Final = sorted((Path(__file__).parents[2] / "dashboards").glob("*.py"))
CLIENT: Final = "/".join(small_fleet.HOSTILE)
_WEEK: Final = ("--week", small_fleet.ISO_WEEK, "--min-coverage", "0")
_MINUTE: Final = 6e7
_HOUR: Final = 3.6e9
_SECONDS: Final = 3_600
_IN_CLIENT: Final = """
import json, sys
from pathlib import Path
from lakehouse.core.spark_session import session
from tests.notebooks import cells, registered
lake, chosen, *paths = sys.argv[1:]
spark = session()
values = {**json.loads(chosen), **registered(spark, Path(lake), "bronze", "weekly_gold")}
shown = {Path(path).stem: cells(path, spark, values) for path in paths}
json.dump(shown, sys.stdout, default=str)
"""


def notebooks_equal(log: Callable[[str], object] = lambda _: None) -> dict[str, int]:
    """Return the number of notebooks, and how many equal the report.

    Args:
        log: Gets a line per notebook that differs.
    """
    with tempfile.TemporaryDirectory(prefix="jmxlake-notebooks-") as folder:
        lake = small_fleet.stated(Path(folder) / "lake")
        page = Path(folder) / "report.html"
        report = json.loads(
            jmxlake("report", str(lake), *_WEEK, "--json", "-", "--html", str(page))
        )
        tables = _tables(page.read_text("utf-8"))
        story = jmxlake("explain", str(lake), CLIENT, *_WEEK)
        shown = _shown(lake, Path(folder))
    problems = {
        name: [*_in_page(name, html, tables, story), *_in_sql(name, rows, report)]
        for name, (html, rows) in shown.items()
    }
    for name, found in problems.items():
        log(f"{name}: {'; '.join(found) or 'equal'}")
    equal = sum(not found for found in problems.values())
    return {"notebooks_equal": equal, "notebooks": len(NOTEBOOKS)}


def _shown(lake: Path, folder: Path) -> dict[str, Any]:
    """Return the page and the SQL rows of each notebook, by its name."""
    chosen = {"week": small_fleet.ISO_WEEK, "client": CLIENT, "min_coverage": "0"}
    command = [sys.executable, "-c", _IN_CLIENT, str(lake), json.dumps(chosen)]
    with ConnectServer(folder / "connect") as server:
        nowhere = {"JAVA_HOME": str(folder), "PATH": str(folder)}
        ran = subprocess.run(
            [*command, *map(str, NOTEBOOKS)],
            env=bare_environment(SPARK_REMOTE=server.remote, PYTHONPATH=_root(), **nowhere),
            capture_output=True, text=True, check=True, timeout=_SECONDS,
        )  # fmt: skip
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def _root() -> str:
    return str(Path(__file__).parents[2])


def _tables(page: str) -> dict[str, list[list[str]]]:
    """Return the rows of the tables of a page, by caption."""
    return {
        table.one("caption").text: [
            [cell.text for cell in row.children if isinstance(cell, page_reader.Node)]
            for row in table.one("tbody").all("tr")
        ]
        for table in page_reader.read(page).all("table")
        if list(table.all("caption"))
    }


_ONLY_HERE: Final = {
    "tour": {"Tables of the lake", "All subjects of this cluster"},
    "events": {"Events, most of an error budget first"},
}
"""Tables that a report does not have; the report's events are cards."""


def _in_page(name: str, html: str, tables: Mapping[str, Any], story: str) -> list[str]:
    """Return the differences of a page."""
    if name == "client_story":
        told = page_reader.read(html).one("pre").raw
        return [] if told.split() == story.split() else ["the timeline differs"]
    own = _tables(html)
    named = own.keys() - _ONLY_HERE.get(name, set())
    different = [caption for caption in sorted(named) if own[caption] != tables.get(caption)]
    without_rows = [] if any(own.values()) else ["no table with rows"]
    return [*(f"table {caption!r} differs" for caption in different), *without_rows]


def _in_sql(name: str, rows: list[Row] | None, report: Row) -> list[str]:
    """Return the differences of a SQL cell."""
    if rows is None:
        return ["the page made no view for SQL"]
    found, wanted = _IN_SQL[name](rows, report)
    if not wanted:
        return ["the report has no figure for the SQL cell"]
    keys = {key for key in wanted if _rounded(found.get(key)) != _rounded(wanted[key])}
    return [f"SQL {key}: {found.get(key)}, not {wanted[key]}" for key in sorted(keys, key=repr)]


def _rounded(value: float | None) -> float | None:
    """Return a figure with twelve digits: sums of doubles depend on their order."""
    return None if value is None else float(f"{value:.12g}")


def _sums(rows: Iterable[Row], keys: tuple[str, ...], figure: str, factor: float = 1) -> Figures:
    """Return the sums of a figure by some keys, in the report's unit."""
    found: defaultdict[Any, float] = defaultdict(float)
    for row in rows:
        found[tuple(row[key] for key in keys)] += (row[figure] or 0) * factor
    return dict(found)


def _told(report: Row, path: str, keys: tuple[str, ...], figure: str) -> Figures:
    """Return a figure of the rows of a report's section, if it is known."""
    section: Any = report
    for key in path.split("."):
        section = section[key]
    return {tuple(row[key] for key in keys): row[figure] for row in section if row[figure]}


def _min_isr(rows: list[Row], report: Row) -> tuple[Figures, Figures]:
    own = [row for row in rows if row["metric"] == "kafka.partition.leaderless"]
    keys = ("topic",)
    return _sums(own, keys, "minutes", _MINUTE), _told(
        report, "min_isr.topics", keys, "leaderless_any_us"
    )


def _throttling(rows: list[Row], report: Row) -> tuple[Figures, Figures]:
    for row in rows:
        row["kind"] = row["metric"].split(".")[2]
    wanted = _told(report, "throttling.clients", ("user", "client_id", "kind"), "throttled_us")
    return _sums(rows, ("user_name", "client_id", "kind"), "minutes", _MINUTE), wanted


def _client_story(rows: list[Row], report: Row) -> tuple[Figures, Figures]:
    rows = [row for row in rows if row["metric"] == "kafka.client.produce.throttle_time"]
    wanted = _told(report, "throttling.clients", ("user", "client_id"), "throttled_us")
    found = sum(row["minutes_above_0"] for row in rows) * _MINUTE
    return {small_fleet.HOSTILE: found}, {
        key: value for key, value in wanted.items() if key == small_fleet.HOSTILE
    }


def _tier_lag(rows: list[Row], report: Row) -> tuple[Figures, Figures]:
    own = [row for row in rows if row["metric"] == "kafka.topic.remote_copy_lag.bytes"]
    wanted = {(row["topic"],): row["copy"]["lagging_us"] for row in report["tier_lag"]["topics"]}
    return _sums(own, ("topic",), "hours_behind", _HOUR), wanted


def _remote_log(rows: list[Row], report: Row) -> tuple[Figures, Figures]:
    keys = ("topic", "partition")
    own = [row for row in rows if row["metric"] == "kafka.partition.upload_lag.bytes"]
    found = {(row["topic"], row["partition_id"]): row["highest"] for row in own}
    return found, _told(report, "tier_lag.partitions", keys, "waiting_bytes_max")


def _remote_reads(rows: list[Row], report: Row) -> tuple[Figures, Figures]:
    keys = ("topic",)
    return _sums(rows, keys, "bytes"), _told(report, "remote_reads.topics", keys, "bytes")


def _consumer_lag(rows: list[Row], report: Row) -> tuple[Figures, Figures]:
    wanted = _told(report, "consumer_lag.groups", ("group", "topic"), "behind_us")
    return _sums(rows, ("consumer_group", "topic"), "minutes_behind", _MINUTE), wanted


def _lost(rows: list[Row], report: Row) -> tuple[Figures, Figures]:
    keys = ("topic", "partition")
    wanted = _told(report, "lost_before_read.groups", ("group", *keys), "offsets_low")
    return _sums(rows, ("consumer_group", "topic", "partition_id"), "at_least"), wanted


def _capacity(rows: list[Row], report: Row) -> tuple[Figures, Figures]:
    wanted = _told(report, "capacity.topics", ("topic",), "disk_byte_seconds")
    return _sums(rows, ("topic",), "gib_hours", 3600 * 1024.0**3), wanted


def _events(rows: list[Row], report: Row) -> tuple[Figures, Figures]:
    """Return the greatest value of each incident's subject."""

    def worst(found: Iterable[Row], *keys: str) -> Figures:
        highest: defaultdict[Any, float] = defaultdict(float)
        for row in found:
            key = tuple(row[one] for one in keys)
            highest[key] = max(highest[key], row["worst"])
        return dict(highest)

    names = ("metric", "topic")
    found = worst(rows, *names, "partition_id", "user_name", "client_id", "consumer_group")
    wanted = worst(report["incidents"], *names, "partition", "user", "client_id", "group")
    return found, wanted


def _tour(rows: list[Row], report: Row) -> tuple[Figures, Figures]:
    own = [row for row in rows if row["outcome"] == "ok"]
    keys = ("source", "family")
    return _sums(own, keys, "hours", _HOUR), _told(report, "coverage.sources", keys, "observed_us")


def _weekly_sla(rows: list[Row], report: Row) -> tuple[Figures, Figures]:
    wanted = {
        (row["objective"], verdict): row[verdict]
        for row in report["verdicts"]
        for verdict in ("met", "missed", "uncertain", "no_data")
        if row[verdict]
    }
    return _sums(rows, ("objective", "verdict"), "subjects"), wanted


_IN_SQL: Final[Mapping[str, Callable[[list[Row], Row], tuple[Figures, Figures]]]] = {
    "capacity": _capacity,
    "client_story": _client_story,
    "consumer_lag": _consumer_lag,
    "events": _events,
    "lost_before_read": _lost,
    "min_isr": _min_isr,
    "remote_log": _remote_log,
    "remote_reads": _remote_reads,
    "throttling": _throttling,
    "tier_lag": _tier_lag,
    "tour": _tour,
    "weekly_sla": _weekly_sla,
}
"""Figures of each notebook's SQL cell, and the report's, by the same keys."""


def main() -> None:
    """Write a line per notebook to standard error, and the numbers as JSON."""
    found = notebooks_equal(lambda line: sys.stderr.write(f"{line}\n"))
    sys.stdout.write(f"{json.dumps(found)}\n")


if __name__ == "__main__":
    main()
