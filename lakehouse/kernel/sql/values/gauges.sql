-- set_partitions, set_clients: the series of a grouped row.
CREATE OR REPLACE TABLE set_partitions AS
SELECT set_number, u, set_topic AS topic, unnest(partitions) AS atom
FROM known_sets WHERE ways = 1 AND partitions IS NOT NULL;

CREATE OR REPLACE TABLE set_clients AS
SELECT set_number, u, client."user" AS user_name, client.client_id
FROM (SELECT set_number, u, unnest(clients) AS client FROM known_sets WHERE ways = 1 AND clients IS NOT NULL);

CREATE OR REPLACE VIEW stream_gauges AS
SELECT * FROM stream_sums JOIN streams USING (stream) WHERE NOT counter;

-- busy: clients that were not zero. The other clients are idle; only objectives count them.
CREATE OR REPLACE TABLE busy AS
SELECT DISTINCT u, w, metric, user_name, client_id FROM stream_gauges
WHERE level = 'client' AND measure AND members IS NULL AND (value_min <> 0 OR value_max <> 0);

-- gold_subjects: numbered metrics of topics and clients in a window. A partition that is under min ISR or offline is
-- unavailable, a metric that no broker reports.
CREATE OR REPLACE TABLE gold_subjects AS
WITH named AS (
    SELECT DISTINCT u, w, metric, topic, NULL AS user_name, NULL AS client_id FROM stream_gauges
    WHERE level IN ('partition', 'topic') AND measure AND NOT replica
    UNION
    SELECT u, w, 'kafka.partition.unavailable', topic, NULL, NULL FROM stream_gauges
    WHERE level = 'partition' AND is_unavailable(metric, positive)
    UNION ALL
    SELECT u, w, metric, NULL, user_name, client_id FROM busy)
SELECT row_number() OVER () AS subject, *, hour_of(w) AS h FROM named;

-- reports: the atom of a subject, or the set of atoms, that a stream reports. An atom is a partition (its number) or
-- a part (below zero). It is observed once at an instant, with any number of claimants. Reports of one source that a
-- partition is offline and that it is under min ISR are two claims.
CREATE OR REPLACE TABLE reports AS
WITH topics AS (
    SELECT *, CASE WHEN level = 'partition' THEN partition_id ELSE part_number END AS atom
    FROM stream_gauges WHERE level IN ('partition', 'topic')),
clients AS (
    SELECT * FROM stream_gauges SEMI JOIN busy USING (w, metric) WHERE level = 'client'),
unfolded AS (
    SELECT * FROM clients WHERE members IS NULL
    UNION ALL
    SELECT clients.* REPLACE (c.user_name AS user_name, c.client_id AS client_id)
    FROM clients JOIN set_clients c USING (set_number))
SELECT g.subject, claimant, atom, stream, r.w, positive, set_number, series, spread
FROM topics r JOIN gold_subjects g ON g.w = r.w AND g.metric = r.metric AND g.topic = r.topic
UNION ALL
SELECT g.subject, CASE WHEN r.metric = 'kafka.partition.leaderless' THEN -claimant ELSE claimant END,
    atom, stream, r.w, positive, set_number, series, spread
FROM topics r
    JOIN gold_subjects g ON g.w = r.w AND g.topic = r.topic AND g.metric = 'kafka.partition.unavailable'
WHERE level = 'partition' AND is_unavailable(r.metric, positive)
UNION ALL
SELECT g.subject, claimant, part_number, stream, r.w, positive, NULL, 1, spread
FROM unfolded r JOIN gold_subjects g ON g.w = r.w AND g.metric = r.metric AND g.topic IS NULL
        AND g.user_name IS NOT DISTINCT FROM r.user_name AND g.client_id IS NOT DISTINCT FROM r.client_id;

CREATE OR REPLACE VIEW gauges AS SELECT * FROM usable_runs JOIN reports USING (stream, w, positive);
