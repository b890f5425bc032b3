-- Every figure is a minimum, a maximum or the latest value, so merging an hour again gives the same rows.
latest AS (
    SELECT cluster, kind, topic, user_name, client_id, consumer_group, source, metric,
        min(first_seen) AS first_seen, max(last_seen) AS last_seen, max(seen_whole_until) AS seen_whole_until,
        max(reported(reported_at, value, rack)) AS latest
    FROM each GROUP BY ALL)
SELECT cluster, kind, topic, user_name, client_id, consumer_group, source, min(first_seen) AS first_seen,
    max(last_seen) AS last_seen, max(seen_whole_until) AS seen_whole_until,
    max(latest.instant) FILTER (metric IS NOT NULL) AS attributes_at,
    coalesce(map_from_entries(list({k: metric, v: latest.value} ORDER BY metric)
        FILTER (metric IS NOT NULL)), MAP {}::MAP(VARCHAR, DOUBLE)) AS attributes,
    coalesce(map_from_entries(list({k: metric, v: latest.instant} ORDER BY metric)
        FILTER (metric IS NOT NULL)), MAP {}::MAP(VARCHAR, BIGINT)) AS attribute_instants,
    max(latest.rack) AS rack
FROM latest GROUP BY ALL ORDER BY ALL
