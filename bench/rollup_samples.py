"""The samples of a generated fleet as a plain table has them: a row for each reading.

    ts, cluster, source, metric, topic, partition, value

``ts`` is when the answer came. Where nothing was read there is no row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bench import rollup_world
from bench.rollup_fleet import connect
from bench.rollup_world import HOUR_US, INTERVAL_US

if TYPE_CHECKING:
    import datetime as dt
    from pathlib import Path

    from duckdb import DuckDBPyConnection, DuckDBPyRelation

    from bench.rollup_world import Fleet

_WINDOWS_AT_ONCE: Final = 4


def samples(db: DuckDBPyConnection, cluster: str) -> DuckDBPyRelation:
    """Samples of one cluster in the windows that are unfolded."""
    return db.sql(_SAMPLES, params={"cluster": cluster})


def write(folder: Path, fleet: Fleet, cluster: str, start: dt.datetime, hours: int) -> int:
    """Write a cluster's samples as Parquet, a file for some windows; returns how many."""
    folder.mkdir(parents=True)
    db = connect()
    rollup_world.prepare(db, fleet)
    first_us = rollup_world.micros(start)
    step_us = _WINDOWS_AT_ONCE * rollup_world.WINDOW_US
    parts = range(first_us, first_us + hours * HOUR_US, step_us)
    # The last readings before hold until the first ones after the start.
    rollup_world.unfold(db, first_us - rollup_world.WINDOW_US, first_us)
    before = samples(db, cluster).filter(f"epoch_us(ts) >= {first_us - INTERVAL_US}")
    _write(before, folder / "before.parquet")
    for from_us in parts:
        rollup_world.unfold(db, from_us, min(from_us + step_us, first_us + hours * HOUR_US))
        _write(samples(db, cluster), folder / f"{from_us}.parquet")
    counted = db.read_parquet(str(folder / "*.parquet")).count("*").fetchall()
    db.close()
    return int(counted[0][0])


def _write(rows: DuckDBPyRelation, file: Path) -> None:
    rows.order("metric, topic, partition, ts").write_parquet(str(file), compression="zstd")


_SAMPLES: Final = """
WITH read AS (
    SELECT * FROM ticks WHERE cluster = $cluster AND ok AND i >= 0 AND i < n
), away AS (
    SELECT cluster, topic, partition, broker, from_us, to_us FROM moves WHERE cluster = $cluster
), bad AS (
    SELECT DISTINCT topic, partition, metric, unnest(range(from_us, to_us, 10000000)) AS tick
    FROM incidents WHERE cluster = $cluster
), led AS (
    SELECT read.*, topic, partition, hot, step
    FROM read JOIN partitions USING (cluster)
         ANTI JOIN away ON away.topic = partitions.topic AND away.partition = partitions.partition
             AND tick >= from_us AND tick < to_us
    WHERE leader = broker
    UNION ALL
    SELECT read.*, topic, partition, hot, step
    FROM read JOIN away USING (cluster, broker) JOIN partitions USING (cluster, topic, partition)
    WHERE tick >= from_us AND tick < to_us
)
SELECT make_timestamptz(answered) AS ts, cluster, source, metric, topic, partition,
       CASE WHEN hot AND metric = v('lag') THEN 1000 + tick // 10000000 * step % 7919
            ELSE (bad.tick IS NOT NULL)::BIGINT END::DOUBLE AS value
FROM led JOIN metrics USING (family) LEFT JOIN bad USING (topic, partition, metric, tick)
"""
