WITH latest AS (
    SELECT cluster, kind, topic, "user", client_id, "group", source, metric,
        min(first_seen) AS first_seen, max(last_seen) AS last_seen,
        max(seen_whole_until) AS seen_whole_until, max({instant: reported_at, known: value IS NOT NULL,
            value: value}) AS latest
    FROM out_subjects JOIN units USING (u) GROUP BY ALL)
SELECT cluster, kind, topic, "user", client_id, "group", source, min(first_seen) AS first_seen,
    max(last_seen) AS last_seen,
    max(seen_whole_until) AS seen_whole_until, max(latest.instant) FILTER (metric IS NOT NULL) AS
        attributes_at,
    coalesce(map_from_entries(list({k: metric, v: latest.value} ORDER BY metric) FILTER (metric IS NOT
        NULL)), MAP {}::MAP(VARCHAR, DOUBLE)) AS attributes,
    coalesce(map_from_entries(list({k: metric, v: latest.instant} ORDER BY metric) FILTER (metric IS NOT
        NULL)), MAP {}::MAP(VARCHAR, BIGINT)) AS attribute_instants
FROM latest GROUP BY ALL ORDER BY ALL
