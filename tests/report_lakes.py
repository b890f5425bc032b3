"""Lakes of the report's bars: the sample, a fleet made of it, and one that hardly anyone read.

The fleet is the sample's week many times over: gold of the same rows under other names and at other
hours, so that its tables agree with each other as the rollup left them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import duckdb
from deltalake import DeltaTable, write_deltalake

from lakehouse.rollup import gold_tables
from tests import gold_builder
from tests.lake_builder import Batch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from lakehouse.tables import Table

JMXLAKE: Final = str(Path(sys.executable).with_name("jmxlake"))

TOPICS: Final = 5_000
BROKERS: Final = 100
_COPIES: Final = 715
"""Of seven topics each; the last are left out."""
_CLIENTS: Final = 40
_SHIFTS: Final = 11
"""Hours by which the copies are apart."""
_ODD: Final = {
    1: "n" * 249,
    2: "\u202eorders\u2066-\u05d0\u05d1\u05d2-\u0639\u0631\u0628\u064a",
    3: "<script>document.title='owned'</script><b>orders</b>",
    4: '{{ 7*7 }}<!channel> [link](http://example.org) & "quoted"',
}
"""Names of the first copies of the topics that had incidents."""
_OF_TOPICS: Final = (
    "kafka.partition.unavailable", "kafka.partition.under_min_isr", "kafka.partition.leaderless",
)  # fmt: skip

BLIND_SECONDS: Final = 1_200
BLIND_PERIOD: Final = ("--from", "2026-11-16T10:00:00Z", "--to", "2026-11-23T10:00:00Z")
_WINDOW: Final = 300
_WEEK: Final = 168 * 3600
_FAMILIES: Final = ("min_isr", "topology", "quotas", "tiered", "offsets", "leaders")


def jmxlake(*arguments: str) -> str:
    """Run a command and return its output.

    Raises:
        RuntimeError: It failed.
    """
    done = subprocess.run(
        [JMXLAKE, *arguments], capture_output=True, text=True, encoding="utf-8", check=False
    )
    if done.returncode:
        raise RuntimeError(f"jmxlake {arguments[0]}: {done.stderr[-2000:]}")
    return done.stdout


def sample(folder: Path) -> Path:
    """Write the sample's lake, roll it up, and return it."""
    lake = folder / "sample"
    jmxlake("sample", str(lake))
    jmxlake("weekly", str(lake), "--engine", "local", "--html", str(folder / "first.html"))
    return lake


def blind(folder: Path) -> Path:
    """Write a lake that was read in the first and the last minutes of a week: 0.4 % of it."""
    lake, batch = folder / "blind", Batch()
    minutes = [*range(0, BLIND_SECONDS, _WINDOW), *range(_WEEK - BLIND_SECONDS, _WEEK, _WINDOW)]
    for start in map(float, minutes):
        end = start + _WINDOW
        for source in ("broker-1", "broker-2", "broker-3"):
            for family in _FAMILIES:
                batch.scrape(family, start, end, source=source)
        batch.zeros("kafka.partition.under_min_isr", start, end, "orders", [0, 1, 2])
        batch.zeros("kafka.partition.leaderless", start, end, "orders", [0, 1, 2])
        batch.idle("kafka.client.produce.throttle_time", start, end, [("billing", "invoicing")])
    batch.commit(lake)
    jmxlake("rollup", str(lake), "--engine", "local")
    return lake


def fleet(sample_lake: Path, folder: Path, week: tuple[str, str]) -> Path:
    """Write the gold of 100 brokers with 5,000 topics, and return its lake.

    Args:
        sample_lake: The sample's lake, rolled up.
        folder: Folder of the lake.
        week: Start and end of a week that the sample has (ISO 8601).
    """
    lake = folder / "fleet"
    shutil.copytree(sample_lake / "bronze", lake / "bronze")
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
    _names(database, sample_lake)
    for table in gold_tables.EVERY:
        gold_builder.put(lake, table)
        source = sample_lake / table.path
        if not source.exists():
            continue
        rows = DeltaTable(str(source)).to_pyarrow_dataset()
        database.register("old", rows)
        if (made := _multiplied(database, table, week)) is not None:
            _write(lake, table, made)
        database.unregister("old")
    return lake


def _names(database: duckdb.DuckDBPyConnection, sample_lake: Path) -> None:
    """Make the tables of copies: names of topics, clients and brokers, and their hours."""
    database.register("subjects", DeltaTable(str(sample_lake / "gold/subjects")).to_pyarrow_table())
    database.execute(f"""
        CREATE TABLE copies AS
        SELECT topic, n, n % {_SHIFTS} AS shift,
            CASE WHEN n = 0 THEN topic ELSE printf('%s-%04d', topic, n) END AS copy
        FROM (SELECT topic, row_number() OVER (ORDER BY topic) AS place FROM subjects
              WHERE kind = 'topic'), range({_COPIES}) AS numbers(n)
        ORDER BY n, place LIMIT {TOPICS}""")  # noqa: S608 - numbers of this file
    for n, text in _ODD.items():
        database.execute(
            "UPDATE copies SET copy = left(topic, 4) || $1 WHERE n = $2 AND topic <> 'orders'"
            if n > 1 else
            "UPDATE copies SET copy = left($1 || topic, 245) || left(topic, 4) WHERE n = $2",
            [text, n],
        )  # fmt: skip
    database.execute("CREATE TABLE clients AS SELECT unnest(range($1)) AS n", [_CLIENTS])
    database.execute(f"""
        CREATE TABLE sources AS
        SELECT source, n, CASE WHEN n = 0 THEN source ELSE printf('broker-%d', k + 3 * n) END
            AS copy
        FROM (SELECT source, TRY_CAST(split_part(source, '-', 2) AS INT) AS k FROM subjects
              WHERE kind = 'source' AND source LIKE 'broker%'), range(34) AS numbers(n)
        WHERE k + 3 * n <= {BROKERS}""")  # noqa: S608 - numbers of this file


