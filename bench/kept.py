"""Scrapes kept as an agent keeps them: encoder, spool, delivery, and one compaction."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import duckdb

from bench.measure import log_bytes, sizes
from collector import catalogue as catalogues
from collector.delivery.delivery import Delivery
from collector.model import Scrape, Series
from collector.spool.recorder import Recorder
from collector.spool.source_states import Scope
from collector.spool.spool import Spool
from lakehouse import tables
from lakehouse.core.delta_rs import Location
from lakehouse.ops.maintain.actions import Executor
from lakehouse.ops.maintain.plan import LARGEST_FILE, Compact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from collector.catalogue.entries import Delays


_SPOOL_BYTES: Final = 1 << 32
_HOUR_US: Final = 3_600_000_000
_SOURCE: Final = "broker-1"


@dataclass
class Kept:
    """What became of the samples.

    Attributes:
        samples: How many were read.
        changes: How many of them differ from the one before of their series.
        rows: Rows by table.
        files: Bytes of live data files by table, compacted once.
        log: Bytes of the tables' logs.
        columns: Bytes by column of bronze/runs, compacted.
        hours: From the first answer to the last.
    """

    samples: int = 0
    changes: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)
    log: int = 0
    columns: dict[str, int] = field(default_factory=dict)
    hours: float = 0.0

    @property
    def per_sample(self) -> float:
        """Bytes of live data files a sample, all four tables."""
        return sum(self.files.values()) / self.samples


def keep(scrapes: Iterable[Scrape], folder: Path) -> Kept:
    """Record and deliver scrapes window by window, then compact each table once."""
    kept = Kept()
    lake = folder / "lake"
    with Spool(folder / "spool" / "spool.db", _SPOOL_BYTES) as spool:
        recorder = _recorder(spool)
        delivery = Delivery(str(lake), dict, spool)
        now_us, before = 0, dict[Series, float | None]()
        began_us: int | None = None
        for scrape in scrapes:
            began_us = began_us or scrape.asked_us
            for samples in samples_of(scrape):
                kept.samples += len(samples)
                kept.changes += _changes(before, samples)
                before.update(samples)
            now_us = max(now_us, scrape.answered_us)
            recorder.record(scrape)
            if recorder.seal(now_us):
                _deliver(delivery)
        recorder.flush(now_us)
        _deliver(delivery)
        kept.hours = (now_us - (began_us or now_us)) / _HOUR_US
    for table in tables.BRONZE:
        _compact(kept, table, Location(str(lake)))
        kept.log += log_bytes(lake / table.path)
    return kept


def samples_of(scrape: Scrape) -> Iterator[dict[Series, float | None]]:
    """Series in the answer, each with its one value, metric by metric: zero, idle or any other."""
    for reading in scrape.answer.readings if scrape.answer else ():
        yield {**dict.fromkeys(reading.zeros, 0.0), **reading.values}


def _changes(before: dict[Series, float | None], samples: dict[Series, float | None]) -> int:
    return sum(before.get(series, value) != value for series, value in samples.items())


def _recorder(spool: Spool) -> Recorder:
    loaded = catalogues.load()
    window_us = tables.DEFAULT_WINDOW_SECONDS * 1_000_000
    return Recorder(spool, Scope({_SOURCE: None}, _delays(), loaded.hash), window_us)


def _delays() -> Mapping[str, Delays]:
    metrics = [metric for family in catalogues.load().families for metric in family.metrics]
    return {metric.name: metric.delays for metric in metrics if any(metric.delays)}


def _deliver(delivery: Delivery) -> None:
    while delivery.deliver_next():
        pass


def _compact(kept: Kept, table: tables.Table, place: Location) -> None:
    """As the maintenance does it, once."""
    delta = place.open(table)
    fresh = sizes(delta)
    dates = [dt.date.fromisoformat(one["date"]) for one in delta.partitions() if one]
    for date in dates if table.partition_by else [None]:
        action = Compact(date, LARGEST_FILE, len(fresh.files), fresh.bytes)
        Executor(place, "bench").run(table, delta, action)
    compacted = sizes(place.open(table))
    kept.rows[table.name], kept.files[table.name] = compacted.rows, compacted.bytes
    if table is tables.RUNS:
        kept.columns = _columns(compacted.files)


def _columns(files: list[str]) -> dict[str, int]:
    found = duckdb.execute(
        "SELECT split_part(path_in_schema, ',', 1) AS name, sum(total_compressed_size)::BIGINT"
        " FROM parquet_metadata(?) GROUP BY name ORDER BY 2 DESC",
        [files],
    ).fetchall()
    return dict(found)
