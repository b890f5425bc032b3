"""What goes on in a generated fleet, as SQL: a function of the seed and of absolute time.

Nothing is drawn from a generator with a state, so any hour can be made by itself, and two hours
that are made apart fit together. Every partition is led by one broker, whose agent reads it.

Tables that ``prepare`` makes once: ``brokers``, ``families``, ``metrics``, ``partitions``. Tables
that ``unfold`` makes for some windows; all instants in microseconds:

    moves: a partition is led by another broker from one tick to another, within an hour
    incidents: a metric of a partition is 1 from one tick to another
    ticks: the attempts of every source and family in every window (``i`` counts from 0), with the
        last one before the window (-1) and the first one after it (``n``)
    claims: who leads a partition that is led by somebody else than at home in part of a window
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from bench import rollup_clients
from lakehouse import tables
from lakehouse.tables import MAX_GAP_INTERVALS

if TYPE_CHECKING:
    import datetime as dt

    from duckdb import DuckDBPyConnection

WINDOW_US: Final = tables.DEFAULT_WINDOW_SECONDS * 1_000_000
HOUR_US: Final = 3_600_000_000
INTERVAL_US: Final = 10_000_000  # of the families with partitions
UNDER: Final = "kafka.partition.under_min_isr"
AT: Final = "kafka.partition.at_min_isr"
LAG: Final = "kafka.partition.upload_tier_lag"
CATALOGUE: Final = "generated"
KAFKA_VERSION: Final = "4.3.1"
ERROR: Final = "no answer within 2 s; is the broker overloaded?"


@dataclass(frozen=True)
class Fleet:
    """How large it is, and how much happens.

    Attributes:
        clusters: Clusters, of so many brokers and topics each.
        partitions: Of each topic; three metrics are read of each.
        share: Share of the partitions whose copy lag is another at every scrape.
        hit: Share of a cluster's partitions that an incident touches.
        incidents: Incidents per cluster and hour; 20 s to 15 min each.
        moved: Share of the partitions that another broker leads for a part of each hour.
        outages: Brokers of each cluster that nobody can read for an hour a day, from about 9:00 on.
        clients: Clients with quotas of the first cluster (``bench.rollup_clients``).
        throttles: How many of them are throttled for a part of each hour.
        seed: Another one is another fleet.
    """

    clusters: int = 5
    brokers: int = 20
    topics: int = 100
    partitions: int = 200
    share: float = 0.05
    hit: float = 0.005
    incidents: int = 2
    moved: float = 0.001
    outages: int = 1
    clients: int = 0
    throttles: int = 20
    seed: int = 164

    @property
    def series(self) -> int:
        """Led partitions times metrics."""
        return self.clusters * self.topics * self.partitions * 3


def micros(instant: dt.datetime) -> int:
    """Microseconds since the epoch."""
    return int(instant.timestamp()) * 1_000_000


def prepare(db: DuckDBPyConnection, fleet: Fleet) -> None:
    """Make the tables that do not depend on time."""
    db.execute("SET TimeZone = 'UTC'")
    constants = {
        **asdict(fleet), "window_us": WINDOW_US, "hour_us": HOUR_US, "under_isr": UNDER,
        "at_isr": AT, "lag": LAG, "gap": MAX_GAP_INTERVALS, "error": ERROR,
        "catalogue": CATALOGUE, "kafka_version": KAFKA_VERSION,
        "memory_us": rollup_clients.MEMORY_US,
    }  # fmt: skip
    for name, value in constants.items():
        db.execute(f"SET VARIABLE {name} = {value!r}")
    db.execute(_STANDING)
    db.execute(rollup_clients.STANDING)


def unfold(db: DuckDBPyConnection, first_us: int, until_us: int) -> None:
    """Make the tables for the windows that start in ``[first_us, until_us)``."""
    db.execute(f"SET VARIABLE first_us = {first_us}")
    db.execute(f"SET VARIABLE until_us = {until_us}")
    db.execute(_PASSING)
    db.execute(rollup_clients.PASSING)


_STANDING: Final = """
CREATE OR REPLACE MACRO v(name) AS getvariable(name);
CREATE OR REPLACE MACRO dice(what, a, b, c, d) AS hash(v('seed'), what, a, b, c, d);
CREATE OR REPLACE MACRO asked_at(cluster, broker, family, tick) AS
    (tick + 1000 + dice('asked', cluster, broker, family, tick) % 40000)::BIGINT;
CREATE OR REPLACE MACRO answered_at(cluster, broker, family, tick) AS
    asked_at(cluster, broker, family, tick)
    + (3000 + dice('took', cluster, broker, family, tick) % 20000)::BIGINT;
