-- set_partitions, set_clients: the series that a folded row stands for.
CREATE OR REPLACE TABLE set_partitions AS
SELECT set_number, u, set_topic AS topic, unnest(partitions) AS atom
FROM known_sets WHERE ways = 1 AND partitions IS NOT NULL;

CREATE OR REPLACE TABLE set_clients AS
WITH each AS (
    SELECT set_number, u, unnest(clients) AS client FROM known_sets WHERE ways = 1 AND clients IS NOT NULL)
SELECT set_number, u, client."user" AS "user", client.client_id AS client_id FROM each;

-- busy: clients that were not zero; the others are idle and only counted by objectives.
CREATE OR REPLACE TABLE busy AS
SELECT DISTINCT u, w, metric, "user", client_id FROM usable
WHERE level = 'client' AND NOT counter AND measure AND members IS NULL AND value <> 0;

-- gold_subjects: a metric of a topic or client in a window, with a number to go by. What is under its
-- min ISR or has no leader is unavailable: a metric that no broker reports.
CREATE OR REPLACE TABLE gold_subjects AS
WITH named AS (
    SELECT DISTINCT u, w, metric, topic, NULL AS "user", NULL AS client_id FROM usable
    WHERE level IN ('partition', 'topic') AND measure AND NOT counter AND NOT replica
    UNION
    SELECT u, w, 'kafka.partition.unavailable', topic, NULL, NULL FROM usable
    WHERE level = 'partition' AND NOT counter AND is_unavailable(metric, positive)
    UNION ALL
    SELECT u, w, metric, NULL, "user", client_id FROM busy)
SELECT row_number() OVER () AS subject, *, hour_of(w) AS h FROM named;

-- claimants: each source by each agent; what it reports of a topic or client itself is a part of its own.
CREATE OR REPLACE TABLE claimants AS
WITH each AS (
    SELECT DISTINCT source, agent, part_of(level, labels) AS part FROM usable
    WHERE level IN ('partition', 'topic', 'client') AND NOT counter)
SELECT row_number() OVER () AS claimant, *, -dense_rank() OVER (ORDER BY source, part) AS part_number
FROM each;

-- gauges: what a claimant says of an atom, or folded of a set of them. An atom is observed once at an
-- instant, by however many claimants: a partition (its number), or a part (below zero).
CREATE OR REPLACE TABLE gauges AS
SELECT g.subject, claimant, CASE WHEN level = 'partition' THEN partition ELSE part_number END AS atom,
    set_number, series, s, e, r.w, value, positive, may, sure, opens, spill, lead_us, tail_us, wrong, spread
FROM usable r
    JOIN gold_subjects g ON g.w = r.w AND g.metric = r.metric AND g.topic = r.topic
    JOIN claimants c ON c.source = r.source AND c.agent = r.agent AND c.part = part_of(level, labels)
WHERE level IN ('partition', 'topic') AND NOT counter;

INSERT INTO gauges
WITH near AS (
    SELECT * FROM usable SEMI JOIN (SELECT DISTINCT w, metric FROM busy) USING (w, metric)
    WHERE level = 'client' AND NOT counter),
unfolded AS (
    SELECT * FROM near WHERE members IS NULL
    UNION ALL
    SELECT near.* REPLACE (c."user" AS "user", c.client_id AS client_id)
    FROM near JOIN set_clients c USING (set_number))
SELECT g.subject, claimant, part_number,
    NULL, 1, s, e, r.w, value, positive, may, sure, opens, spill, lead_us, tail_us, wrong, spread
FROM unfolded r
    JOIN gold_subjects g ON g.w = r.w AND g.metric = r.metric AND g.topic IS NULL
        AND g."user" IS NOT DISTINCT FROM r."user" AND g.client_id IS NOT DISTINCT FROM r.client_id
    JOIN claimants c ON c.source = r.source AND c.agent = r.agent AND c.part = part_of(level, labels);

-- Of one source, too, a partition without a leader and one under its min ISR are two claims.
INSERT INTO gauges
SELECT d.subject, CASE WHEN o.metric = 'kafka.partition.leaderless' THEN -claimant ELSE claimant END,
    gauges.* EXCLUDE (subject, claimant)
FROM gauges
    JOIN gold_subjects o USING (subject)
    JOIN gold_subjects d ON d.w = o.w AND d.topic = o.topic AND d.metric = 'kafka.partition.unavailable'
WHERE is_unavailable(o.metric, positive) AND (atom >= 0 OR set_number IS NOT NULL);
