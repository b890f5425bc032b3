-- Subjects, from the runs that name or describe them. Metrics of replicas include the controllers' log
-- __cluster_metadata, which is not a topic. The defaults of a quota have Kafka's names.
INSERT INTO out_subjects BY NAME
WITH named AS (
    SELECT *, coalesce(describes = 'node', false) AS node, string_split(labels['default'], ',') AS defaults,
        CASE WHEN describes = 'quota' THEN 'quota'
            WHEN node THEN 'source'
            WHEN replica THEN NULL
            WHEN level IN ('partition', 'topic') THEN 'topic'
            WHEN level IN ('group', 'client') THEN level END AS kind
    FROM streams),
seen AS (SELECT stream, min(s) AS first_seen, max(e) AS last_seen FROM stream_sums GROUP BY stream),
described AS (
    SELECT stream, max(reported(e, value,
            CASE WHEN metric = 'kafka.cluster.node.fenced' THEN nullif(labels['rack'], '') END)) AS latest
    FROM usable WHERE describes IS NOT NULL GROUP BY stream),
latest AS (
    SELECT u, kind, CASE WHEN level <> 'group' THEN topic END AS topic, consumer_group,
        CASE WHEN kind = 'quota' AND list_contains(defaults, 'user') THEN '<default>'
            WHEN kind IN ('quota', 'client') THEN user_name END AS user_name,
        CASE WHEN kind = 'quota' AND list_contains(defaults, 'client-id') THEN '<default>'
            WHEN kind IN ('quota', 'client') THEN client_id END AS client_id,
        CASE WHEN node THEN labels['node'] END AS source,
        CASE WHEN kind = 'client' THEN set_number END AS set_number,
        CASE WHEN latest IS NOT NULL THEN metric END AS metric,
        min(first_seen) AS first_seen, max(last_seen) AS last_seen, max(latest) AS latest
    FROM named JOIN seen USING (stream) LEFT JOIN described USING (stream) WHERE kind IS NOT NULL
    GROUP BY ALL)
-- Clients of a set are expanded once, and not once per run.
SELECT l.u, kind, topic, consumer_group, source, first_seen, last_seen, metric,
    CASE WHEN set_number IS NULL THEN l.user_name ELSE c.user_name END AS user_name,
    CASE WHEN set_number IS NULL THEN l.client_id ELSE c.client_id END AS client_id,
    latest.instant AS reported_at, latest.value AS value, latest.rack AS rack
FROM latest l LEFT JOIN set_clients c USING (set_number);
