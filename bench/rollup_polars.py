"""Polars as a peer of the rollup; it answers ``bench.rollup_questions``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from bench.rollup_questions import INTERVAL_US, KEYS, LENGTHS, LONGEST_US, SOURCES, WINDOW_US

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

_SERIES: Final = (*KEYS, "source")
_TOPIC: Final = ("metric", "topic", "w")


def frames(samples: Path, out: Path) -> float:
    """Polars; returns seconds."""
    import polars as pl  # noqa: PLC0415 - a peer brings its own engine alone

    began = time.monotonic()
    fine = partitions(pl.scan_parquet(samples / "*.parquet")).collect(engine="streaming")
    found = {"partitions": fine.drop("starts", "ends"), "topics": _topics(fine)}
    for table in SOURCES:
        every = [_coarser(table, found[table], length) for length in LENGTHS]
        pl.concat(every).write_parquet(out / f"{table}.parquet")
    return time.monotonic() - began


def partitions(samples: pl.LazyFrame) -> pl.LazyFrame:
    """Per partition and window of 5 minutes, with the spans in which it was above zero."""
    import polars as pl  # noqa: PLC0415

    s, e, w = (pl.col(name) for name in ("s", "e", "w"))
    following = pl.all_horizontal(pl.col(name) == pl.col(name).shift(-1) for name in _SERIES)
    upcoming = pl.when(following).then(s.shift(-1))
    held = (
        samples.with_columns(s=pl.col("ts").dt.epoch("us"))
        .sort(*_SERIES, "s")
        .with_columns(
            w=s - s % WINDOW_US,
            e=pl.when(upcoming - s <= LONGEST_US).then(upcoming).otherwise(s + INTERVAL_US),
        )
    )
    cut = w + WINDOW_US
    own = held.with_columns(e=pl.min_horizontal(e, cut))
    rest = held.filter(e > cut).with_columns(s=cut, w=cut)
    positive = pl.col("value") > 0
    return (
        pl.concat([own, rest])
        .group_by(*KEYS, "w")
        .agg(
            series_seen_us=(e - s).sum(),
            series_affected_us=(e - s).filter(positive).sum(),
            value_seconds=(pl.col("value") * (e - s)).sum() / 1e6,
            highest=pl.col("value").max(),
            starts=s.filter(positive),
            ends=e.filter(positive),
        )
    )


def _topics(fine: pl.DataFrame) -> pl.DataFrame:
    import polars as pl  # noqa: PLC0415

    spans = fine.select(*_TOPIC, "starts", "ends").explode("starts", "ends").drop_nulls()
    edges = pl.concat(
        [
            spans.select(*_TOPIC, t="starts", step=pl.lit(1)),
            spans.select(*_TOPIC, t="ends", step=pl.lit(-1)),
        ]
    )
    running = (
        edges.group_by(*_TOPIC, "t")
        .agg(pl.col("step").sum())
        .sort(*_TOPIC, "t")
        .with_columns(
            count=pl.col("step").cum_sum().over(_TOPIC),
            until=pl.col("t").shift(-1).over(_TOPIC),
        )
        .filter(pl.col("count") > 0)
    )
    unions = running.group_by(*_TOPIC).agg(
        affected_us=(pl.col("until") - pl.col("t")).sum(), max_concurrent=pl.col("count").max()
    )
    added = pl.col("series_seen_us", "series_affected_us", "value_seconds")
    sums = fine.group_by(*_TOPIC).agg(added.sum())
    return sums.join(unions, on=_TOPIC, how="left").with_columns(
        pl.col("affected_us", "max_concurrent").fill_null(0)
    )


def _coarser(table: str, rows: pl.DataFrame, length: str) -> pl.DataFrame:
    import polars as pl  # noqa: PLC0415

    keys = KEYS if table == "partitions" else KEYS[:2]
    window = pl.col("w") - pl.col("w") % (LENGTHS[length] * 1_000_000)
    largest = "highest" if table == "partitions" else "max_concurrent"
    sums = ["series_seen_us", "series_affected_us", "value_seconds"]
    sums += ["affected_us"] if table == "topics" else []
    return (
        rows.with_columns(w=window)
        .group_by("w", *keys)
        .agg(pl.col(sums).sum(), pl.col(largest).max())
        .select(pl.lit(length).alias("length"), "w", *keys, *sums, largest)
    )
