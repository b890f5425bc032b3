"""Bronze as files: three engines read back what an agent delivered, before and after compaction."""

from __future__ import annotations

import datetime as dt
import math
import sys
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import arro3.core
import duckdb
import pytest
from deltalake import DeltaTable, QueryBuilder

from collector.delivery.delivery import Delivery
from collector.encoding.bronze_rows import Batch
from collector.spool.spool import Spool
from lakehouse import tables
from lakehouse.core.delta_rs import Location
from lakehouse.ops.maintain.actions import Executor
from lakehouse.ops.maintain.plan import LARGEST_FILE, Compact

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from lakehouse.tables import Column, Table

pytestmark = pytest.mark.spark

DAY_US = 86_400_000_000
LONGEST = "n" * 32_000 + "\U0001f40b"
CONTROL = "a\x00b\x01\t\r\n\x1b[31m\x7f\u0085\u2028\u202e"
QUOTES = "'\"`\\,{}[]=%/?#"
INT, BIGINT = 1 << 31, 1 << 63
INSTANTS = (
    0,
    -1,  # a microsecond before 1970
    -DAY_US * 365 * 70 + 1,  # 1900
    1_795_267_281_504_321,
    253_402_300_799_999_999,  # the last one of the year 9999
)
DOUBLES = (
    0.0, 1.0, -1.0, 0.1, math.pi, 2.0**53, 2.0**53 - 1, 5e-324, sys.float_info.max,
    -sys.float_info.max, None,
)  # fmt: skip
INTS = (0, 1, -1, INT - 1, -INT, 131_072)
BIGINTS = (0, 1, -1, BIGINT - 1, -BIGINT, 1 << 40)
NAMES = ("orders", "", CONTROL, QUOTES, LONGEST, "\u00e9", "e\u0301", None)
LISTS = (None, (), (0,), (-INT, -1, INT - 1), tuple(range(2_000)))
CLIENTS = (None, (), ((None, None),), (("u", None), (None, LONGEST), ("", CONTROL)))
LABELS = (None, (), (("k", "v"),), ((QUOTES, CONTROL), ("long", LONGEST), ("empty", "")))
FLAGS = (None, (), ("gap",), ("increase", "", LONGEST))
ROWS = 24  # so that every value of each list is there, beside others of the other lists


def _value(column: Column, number: int) -> Any:
    """The next of the odd values of its type; where null is not allowed, another one."""
    choices: dict[str, tuple[Any, ...]] = {
        "date": (None,),  # told by the instant
        "string": NAMES,
        "int": (*INTS, None),
        "bigint": BIGINTS,
        "double": DOUBLES,
        "timestamp": INSTANTS,
        "array<int>": LISTS,
        "array<string>": FLAGS,
        "map<string,string>": LABELS,
        "array<struct<user:string,client_id:string>>": CLIENTS,
    }
    some = choices[column.type]
    if not column.nullable and some != (None,):
        some = tuple(value for value in some if value is not None)
    return some[number % len(some)]


def _rows(table: Table, first: int) -> list[tuple[Any, ...]]:
    """As the spool keeps them: without agent and batch number; the date is that of the instant."""
    found = []
    for number in range(first, first + ROWS):
        columns = enumerate(table.columns[:-2])
        row = {column.name: _value(column, number + index) for index, column in columns}
        if table.partition_by:
            row["date"] = row[_instant(table)] // DAY_US
        found.append(tuple(row.values()))
    return found


def _instant(table: Table) -> str:
    return next(column.name for column in table.columns if column.type == "timestamp")


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict[str, list[Any]]]:
    """A lake of several commits, the same compacted, and the rows that went in."""
    folder = tmp_path_factory.mktemp("encoding")
    fresh, compacted = folder / "fresh", folder / "compacted"
    wanted: dict[str, list[Any]] = {table.name: [] for table in tables.BRONZE}
    with Spool(folder / "spool.db", 1 << 30) as spool:
        deliveries = [Delivery(str(fresh), dict, spool)]
        for number in range(1, 4):
            batch = Batch({table.name: _rows(table, number * 7) for table in tables.BRONZE})
            _refer(batch, number)
            spool.seal([batch], b"")
            while deliveries[0].deliver_next():
                pass
            for table in tables.BRONZE:
                stamped = [(*row, spool.agent, number) for row in batch.rows[table.name]]
                wanted[table.name] += stamped
    _copy(fresh, compacted)
    for table in tables.BRONZE:
        _compact(table, Location(str(compacted)))
    return fresh, compacted, wanted