CREATE OR REPLACE MACRO chance(what, a, b, c, d) AS dice(what, a, b, c, d) % 1000000 / 1e6;

-- Names as numbers with a text: they are sorted and joined by the million.
CREATE OR REPLACE TYPE cluster_name AS ENUM (
    SELECT 'cluster-' || c FROM range(1, v('clusters') + 1) AS _(c));
CREATE OR REPLACE TYPE source_name AS ENUM (
    SELECT 'broker-' || b FROM range(1, v('brokers') + 1) AS _(b));
CREATE OR REPLACE TYPE agent_name AS ENUM (
    SELECT 'agent-' || c || '-' || b
    FROM range(1, v('clusters') + 1) AS _(c), range(1, v('brokers') + 1) AS __(b) ORDER BY c, b);
CREATE OR REPLACE TYPE topic_name AS ENUM (
    SELECT printf('topic-%03d', t) FROM range(v('topics')) AS _(t) ORDER BY t);
CREATE OR REPLACE TYPE metric_name AS ENUM (
    'kafka.client.fetch.byte_rate', 'kafka.client.fetch.throttle_time',
    'kafka.client.produce.byte_rate', 'kafka.client.produce.throttle_time',
    'kafka.client.request.throttle_time',
    'kafka.cluster.node.fenced', 'kafka.partition.at_min_isr', 'kafka.partition.under_min_isr',
    'kafka.partition.upload_tier_lag', 'kafka.topic.compacted', 'kafka.topic.min_insync_replicas',
    'kafka.topic.partitions', 'kafka.topic.remote_storage_enabled',
    'kafka.topic.replication_factor', 'kafka.topic.retention_bytes', 'kafka.topic.retention_time');
CREATE OR REPLACE TYPE family_name AS ENUM (
    'min_isr', 'tiered', 'topology', 'client_rates', 'quotas');

CREATE OR REPLACE TABLE brokers AS
SELECT ('cluster-' || c)::cluster_name AS cluster, b::INT AS broker,
       ('broker-' || b)::source_name AS source, ('agent-' || c || '-' || b)::agent_name AS agent
FROM range(1, v('clusters') + 1) AS _(c), range(1, v('brokers') + 1) AS __(b);