def _multiplied(
    database: duckdb.DuckDBPyConnection, table: Table, week: tuple[str, str]
) -> pa.Table | None:
    """Return the rows of a table of the fleet; None: it has none."""
    names = table.column_names
    if table.name in {"progress", "sla", "lease", "stretches", "rejected", "distributions"}:
        is_state = table.name == "progress"
        return database.sql("SELECT * FROM old").to_arrow_table() if is_state else None
    if table.name == "subjects":
        return _subjects(database, names)
    where = f"{table.start} >= TIMESTAMPTZ '{week[0]}' AND {table.start} <= TIMESTAMPTZ '{week[1]}'"
    if table.name.endswith("_windows") and table.name != "coverage_windows":
        return database.sql(_select(names, "old", "", where)).to_arrow_table()  # for drawings
    if table.name == "topics":
        where += f" AND metric IN {_OF_TOPICS}"
    parts = list(_parts(table, where))
    if not parts:
        return None
    return database.sql(" UNION ALL ".join(parts)).to_arrow_table()


def _parts(table: Table, where: str) -> Iterator[str]:
    """Yield the queries of a table, one for each kind of subject that is copied or kept."""
    names = table.column_names
    keys = [one for one in ("topic", "client_id", "consumer_group", "source") if one in names]

    def of(key: str) -> str:
        others = [one for one in keys if one != key and not (key == "topic" and one == "source")]
        return " AND ".join([where, *(f'"{one}" IS NULL' for one in others)])

    if "topic" in names:
        yield _select(names, "old JOIN copies USING (topic)", "topic", of("topic"))
    if "client_id" in names:
        own = of("client_id").replace('"source" IS NULL', "client_id NOTNULL")
        yield _select(names, "old, clients", "client_id", f"{own} AND client_id NOTNULL")
    if "consumer_group" in names:
        yield _select(names, "old", "", f"{where} AND consumer_group NOTNULL")
    if "source" in names and table.name == "incidents":
        yield _select(names, "old", "", f"{where} AND level = 'source'")
    elif ("source" in names and not {"topic", "user_name"} & {*names}) or table.name == "sli":
        own = f"{of('source')} AND source NOTNULL"
        yield _select(names, "old JOIN sources USING (source)", "source", own)
        yield _select(names, "old", "", f"{own} AND source NOT LIKE 'broker%'")


def _select(names: Sequence[str], source: str, level: str, where: str) -> str:
    shift = "to_hours(shift::INT)" if level == "topic" else "to_hours(0)"
    if level == "topic":  # rows of hours before, moved into the week, are of the week before it
        where = re.sub(r"\b(hour|window_start)\b", rf"\1 + {shift}", where)
    start = next((name for name in ("hour", "window_start") if name in names), "")
    columns = ", ".join(_column(name, level, shift, start) for name in names)
    return f"SELECT {columns} FROM {source} WHERE {where}"  # noqa: S608 - texts of this file


def _column(name: str, level: str, shift: str, start: str) -> str:
    if name in {"hour", "window_start", "started_at", "ended_at"}:
        return f"{name} + {shift} AS {name}"
    if name == "date":
        return f"CAST({start} + {shift} AS DATE) AS date"
    if name == level and level in {"topic", "source"}:
        return f"copy AS {name}"
    if name == level == "client_id":
        return "CASE WHEN n = 0 THEN client_id ELSE printf('%s-%d', client_id, n) END AS client_id"
    return f'"{name}"'


def _subjects(database: duckdb.DuckDBPyConnection, names: Sequence[str]) -> pa.Table:
    parts = [
        _select(names, "old JOIN copies USING (topic)", "topic", "kind = 'topic'"),
        _select(names, "old, clients", "client_id", "kind = 'client'"),
        _select(names, "old JOIN sources USING (source)", "source", "kind = 'source'"),
        _select(names, "old", "", "kind IN ('group', 'quota') OR source LIKE 'controller%'"),
    ]
    return database.sql(" UNION ALL ".join(parts)).to_arrow_table()


def _write(lake: Path, table: Table, rows: pa.Table) -> None:
    delta = DeltaTable(f"{lake}/{table.path}")
    schema = gold_builder.schema(table)
    write_deltalake(delta, rows.select(schema.names).cast(schema), mode="append")
