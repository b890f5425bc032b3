"""The same questions put to the plain samples: ``python -m bench.rollup_peers ENGINE SAMPLES OUT``.

DuckDB and Spark are asked in SQL here, Polars in ``bench.rollup_polars``; what is asked stands in
``bench.rollup_questions``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.rollup_polars import frames
from bench.rollup_questions import INTERVAL_US, KEYS, LENGTHS, LONGEST_US, SOURCES, WINDOW_US

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession


def duck(samples: Path, out: Path) -> float:
    """DuckDB; returns seconds."""
    from bench.rollup_fleet import connect  # noqa: PLC0415 - a peer brings its own engine alone

    db = connect(memory="6GB")
    began = time.monotonic()
    sql = _dialect("epoch_us")
    steps = [sql["held"], sql["cut_duckdb"], sql["partitions"]]
    fine = " ".join(["CREATE TABLE fine AS", *steps])
    fine = fine.replace("SPANS", "list({'s': s, 'e': e}) FILTER (value > 0)")
    db.execute(fine.replace("SAMPLES", f"read_parquet('{samples}/*.parquet')"))
    db.execute(" ".join(["CREATE TABLE topics AS", sql["spans_duckdb"], sql["topics"]]))
    for table, source in SOURCES.items():
        db.sql(coarser(table, source)).write_parquet(str(out / f"{table}.parquet"))
    return time.monotonic() - began


def spark(samples: Path, out: Path) -> float:
    """Spark with ``lead()``; its start does not count."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    builder = SparkSession.builder.master("local[2]")
    for key, value in _SPARK.items():
        builder = builder.config(key, value)
    engine = builder.getOrCreate()
    engine.sql("SELECT 1").collect()
    began = time.monotonic()
    engine.read.parquet(str(samples)).createOrReplaceTempView("samples")
    sql = _dialect("unix_micros")
    fine = " ".join([sql["held"], sql["cut_spark"], sql["partitions"]])
    fine = fine.replace("SPANS", "collect_list(CASE WHEN value > 0 THEN struct(s, e) END)")
    # As files, so that each is made once: cached, it would cost more.
    _keep(engine, out, "fine", fine.replace("SAMPLES", "samples"))
    _keep(engine, out, "topics", " ".join([sql["spans_spark"], sql["topics"]]))
    for table, source in SOURCES.items():
        rows = engine.sql(coarser(table, source)).coalesce(1)
        rows.write.parquet(str(out / f"{table}.parquet"))
    return time.monotonic() - began


def _dialect(micros: str) -> dict[str, str]:
    numbers = {"WINDOW": WINDOW_US, "LONGEST": LONGEST_US, "INTERVAL": INTERVAL_US}
    found = {name: text.replace("MICROS", micros) for name, text in _SQL.items()}
    for word, number in numbers.items():
        found = {name: text.replace(word, str(number)) for name, text in found.items()}
    return found


def _keep(engine: SparkSession, out: Path, name: str, sql: str) -> None:
    engine.sql(sql).write.parquet(str(out / f"{name}_fine"))
    engine.read.parquet(str(out / f"{name}_fine")).createOrReplaceTempView(name)


def coarser(table: str, source: str) -> str:
    """Windows and hours of a table, from its windows."""
    keys = KEYS if table == "partitions" else KEYS[:2]
    sums = ["series_seen_us", "series_affected_us", "value_seconds"]
    sums += ["affected_us"] if table == "topics" else []
    largest = ["highest"] if table == "partitions" else ["max_concurrent"]
    parts = []
    for length, seconds in LENGTHS.items():
        window = f"w - w % {seconds * 1_000_000}"
        figures = [f"sum({name}) AS {name}" for name in sums]
        figures += [f"max({name}) AS {name}" for name in largest]
        chosen = ", ".join([f"'{length}' AS length", f"{window} AS w", *keys, *figures])
        by = ", ".join([window, *keys])
        parts.append(" ".join(["SELECT", chosen, "FROM", source, "GROUP BY", by]))
    return " UNION ALL ".join(parts)