def _refer(batch: Batch, batch_number: int) -> None:
    """Let the first runs refer to the sets, each once: one that none refers to is not delivered."""
    runs, sets = batch.rows[tables.RUNS.name], batch.rows[tables.MEMBERS.name]
    sets[:] = [(f"{row[0]}{batch_number}.{place}", *row[1:]) for place, row in enumerate(sets)]
    at = tables.RUNS.positions
    for number, (key, cluster, *_) in enumerate(sets):
        row = [*runs[number]]
        row[at["members"]], row[at["cluster"]] = key, cluster
        runs[number] = (*row,)


def _copy(lake: Path, to: Path) -> None:
    for file in lake.rglob("*"):
        if file.is_file():
            copied = to / file.relative_to(lake)
            copied.parent.mkdir(parents=True, exist_ok=True)
            copied.write_bytes(file.read_bytes())


def _compact(table: Table, place: Location) -> None:
    delta = place.open(table)
    dates = [one.get("date") for one in delta.partitions()] if table.partition_by else [None]
    for date in dates:
        day = dt.date.fromisoformat(date) if date else None
        Executor(place, "a-test").run(table, delta, Compact(day, LARGEST_FILE, 3, 0))


def _by_delta_rs(lake: Path, table: Table, _: SparkSession) -> list[tuple[Any, ...]]:
    numbers = {"date": "arrow_cast(\"{}\", 'Int32')", "timestamp": "arrow_cast(\"{}\", 'Int64')"}
    asked = ", ".join(
        f"{numbers.get(column.type, chr(34) + '{}' + chr(34)).format(column.name)} AS c{number}"
        for number, column in enumerate(table.columns)
    )
    query = QueryBuilder().register("t", DeltaTable(str(lake / table.path)))
    answer = arro3.core.Table.from_arrow(query.execute(f"SELECT {asked} FROM t"))  # noqa: S608
    columns = [[item.as_py() for item in column] for column in answer.columns]
    return list(zip(*columns, strict=True))


def _by_duckdb(lake: Path, table: Table, _: SparkSession) -> list[tuple[Any, ...]]:
    numbers = {"date": "\"{}\"::DATE - DATE '1970-01-01'", "timestamp": 'epoch_us("{}")'}
    asked = ", ".join(
        numbers.get(column.type, '"{}"').format(column.name) for column in table.columns
    )
    files = DeltaTable(str(lake / table.path)).file_uris()
    return duckdb.read_parquet(files, hive_partitioning=True).project(asked).fetchall()


def _by_spark(lake: Path, table: Table, spark: SparkSession) -> list[tuple[Any, ...]]:
    numbers = {"date": "unix_date(`{}`)", "timestamp": "unix_micros(`{}`)"}
    asked = [numbers.get(column.type, "`{}`").format(column.name) for column in table.columns]
    read = spark.read.format("delta").load(str(lake / table.path))
    return [tuple(row) for row in read.selectExpr(*asked).collect()]


def _plain(type_: str, value: Any) -> Any:
    """One shape for what engines call maps, structs and lists."""
    if value is None or "<" not in type_:
        return value
    if type_.startswith("map<"):  # in no order
        return sorted(dict(value).items())
    if "struct<" in type_:
        return [tuple(one.values()) if isinstance(one, dict) else tuple(one) for one in value]
    return list(value)


