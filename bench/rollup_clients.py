"""Clients of the first cluster of a generated fleet, as SQL beside that of its partitions.

All have quotas and are known to every broker, so most rows say that they are idle: one row for
thousands. Half of them are busy at one broker, where their byte rates are others at every
look; some are throttled for a part of an hour, by one broker.

Tables: ``clients``, ``client_metrics`` and ``quiet_clients`` do not depend on time; ``throttles``
says who is throttled from one tick to another, within an hour; ``busy_clients`` are the series in
which something happens in a window.
"""

from __future__ import annotations

from typing import Final

MEMORY_US: Final = 60_000_000
"""For so long Kafka shows a throttle after it has ended, unless the broker is set otherwise."""

THROTTLES: Final = tuple(
    f"kafka.client.{kind}.throttle_time" for kind in ("fetch", "produce", "request")
)
RATES: Final = tuple(f"kafka.client.{kind}.byte_rate" for kind in ("fetch", "produce"))

STANDING: Final = """
CREATE OR REPLACE TABLE client_metrics AS
SELECT metric::metric_name AS metric, family::family_name AS family FROM (VALUES
    ('kafka.client.fetch.throttle_time', 'quotas'),
    ('kafka.client.produce.throttle_time', 'quotas'),
    ('kafka.client.request.throttle_time', 'quotas'),
    ('kafka.client.fetch.byte_rate', 'client_rates'),
    ('kafka.client.produce.byte_rate', 'client_rates')) AS _(metric, family);

CREATE OR REPLACE MACRO user_of(client) AS printf('user-%05d', client);
CREATE OR REPLACE MACRO id_of(client) AS printf('app-%05d', client);

CREATE OR REPLACE TABLE clients AS
SELECT 'cluster-1'::cluster_name AS cluster, c::INT AS client,
       user_of(c::INT) AS "user", id_of(c::INT) AS client_id,
       CASE WHEN c % 2 = 0 THEN (1 + (c // 2) % v('brokers'))::INT END AS home,
       (1 + dice('client', c, 0, 0, 0) % 7918)::BIGINT AS step
FROM range(v('clients')) AS _(c);

-- Who is idle at a broker as long as nothing happens.
CREATE OR REPLACE TABLE quiet_clients AS
SELECT cluster, broker, metric, family,
       list(client ORDER BY client)
           FILTER (family = 'quotas' OR home IS DISTINCT FROM broker) AS members
FROM clients JOIN brokers USING (cluster), client_metrics GROUP BY ALL;
"""

PASSING: Final = """
CREATE OR REPLACE TABLE throttles AS
WITH drawn AS (
    SELECT h, k, 'cluster-1'::cluster_name AS cluster,
           (dice('throttled', h, k, 0, 0) % greatest(v('clients'), 1))::INT AS client,
           (1 + dice('by', h, k, 0, 0) % v('brokers'))::INT AS broker,
           ['fetch', 'produce', 'request'][1 + (dice('kind', h, k, 0, 0) % 3)::INT] AS kind,
           (h + 10000000 * (1 + dice('since', h, k, 0, 0) % 260))::BIGINT AS from_us,
           (10000000 * (2 + dice('long', h, k, 0, 0) % 89))::BIGINT AS length_us
    FROM hours, range(v('throttles')) AS _(k) WHERE v('clients') > 0
)
SELECT cluster, client, broker, from_us, from_us + length_us AS to_us, step,
       ('kafka.client.' || kind || '.throttle_time')::metric_name AS metric
FROM drawn JOIN clients USING (cluster, client)
WHERE NOT EXISTS (  -- an end that is not seen would be another end
    FROM outages WHERE outages.cluster = drawn.cluster AND outages.broker = drawn.broker
        AND drawn.from_us < outages.from_us + v('hour_us') + 60000000
        AND drawn.from_us + length_us > outages.from_us - 60000000)
QUALIFY row_number() OVER (PARTITION BY h, cluster, client, broker, kind ORDER BY k) = 1;
"""

