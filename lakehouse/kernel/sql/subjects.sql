-- What exists, by the runs that name or describe it. Logs are also of the controllers' own
-- __cluster_metadata, which is no topic. A quota names its defaults as Kafka does.
INSERT INTO out_subjects BY NAME
WITH named AS (
    SELECT *, metric = 'kafka.cluster.node.fenced' AS node, string_split(labels['default'], ',') AS defaults,
        CASE WHEN starts_with(metric, 'kafka.quota.') THEN 'quota'
            WHEN node THEN 'source'
            WHEN replica THEN NULL
            WHEN level IN ('partition', 'topic') THEN 'topic'
            WHEN level IN ('group', 'client') THEN level END AS kind
    FROM usable),
identified AS (
    SELECT u, kind, CASE WHEN level <> 'group' THEN topic END AS topic, "group",
        CASE WHEN kind = 'quota' AND list_contains(defaults, 'user') THEN '<default>'
            WHEN kind IN ('quota', 'client') THEN "user" END AS "user",
        CASE WHEN kind = 'quota' AND list_contains(defaults, 'client-id') THEN '<default>'
            WHEN kind IN ('quota', 'client') THEN client_id END AS client_id,
        CASE WHEN node THEN labels['node'] END AS source,
        CASE WHEN kind = 'client' THEN set_number END AS set_number,
        CASE WHEN metric IN (SELECT metric FROM describing) THEN metric END AS metric,
        start_us, start_us + e - s AS end_us, value,
        CASE WHEN node THEN nullif(labels['rack'], '') END AS rack
    FROM named WHERE kind IS NOT NULL),
latest AS (
    SELECT * EXCLUDE (start_us, end_us, value, rack), min(start_us) AS first_seen, max(end_us) AS last_seen,
        max(reported(end_us, value, rack)) FILTER (metric IS NOT NULL) AS latest
    FROM identified GROUP BY ALL)
-- Folded clients are unfolded once, and not once a run.
SELECT l.u, kind, topic, "group", source, first_seen, last_seen, metric,
    CASE WHEN set_number IS NULL THEN l."user" ELSE c."user" END AS "user",
    CASE WHEN set_number IS NULL THEN l.client_id ELSE c.client_id END AS client_id,
    latest.instant AS reported_at, latest.value AS value, latest.rack AS rack
FROM latest l LEFT JOIN set_clients c USING (set_number);
