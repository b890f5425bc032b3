-- Every figure is a least, a greatest or a latest one: to merge hours once or again gives the same rows.
WITH merged AS (
    SELECT *, coalesce(attribute_instants, map_from_entries([{k: x,
        v: attributes_at} FOR x IN map_keys(attributes)])) AS instants
    FROM (FROM known UNION ALL BY NAME FROM reported)),
each AS (
    SELECT * EXCLUDE (attributes, instants, attribute_instants, attributes_at), x AS metric,
        instants[x] AS reported_at, attributes[x] AS value
    FROM (SELECT *, unnest(CASE WHEN len(map_keys(attributes)) > 0 THEN map_keys(attributes)
        ELSE [NULL] END) AS x FROM merged)),
latest AS (
    SELECT cluster, kind, topic, "user", client_id, "group", source, metric,
        min(first_seen) AS first_seen, max(last_seen) AS last_seen,
        max(seen_whole_until) AS seen_whole_until, max({instant: reported_at, known: value IS NOT NULL,
            value: value}) AS latest
    FROM each GROUP BY ALL)
SELECT cluster, kind, topic, "user", client_id, "group", source, min(first_seen) AS first_seen,
    max(last_seen) AS last_seen,
    max(seen_whole_until) AS seen_whole_until, max(latest.instant) FILTER (metric IS NOT NULL) AS
        attributes_at,
    coalesce(map_from_entries(list({k: metric, v: latest.value} ORDER BY metric) FILTER (metric IS NOT
        NULL)), MAP {}::MAP(VARCHAR, DOUBLE)) AS attributes,
    coalesce(map_from_entries(list({k: metric, v: latest.instant} ORDER BY metric) FILTER (metric IS NOT
        NULL)), MAP {}::MAP(VARCHAR, BIGINT)) AS attribute_instants
FROM latest GROUP BY ALL ORDER BY ALL
