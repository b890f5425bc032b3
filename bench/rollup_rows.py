"""A generated fleet as rows of bronze, just those that agents would have written.

What is zero folds, as agents fold it. ``tests/unit/test_rollup_fleet.py`` holds the rows against
those of the encoder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bench import rollup_clients, rollup_pieces
from lakehouse import tables

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation


def make(db: DuckDBPyConnection) -> None:
    """Make the tables ``runs`` and ``accounts`` of the windows that are unfolded."""
    rollup_pieces.make(db)
    for step in (_FOLDED, _RUNS, rollup_clients.ROWS, _ACCOUNTS):
        db.execute(step)


def runs(db: DuckDBPyConnection) -> DuckDBPyRelation:
    """Rows of bronze/runs, in its columns, in the order of commits that were put together."""
    narrow = db.table("runs").order(_RUNS_ORDER)
    return narrow.select(_RUNS_COLUMNS).select(*tables.RUNS.column_names)


def members(db: DuckDBPyConnection) -> DuckDBPyRelation:
    """Rows of bronze/members that are not in the table ``known_sets`` yet."""
    fresh = db.sql("FROM sets ANTI JOIN known_sets USING (agent, set) ORDER BY kind, topic, set")
    return fresh.select(_MEMBERS_COLUMNS).select(*tables.MEMBERS.column_names)


def scrapes(db: DuckDBPyConnection) -> DuckDBPyRelation:
    """Rows of bronze/scrapes."""
    narrow = db.table("accounts").order("w, agent, family, s")
    return narrow.select(_SCRAPES_COLUMNS).select(*tables.SCRAPES.column_names)


_RUNS_ORDER: Final = (
    'w, agent, metric, topic NULLS FIRST, partition NULLS FIRST, "user" NULLS FIRST, s'
)

_FOLDED: Final = """
CREATE OR REPLACE TABLE exceptions AS
WITH gone AS (
    SELECT w, cluster, broker, metric, topic, partition FROM busy WHERE home AND NOT hot
    UNION
    SELECT w, cluster, leader, metric, topic, partition
    FROM claims JOIN partitions USING (cluster, topic, partition), metrics
    WHERE NOT changes AND NOT (hot AND lags)
), came AS (
    SELECT w, cluster, claims.broker, metric, topic, partition
    FROM claims JOIN metrics ON NOT changes
         ANTI JOIN busy USING (w, cluster, topic, partition, metric)
)
SELECT w, cluster, broker, metric, topic,
       coalesce(list(partition) FILTER (NOT coming), []) AS gone,
       coalesce(list(partition) FILTER (coming), []) AS came
FROM (SELECT *, FALSE AS coming FROM gone UNION ALL SELECT *, TRUE FROM came) GROUP BY ALL;

CREATE OR REPLACE TABLE folded AS
WITH placed AS (
    SELECT w, cluster, broker, metric, topic, members, gone, came
    FROM (windows CROSS JOIN quiet)
         FULL JOIN exceptions USING (w, cluster, broker, metric, topic)
), zeros AS (
    SELECT w, cluster, broker, metric, topic, s, e, lead_us, tail_us, scrapes,
           CASE WHEN gone IS NULL THEN members
                ELSE list_concat(
                    list_filter(coalesce(members, []), lambda one: NOT list_contains(gone, one)),
                    came) END AS found
    FROM placed JOIN metrics USING (metric)
         JOIN (FROM pieces WHERE id < 0) AS pieces USING (w, cluster, broker, family)
    UNION ALL
    SELECT pieces.w, pieces.cluster, pieces.broker, metric, topic, s, e, lead_us, tail_us, scrapes,
           [partition]
    FROM pieces JOIN (SELECT id, metric, topic, partition FROM busy) AS busy USING (id)
    WHERE value = 0
)
SELECT w, cluster, broker, agent, metric, topic, s, e, lead_us, tail_us, scrapes,
       list_sort(flatten(list(found))) AS found
FROM zeros JOIN brokers USING (cluster, broker)
GROUP BY ALL HAVING len(flatten(list(found))) > 0;
"""

_RUNS: Final = """
CREATE OR REPLACE TABLE sets AS
WITH found AS (
    SELECT DISTINCT cluster, agent, w, topic, found FROM folded WHERE len(found) > 1
), told AS (
    SELECT cluster, agent, topic, found, min(w) AS w FROM found GROUP BY ALL
)
SELECT sha256('["partitions","' || topic::VARCHAR || '",[' || array_to_string(found, ',')
              || '],null]')[:32] AS set,
       cluster, topic, 'partitions' AS kind, found AS partitions,
       NULL::STRUCT("user" VARCHAR, client_id VARCHAR)[] AS clients, agent, w
FROM told;

