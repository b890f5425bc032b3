"""The same samples as a plain Delta table: a row each of metric, labels, instant and value."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from deltalake import DeltaTable, WriterProperties, write_deltalake

from bench.kept import samples_of
from bench.measure import sizes
from collector.delivery import arrow
from lakehouse import tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from collector.model import Scrape, Series

SAMPLES: Final = tables.Table(
    "plain",
    "samples",
    "One reading of one series",
    (
        tables.Column("metric", "string", "metric name", nullable=False),
        tables.Column("labels", "map<string,string>", "what tells the series apart"),
        tables.Column("ts", "timestamp", "the tick", nullable=False),
        tables.Column("value", "double", "the reading; null: idle"),
    ),
)
_COMMIT_US: Final = tables.DEFAULT_WINDOW_SECONDS * 1_000_000
_ROWS_AT_ONCE: Final = 1_000_000
_LABELS: Final = ("topic", "partition", "user", "client_id", "group")


def write(scrapes: Iterable[Scrape], path: Path) -> int:
    """Append every five minutes as they come, compact once, all by defaults; bytes that live."""
    for rows in _commits(scrapes):
        write_deltalake(str(path), arrow.to_arrow(SAMPLES, rows), mode="append")
    DeltaTable(str(path)).optimize.compact()
    return sizes(DeltaTable(str(path))).bytes


def write_sorted(scrapes: Iterable[Scrape], path: Path) -> int:
    """The same rows as well as a person can: by series and time as a whole, zstd; bytes."""
    told: defaultdict[Series, list[tuple[int, float | None]]] = defaultdict(list)
    for scrape in scrapes:
        for samples in samples_of(scrape):
            for series, value in samples.items():
                told[series].append((scrape.tick_us, value))
    ordered = sorted((series.metric, _labels(series), series) for series in told)
    rows = [(*name, *sample) for *name, series in ordered for sample in told[series]]
    best = WriterProperties(compression="ZSTD", compression_level=19)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        some = arrow.to_arrow(SAMPLES, rows[start : start + _ROWS_AT_ONCE])
        write_deltalake(str(path), some, mode="append", writer_properties=best)
    DeltaTable(str(path)).optimize.compact(writer_properties=best)
    return sizes(DeltaTable(str(path))).bytes


def _commits(scrapes: Iterable[Scrape]) -> Iterator[list[tuple[Any, ...]]]:
    rows: list[tuple[Any, ...]] = []
    window = 0
    names: dict[Series, tuple[tuple[str, str], ...]] = {}
    for scrape in scrapes:
        if rows and scrape.tick_us // _COMMIT_US != window:
            yield rows
            rows = []
        window = scrape.tick_us // _COMMIT_US
        rows += _rows(scrape, names)
    if rows:
        yield rows


def _rows(
    scrape: Scrape, names: dict[Series, tuple[tuple[str, str], ...]]
) -> Iterator[tuple[Any, ...]]:
    for samples in samples_of(scrape):
        for series, value in samples.items():
            if series not in names:
                names[series] = _labels(series)
            yield series.metric, names[series], scrape.tick_us, value


def _labels(series: Series) -> tuple[tuple[str, str], ...]:
    told = ((name, getattr(series, name)) for name in _LABELS)
    return (*((name, str(value)) for name, value in told if value is not None), *series.labels)
