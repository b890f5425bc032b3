"""A lake on the S3 server of this machine, looked at past all latency: its files are here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import duckdb
from deltalake import DeltaTable

from bench.fleet_windows import RUNS, SCRAPES, SETS
from collector.delivery.delivery import Delivery
from collector.spool.spool import Spool
from lakehouse import tables

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bench.fleet_agents import Account
    from tests.rig.s3.server import S3Server

_SPOOL_BYTES: Final = 1 << 20
_IDENTITY: Final = (
    (tables.RUNS, "agent, batch, metric, topic"),
    (tables.SCRAPES, "agent, batch, family"),
    (tables.MEMBERS, 'agent, batch, "set"'),
)


class Lake:
    """One lake of the benchmark.

    Args:
        server: Where it lies.
        path: Its bucket and folder there.
    """

    def __init__(self, server: S3Server, path: str) -> None:
        bucket, _, name = path.partition("/")
        self.url = server.url(path)
        self._options = server.options
        self._buckets = server.bucket(bucket).parent
        self._folder = self._buckets / bucket / name

    def make(self, spool: Path) -> None:
        """Make its tables, as the first agent does."""
        with Spool(spool, _SPOOL_BYTES) as first:
            Delivery(self.url, lambda: self._options, first).check()

    def versions(self) -> dict[str, int]:
        """The last version of each table."""
        return {table.name: self._open(table).version() for table, _ in _IDENTITY}

    def lost_rounds(self, since: dict[str, int]) -> list[int]:
        """Of each commit of rows to runs, how often another one was faster."""
        found = []
        log = self._folder / tables.RUNS.path / "_delta_log"
        for file in sorted(log.glob("*.json")):
            if int(file.stem) > since[tables.RUNS.name]:
                for line in file.read_text().splitlines():
                    info = json.loads(line).get("commitInfo", {})
                    if info.get("operation") == "WRITE":
                        found.append(int(info.get("operationMetrics", {}).get("num_retries", 0)))
        return found

    def count(self, accounts: Iterable[Account]) -> tuple[int, int]:
        """Rows that agents take to be in the lake and are not, and rows that are there twice."""
        known = [(one.agent, one.delivered) for one in accounts]
        windows = sum(delivered for _, delivered in known)
        expected = {
            tables.RUNS.name: windows * RUNS,
            tables.SCRAPES.name: windows * SCRAPES,
            tables.MEMBERS.name: sum(delivered > 0 for _, delivered in known) * SETS,
        }
        lost = doubled = 0
        for table, identity in _IDENTITY:
            rows, different = self._rows(table, identity, known)
            lost += expected[table.name] - different
            doubled += rows - different
        return lost, doubled

    def _rows(
        self, table: tables.Table, identity: str, known: list[tuple[str, int]]
    ) -> tuple[int, int]:
        uris = self._open(table).file_uris()
        files = [str(self._buckets / uri.removeprefix("s3://")) for uri in uris]
        with duckdb.connect() as database:
            database.execute("CREATE TABLE known (agent VARCHAR, delivered BIGINT)")
            database.executemany("INSERT INTO known VALUES (?, ?)", known)
            found = database.execute(
                f"SELECT count(*), count(DISTINCT ({identity})) FROM read_parquet($files)"  # noqa: S608
                " JOIN known USING (agent) WHERE batch <= delivered",
                {"files": files},
            ).fetchone()
        assert found is not None
        return int(found[0]), int(found[1])

    def _open(self, table: tables.Table) -> DeltaTable:
        return DeltaTable(f"{self.url}/{table.path}", storage_options=self._options)