CREATE OR REPLACE TABLE families AS
SELECT family::family_name AS family, interval_us::BIGINT AS interval_us, beans::BIGINT AS beans
FROM (VALUES ('min_isr', 10000000, 2 * v('topics') * v('partitions') // v('brokers')),
             ('tiered', 10000000, v('topics') * v('partitions') // v('brokers')),
             ('topology', 60000000, v('topics') * v('partitions')),
             ('client_rates', 30000000, 2 * v('clients')), ('quotas', 10000000, 3 * v('clients'))
     ) AS _(family, interval_us, beans);

CREATE OR REPLACE TABLE metrics AS
SELECT metric::metric_name AS metric, family::family_name AS family, metric = v('lag') AS lags
FROM (VALUES (v('under_isr'), 'min_isr'), (v('at_isr'), 'min_isr'), (v('lag'), 'tiered')
     ) AS _(metric, family);

-- A topic's partitions go round the brokers, as Kafka places them.
CREATE OR REPLACE TABLE partitions AS
SELECT cluster, printf('topic-%03d', t)::topic_name AS topic, p::INT AS partition,
       (1 + (p + 7 * t) % v('brokers'))::INT AS leader,
       chance('hot', cluster, t, p, 0) < v('share') AS hot,
       (1 + dice('step', cluster, t, p, 0) % 7918)::BIGINT AS step
FROM (SELECT DISTINCT cluster FROM brokers), range(v('topics')) AS _(t),
     range(v('partitions')) AS __(p);

-- What folds as long as nothing happens: the partitions of a topic that a broker leads.
CREATE OR REPLACE TABLE quiet AS
SELECT cluster, leader AS broker, metric, family, topic,
       list(partition ORDER BY partition) AS members
FROM partitions, metrics WHERE NOT (hot AND lags) GROUP BY ALL;

CREATE OR REPLACE TABLE known_sets (agent VARCHAR, "set" VARCHAR);

CREATE OR REPLACE TABLE described AS
SELECT metric::metric_name AS metric, value FROM (VALUES
    ('kafka.topic.partitions', v('partitions')), ('kafka.topic.replication_factor', 3),
    ('kafka.topic.min_insync_replicas', 2), ('kafka.topic.retention_time', 604800000),
    ('kafka.topic.retention_bytes', -1), ('kafka.topic.remote_storage_enabled', 0),
    ('kafka.topic.compacted', 0)) AS _(metric, value);
"""

_PASSING: Final = """
CREATE OR REPLACE TABLE windows AS
SELECT w::BIGINT AS w FROM range(v('first_us'), v('until_us'), v('window_us')) AS _(w);

-- Hours of which something may be told in these windows; an incident may be of the hour before.
CREATE OR REPLACE TABLE hours AS
SELECT h::BIGINT AS h FROM range(
    v('first_us') // v('hour_us') * v('hour_us') - v('hour_us'),
    v('until_us') + 10000001, v('hour_us')) AS _(h);

CREATE OR REPLACE TABLE moves AS
SELECT cluster, topic, partition, leader, from_us, broker,
       (from_us + 10000000 * (6 + dice('back', cluster, topic, partition, h) % 150))::BIGINT
           AS to_us
FROM (
    SELECT h, cluster, topic, partition, leader, (1 + leader % v('brokers'))::INT AS broker,
           (h + 10000000 * (1 + dice('move', cluster, topic, partition, h) % 180))::BIGINT
               AS from_us
    FROM hours, partitions
    WHERE partition > 0 AND v('brokers') > 1
      AND chance('moves', cluster, topic, partition, h) < v('moved'));

CREATE OR REPLACE TABLE incidents AS
WITH one AS (
    SELECT h, cluster, k,
           (h + 10000000 * (dice('incident', cluster, h, k, 0) % 360))::BIGINT AS began_us,
           (10000000 * (2 + dice('length', cluster, h, k, 0) % 89))::BIGINT AS length_us
    FROM hours, (SELECT DISTINCT cluster FROM brokers), range(v('incidents')) AS _(k)
), hit AS (
    SELECT cluster, topic, partition, began_us, began_us + length_us AS ended_us
    FROM one JOIN partitions USING (cluster)
    WHERE chance('hit', topic, partition, began_us, k) < v('hit')
)
SELECT cluster, topic, partition, v('under_isr')::metric_name AS metric, began_us AS from_us,
       ended_us AS to_us
FROM hit
UNION ALL  -- one replica fewer before, and until the last one is back
SELECT cluster, topic, partition, v('at_isr')::metric_name, began_us - 30000000, began_us FROM hit
UNION ALL
SELECT cluster, topic, partition, v('at_isr')::metric_name, ended_us, ended_us + 60000000 FROM hit;

CREATE OR REPLACE TABLE outages AS
SELECT cluster, (1 + (dice('outage', cluster, day, 0, 0) + k) % v('brokers'))::INT AS broker,
       (day + 9 * v('hour_us') + 10000000 * (dice('from', cluster, day, k, 0) % 200))::BIGINT
           AS from_us
FROM range(v('first_us') // (24 * v('hour_us')) * 24 * v('hour_us') - 24 * v('hour_us'),
           v('until_us') + 10000001, 24 * v('hour_us')) AS _(day),
     (SELECT DISTINCT cluster FROM brokers), range(v('outages')) AS __(k);

CREATE OR REPLACE TABLE ticks AS
WITH due AS (
    SELECT cluster, broker, source, agent, family, interval_us, beans, w,
           v('window_us') // interval_us AS n, w + i * interval_us AS tick, i
    FROM brokers, families, windows,
         LATERAL (SELECT unnest(range(-1, v('window_us') // interval_us + 1)) AS i)
    WHERE family NOT IN ('client_rates', 'quotas') OR (v('clients') > 0 AND cluster = 'cluster-1')
), asked AS (
    SELECT due.*, from_us IS NULL AS ok,
           asked_at(due.cluster, due.broker, family, tick) AS asked
    FROM due LEFT JOIN outages ON outages.cluster = due.cluster AND outages.broker = due.broker
        AND family <> 'topology' AND tick >= from_us AND tick < from_us + v('hour_us')
)
SELECT *, CASE WHEN ok THEN answered_at(cluster, broker, family, tick)
               ELSE asked + 2000000 END AS answered
FROM asked;

-- Both that lead a partition in turn, or the one that does at home's place all the time.
CREATE OR REPLACE TABLE claims AS
WITH touched AS (
    SELECT w, moves.*, from_us >= w OR to_us <= w + v('window_us') AS changes
    FROM windows JOIN moves ON from_us <= w + v('window_us') AND to_us >= w
)
SELECT w, cluster, topic, partition, broker, FALSE AS home, from_us, to_us, changes FROM touched
UNION ALL
SELECT w, cluster, topic, partition, leader, TRUE, from_us, to_us, TRUE FROM touched WHERE changes;
"""