CREATE OR REPLACE TABLE runs AS
SELECT w, pieces.cluster, pieces.broker, agent, metric, topic, partition,
       NULL::VARCHAR AS "user", NULL::VARCHAR AS client_id, s, e, lead_us, tail_us,
       value, scrapes, 1 AS series, NULL AS members, NULL::source_name AS node, went_on, goes_on
FROM pieces JOIN (SELECT id, metric, topic, partition FROM busy) AS busy USING (id)
     JOIN brokers USING (cluster, broker)
WHERE value <> 0
UNION ALL
SELECT folded.w, folded.cluster, broker, folded.agent, metric, folded.topic,
       CASE WHEN len(found) = 1 THEN found[1] END, NULL, NULL, s, e, lead_us, tail_us, 0, scrapes,
       len(found), set, NULL, FALSE, FALSE
FROM folded LEFT JOIN sets ON sets.agent = folded.agent AND sets.topic = folded.topic
     AND sets.partitions = found
UNION ALL
SELECT w, cluster, broker, agent, metric, topic, NULL, NULL, NULL, s, e, lead_us, tail_us,
       described.value,
       scrapes, 1, NULL, NULL, FALSE, FALSE
FROM pieces JOIN brokers USING (cluster, broker) JOIN partitions USING (cluster), described
WHERE id < 0 AND family = 'topology' AND leader = broker AND partition = 0
UNION ALL
SELECT w, cluster, broker, agent, 'kafka.cluster.node.fenced'::metric_name, NULL, NULL, NULL,
       NULL, s, e,
       lead_us, tail_us, 0, scrapes, 1, NULL, node.source, FALSE, FALSE
FROM pieces JOIN brokers USING (cluster, broker)
     JOIN (SELECT cluster, source FROM brokers) AS node USING (cluster)
WHERE id < 0 AND family = 'topology' AND broker <= 2;
"""

_RUNS_COLUMNS: Final = """
make_timestamptz(s)::DATE AS date, cluster::VARCHAR AS cluster, 'broker-' || broker AS source,
metric::VARCHAR AS metric, topic::VARCHAR AS topic, partition::INT AS partition,
"user", client_id, NULL::VARCHAR AS "group",
CASE WHEN node IS NOT NULL THEN MAP {'node': node::VARCHAR} END AS labels,
make_timestamptz(s) AS start, make_timestamptz(e) AS "end", lead_us, tail_us,
value::DOUBLE AS value, scrapes, series::INT AS series, members,
CASE WHEN went_on AND goes_on THEN ['previous_positive', 'next_positive']
     WHEN went_on THEN ['previous_positive'] WHEN goes_on THEN ['next_positive'] END AS flags,
agent::VARCHAR AS agent, w // v('window_us') AS batch
"""

_MEMBERS_COLUMNS: Final = """
"set", cluster::VARCHAR AS cluster, kind, topic::VARCHAR AS topic, partitions,
clients, agent::VARCHAR AS agent,
w // v('window_us') AS batch
"""

_ACCOUNTS: Final = """
CREATE OR REPLACE TABLE accounts AS
WITH numbered AS (
    SELECT *, sum((i >= 0 AND ok <> was_ok)::INT)
                  OVER (PARTITION BY cluster, broker, family, w ORDER BY i) AS piece
    FROM attempts
), told AS (
    SELECT cluster, broker, source, agent, family, interval_us, w, piece, first(ok) AS ok,
           min(CASE WHEN i = -1 THEN w ELSE told_us END) AS s,
           count(*) FILTER (i >= 0 AND i < n) AS scrapes,
           coalesce(sum(beans) FILTER (ok AND i >= 0 AND i < n), 0) AS beans,
           coalesce(sum(answered - asked) FILTER (i >= 0 AND i < n), 0) / 1e6 AS total,
           coalesce(max(answered - asked) FILTER (i >= 0 AND i < n), 0) / 1e6 AS longest
    FROM numbered GROUP BY ALL
), placed AS (
    SELECT *, w + v('window_us') AS cut,
           least(coalesce(lead(s) OVER (PARTITION BY cluster, broker, family, w ORDER BY piece),
                          cut), cut) AS e
    FROM told
)
SELECT * FROM placed WHERE e > s;
"""

_SCRAPES_COLUMNS: Final = """
make_timestamptz(s)::DATE AS date, cluster::VARCHAR AS cluster, source::VARCHAR AS source,
family::VARCHAR AS family, make_timestamptz(s) AS start, make_timestamptz(e) AS "end",
CASE WHEN ok THEN 'ok' ELSE 'timeout' END AS outcome, scrapes::INT AS scrapes,
beans::BIGINT AS beans, 0::BIGINT AS dropped_series, total AS seconds_total,
longest AS seconds_max, interval_us, (interval_us * v('gap'))::BIGINT AS max_gap_us,
v('catalogue') AS catalogue, CASE WHEN ok THEN v('kafka_version') END AS kafka_version,
CASE WHEN NOT ok THEN v('error') END AS error, agent::VARCHAR AS agent,
w // v('window_us') AS batch
"""