_SPARK: Final = {
    "spark.driver.memory": "4g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "8",  # of 200 most would be empty
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

_SQL: Final = {
    "held": """
WITH followed AS (
    SELECT metric, topic, partition, value, MICROS(ts) AS s,
           lead(MICROS(ts)) OVER (PARTITION BY metric, topic, partition, source ORDER BY ts) AS next
    FROM SAMPLES
), held AS (
    SELECT metric, topic, partition, value, s, s - s % WINDOW AS w,
           CASE WHEN next - s <= LONGEST THEN next ELSE s + INTERVAL END AS e
    FROM followed
),""",
    "cut_duckdb": """cut AS (
    SELECT metric, topic, partition, value, unnest(
        CASE WHEN e <= w + WINDOW THEN [{'s': s, 'e': e, 'w': w}]
             ELSE [{'s': s, 'e': w + WINDOW, 'w': w},
                   {'s': w + WINDOW, 'e': e, 'w': w + WINDOW}] END, recursive := true)
    FROM held
)""",
    "cut_spark": """cut AS (
    SELECT metric, topic, partition, value, inline(
        CASE WHEN e <= w + WINDOW THEN array(named_struct('s', s, 'e', e, 'w', w))
             ELSE array(named_struct('s', s, 'e', w + WINDOW, 'w', w),
                        named_struct('s', w + WINDOW, 'e', e, 'w', w + WINDOW)) END)
    FROM held
)""",
    "partitions": """
SELECT metric, topic, partition, w, sum(e - s) AS series_seen_us,
       sum(CASE WHEN value > 0 THEN e - s ELSE 0 END) AS series_affected_us,
       sum(value * (e - s)) / 1e6 AS value_seconds, max(value) AS highest, SPANS AS spans
FROM cut GROUP BY metric, topic, partition, w""",
    "spans_duckdb": """
WITH spans AS (SELECT metric, topic, w, unnest(spans, recursive := true) FROM fine),""",
    "spans_spark": """
WITH spans AS (SELECT metric, topic, w, inline(spans) FROM fine),""",
    "topics": """
edges AS (
    SELECT metric, topic, w, t, sum(step) AS step FROM (
        SELECT metric, topic, w, s AS t, 1 AS step FROM spans
        UNION ALL SELECT metric, topic, w, e, -1 FROM spans)
    GROUP BY metric, topic, w, t
), running AS (
    SELECT metric, topic, w, t, lead(t) OVER (PARTITION BY metric, topic, w ORDER BY t) AS until,
           sum(step) OVER (PARTITION BY metric, topic, w ORDER BY t) AS count
    FROM edges
), unions AS (
    SELECT metric, topic, w, sum(until - t) AS affected_us, max(count) AS max_concurrent
    FROM running WHERE count > 0 GROUP BY metric, topic, w
), sums AS (
    SELECT metric, topic, w, sum(series_seen_us) AS series_seen_us,
           sum(series_affected_us) AS series_affected_us, sum(value_seconds) AS value_seconds
    FROM fine GROUP BY metric, topic, w
)
SELECT metric, topic, w, series_seen_us, series_affected_us, value_seconds,
       coalesce(affected_us, 0) AS affected_us, coalesce(max_concurrent, 0) AS max_concurrent
FROM sums LEFT JOIN unions USING (metric, topic, w)""",
}


def main() -> int:
    """Answer by one engine, in a process of its own, and print the seconds it took."""
    engines: dict[str, Callable[[Path, Path], float]] = {
        "duckdb": duck, "polars": frames, "spark": spark
    }  # fmt: skip
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=engines)
    parser.add_argument("samples", type=Path, help="folder of Parquet files")
    parser.add_argument("out", type=Path, help="folder for the answers")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True)
    print(json.dumps({"seconds": engines[chosen.engine](chosen.samples, chosen.out)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
