"""Spans in which a series of a generated fleet held one value, window by window.

A series in which something happens in a window is *busy*: it is made sample by sample, and its
pieces are found. All others are zero for as long as their source was read: one stands for them,
by source and family, under a negative id. So the cost follows what happens, as it does for an
agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bench import rollup_clients

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def make(db: DuckDBPyConnection) -> None:
    """Make the tables ``busy``, ``attempts`` and ``pieces`` of the windows that are unfolded."""
    for step in (_BUSY, _ATTEMPTS, rollup_clients.BUSY, _STATES, _PIECES):
        db.execute(step)


_BUSY: Final = """
CREATE OR REPLACE TABLE busy AS
WITH wanted AS (
    SELECT w, cluster, topic, partition, metric FROM claims, metrics WHERE changes
    UNION
    SELECT w, cluster, topic, partition, metric
    FROM windows JOIN incidents ON from_us <= w + v('window_us') AND to_us >= w
    UNION
    SELECT w, cluster, topic, partition, v('lag')::metric_name FROM windows, partitions WHERE hot
)
SELECT row_number() OVER () AS id, wanted.*, family, coalesce(claims.broker, leader) AS broker,
       coalesce(home, TRUE) AS home, from_us, to_us, lags AND hot AS hot, step
FROM wanted JOIN partitions USING (cluster, topic, partition) JOIN metrics USING (metric)
     LEFT JOIN claims USING (w, cluster, topic, partition);
"""

_ATTEMPTS: Final = """
CREATE OR REPLACE TABLE bad_ticks AS
SELECT DISTINCT cluster, topic, partition, metric,
       unnest(range(from_us, to_us, 10000000)) AS tick
FROM incidents;

CREATE OR REPLACE TABLE attempts AS
SELECT row_number() OVER () AS attempt, *,
       lag(ok) OVER each AS was_ok, lag(asked) OVER each AS asked_before,
       CASE WHEN ok THEN answered ELSE asked END AS told_us
FROM ticks WINDOW each AS (PARTITION BY cluster, broker, family, w ORDER BY i);
"""

# A series that its source does not lead has no value. One stands for all that are quiet.
_STATES: Final = """
CREATE OR REPLACE TABLE states AS
WITH busy_samples AS (
    SELECT id, attempt, i, tick, busy.cluster, topic, partition, metric, hot, step,
           ok AND (from_us IS NULL OR home <> (tick >= from_us AND tick < to_us)) AS there
    FROM busy JOIN attempts USING (cluster, broker, family, w)
), samples AS (
    SELECT id, attempt, i, CASE WHEN there THEN
               CASE WHEN s.hot THEN 1000 + tick // 10000000 * step % 7919
                    ELSE (bad.tick IS NOT NULL)::BIGINT END END AS value
    FROM busy_samples AS s LEFT JOIN bad_ticks AS bad
         USING (cluster, topic, partition, metric, tick)
    UNION ALL FROM client_samples
    UNION ALL
    SELECT -min(attempt) OVER (PARTITION BY cluster, broker, family, w), attempt, i,
           CASE WHEN ok THEN 0 END
    FROM attempts
)
SELECT *, lag(value) OVER (PARTITION BY id ORDER BY i) AS was FROM samples;
"""

_PIECES: Final = """
CREATE OR REPLACE TABLE pieces AS
WITH changes AS (
    SELECT id, attempt, states.i, value, was, told_us,
           CASE WHEN was_ok THEN told_us - asked_before ELSE 0 END AS edge
    FROM states JOIN attempts USING (attempt)
    WHERE states.i = -1 OR ok <> was_ok OR value IS DISTINCT FROM was
), followed AS (
    SELECT *, lead(i) OVER each AS next_i, lead(told_us) OVER each AS next_us,
           lead(edge) OVER each AS next_edge, lead(value) OVER each AS next_value
    FROM changes WINDOW each AS (PARTITION BY id ORDER BY i)
), placed AS (
    SELECT id, w, n, cluster, broker, family, followed.i, value, edge, next_i, next_us, next_edge,
           w + v('window_us') AS cut,
           CASE WHEN followed.i = -1 THEN w ELSE followed.told_us END AS s,
           least(coalesce(next_us, cut), cut) AS e,
           coalesce(value > 0 AND next_value > 0, FALSE) AS on_and_on,
           coalesce(followed.i >= 0 AND value > 0 AND was > 0, FALSE) AS went_on,
           coalesce(next_i < n, FALSE) AS ends
    FROM followed JOIN attempts USING (attempt)
    WHERE value IS NOT NULL AND followed.i < n
)
SELECT id, w, cluster, broker, family, s, e, value,
       CASE WHEN i = -1 THEN 0 ELSE edge END AS lead_us,
       CASE WHEN next_i IS NULL THEN 0
            WHEN ends THEN least(next_edge, e - s)
            WHEN on_and_on THEN 0  -- the edge ends at the cut
            ELSE least(greatest(next_edge - (next_us - cut), 0), e - s) END AS tail_us,
       (least(coalesce(next_i, n), n) - greatest(i, 0))::INT AS scrapes,
       went_on, ends AND on_and_on AS goes_on
FROM placed WHERE e > s;
"""