BUSY: Final = """
CREATE OR REPLACE TABLE busy_clients AS
SELECT 1000000000000 + row_number() OVER () AS id, * FROM (
    SELECT w, cluster, home AS broker, metric, family, client, step,
           NULL::BIGINT AS from_us, NULL::BIGINT AS to_us
    FROM windows, clients, client_metrics WHERE family = 'client_rates' AND home IS NOT NULL
    UNION ALL
    SELECT w, cluster, broker, metric, 'quotas'::family_name, client, step, from_us, to_us
    FROM windows JOIN throttles ON from_us <= w + v('window_us') AND to_us >= w);

-- What is idle counts as zero here: where edges lie is the same.
CREATE OR REPLACE TABLE client_samples AS
SELECT id, attempt, i,
       CASE WHEN NOT ok THEN NULL
            WHEN from_us IS NULL THEN 1000 + tick // 10000000 * step % 7919
            WHEN tick >= from_us AND tick < to_us THEN 1 + step % 900
            ELSE 0 END AS value
FROM busy_clients JOIN attempts USING (cluster, broker, family, w);
"""


ROWS: Final = """
CREATE OR REPLACE TABLE idle_clients AS
WITH gone AS (
    SELECT w, cluster, broker, metric, list(client) AS gone
    FROM busy_clients WHERE family = 'quotas' GROUP BY ALL
), idle AS (
    SELECT w, cluster, broker, metric, s, e, lead_us, tail_us, scrapes,
           CASE WHEN gone IS NULL THEN members
                ELSE list_filter(members, lambda one: NOT list_contains(gone, one)) END AS found
    FROM (FROM pieces WHERE id < 0) AS pieces JOIN quiet_clients USING (cluster, broker, family)
         LEFT JOIN gone USING (w, cluster, broker, metric)
    UNION ALL
    SELECT pieces.w, pieces.cluster, pieces.broker, metric, s, e, lead_us, tail_us, scrapes,
           [client]
    FROM pieces JOIN (SELECT id, metric, client FROM busy_clients) AS busy USING (id)
    WHERE value = 0
)
SELECT w, cluster, broker, agent, metric, s, e, lead_us, tail_us, scrapes,
       list_sort(flatten(list(found))) AS found
FROM idle JOIN brokers USING (cluster, broker)
GROUP BY ALL HAVING len(flatten(list(found))) > 0;

CREATE OR REPLACE TABLE client_sets AS
WITH needed AS (
    SELECT cluster, agent, found, min(w) AS w FROM idle_clients WHERE len(found) > 1 GROUP BY ALL
)
SELECT sha256('["clients",null,null,[' || array_to_string(list_transform(
           found, lambda c: '["' || user_of(c) || '","' || id_of(c) || '"]'), ',') || ']]')[:32]
           AS "set",
       cluster, agent, w, found,
       list_transform(found, lambda c: {'user': user_of(c), 'client_id': id_of(c)}) AS clients
FROM needed;

INSERT INTO sets BY NAME
SELECT "set", cluster, NULL::topic_name AS topic, 'clients' AS kind, NULL::INT[] AS partitions,
       clients, agent, w
FROM client_sets;

INSERT INTO runs BY NAME
SELECT idle.w, cluster, broker, agent, metric, s, e, lead_us, tail_us, scrapes,
       CASE WHEN len(idle.found) = 1 THEN clients."user" END AS "user",
       CASE WHEN len(idle.found) = 1 THEN clients.client_id END AS client_id,
       len(idle.found) AS series, "set" AS members, FALSE AS went_on, FALSE AS goes_on
FROM idle_clients AS idle JOIN clients USING (cluster)
     LEFT JOIN client_sets USING (cluster, agent, found)
WHERE clients.client = idle.found[1]
UNION ALL BY NAME
-- What the bean still shows after the end is no more than a tail, however long it is; values that
-- follow one another have no edge between them.
SELECT pieces.w, pieces.cluster, pieces.broker, agent, metric, s, e, lead_us,
       CASE WHEN ended_us IS NULL THEN tail_us
            ELSE greatest(least(e, ended_us) - greatest(s, sure_us), 0) END AS tail_us,
       value, scrapes, "user", client_id, 1 AS series, went_on, goes_on
FROM pieces JOIN (
    SELECT id, metric, client,
           answered_at(cluster, broker, family, to_us) AS ended_us,
           asked_at(cluster, broker, family, to_us - 10000000) - v('memory_us') AS sure_us
    FROM busy_clients) AS busy USING (id)
     JOIN clients USING (cluster, client) JOIN brokers USING (cluster, broker)
WHERE value > 0;
"""