def _as_told(table: Table, rows: list[tuple[Any, ...]]) -> list[list[Any]]:
    """The rows in an order of their own."""
    types = [column.type for column in table.columns]
    told = [[_plain(*pair) for pair in zip(types, row, strict=True)] for row in rows]
    return sorted(told, key=repr)


@pytest.mark.parametrize("compacted", [False, True], ids=["fresh", "compacted"])
@pytest.mark.parametrize("read", [_by_delta_rs, _by_duckdb, _by_spark])
@pytest.mark.parametrize("table", tables.BRONZE, ids=lambda table: table.name)
def test_engine_reads_delivered_rows_back(
    lakes: tuple[Path, Path, dict[str, list[Any]]],
    spark: SparkSession,
    table: Table,
    read: Callable[[Path, Table, SparkSession], list[tuple[Any, ...]]],
    *,
    compacted: bool,
) -> None:
    wanted = _as_told(table, lakes[2][table.name])
    found = _as_told(table, read(lakes[compacted], table, spark))
    assert found == wanted


@pytest.mark.parametrize("table", tables.BRONZE, ids=lambda table: table.name)
def test_a_commit_makes_one_file_for_each_date(
    lakes: tuple[Path, Path, dict[str, list[Any]]], table: Table
) -> None:
    delta = DeltaTable(str(lakes[0] / table.path))
    dates = {row[0] for row in lakes[2][table.name]} if table.partition_by else {None}
    assert len(delta.file_uris()) == 3 * len(dates), "three commits, each with all of the dates"
    assert len(_files(lakes[1], table)) == len(dates)


@pytest.mark.parametrize("table", tables.BRONZE, ids=lambda table: table.name)
def test_rows_lie_sorted_and_compaction_strings_batches_together(
    lakes: tuple[Path, Path, dict[str, list[Any]]], table: Table
) -> None:
    for file in (*_files(lakes[0], table), *_files(lakes[1], table)):
        keys = [
            (batch, [(value is not None, value if value is not None else 0) for value in key])
            for batch, *key in _sorting(file, table)
        ]
        assert len(keys) > 1
        met: set[int] = set()
        for number, rows in groupby(keys, itemgetter(0)):
            assert number not in met, "a batch lies together"
            met.add(number)
            own = [key for _, key in rows]
            assert own == sorted(own)


def _sorting(file: str, table: Table) -> list[tuple[Any, ...]]:
    types = {column.name: column.type for column in table.columns}
    asked = [f'epoch_us("{x}")' if types[x] == "timestamp" else f'"{x}"' for x in table.sort_by]
    read = duckdb.read_parquet(file, file_row_number=True, hive_partitioning=False)
    return read.order("file_row_number").project(", ".join(("batch", *asked))).fetchall()


@pytest.mark.parametrize("table", tables.BRONZE, ids=lambda table: table.name)
def test_files_are_encoded_as_older_engines_can_read_fast(
    lakes: tuple[Path, Path, dict[str, list[Any]]], table: Table
) -> None:
    types = {column.name: column.type for column in table.columns}
    for file in (*_files(lakes[0], table), *_files(lakes[1], table)):
        chunks = duckdb.execute(
            "SELECT path_in_schema, compression, encodings, stats_min IS NOT NULL"
            " OR stats_null_count IS NOT NULL FROM parquet_metadata(?)",
            [file],
        ).fetchall()
        assert {name.split(",")[0] for name, *_ in chunks} == types.keys() - {*table.partition_by}
        for name, compression, encodings, has_statistics in chunks:
            assert compression == "ZSTD", name
            text = types.get(name, "nested")
            if text in ("int", "bigint", "timestamp", "double"):
                assert encodings == "PLAIN, RLE", name
            elif text == "string":
                assert "RLE_DICTIONARY" in encodings, name
            assert "BYTE_STREAM_SPLIT" not in encodings, name
            found_by = (*table.sort_by, "cluster", "source", "start", "end")
            assert has_statistics == (name in found_by), name


def _files(lake: Path, table: Table) -> list[str]:
    return DeltaTable(str(lake / table.path)).file_uris()
