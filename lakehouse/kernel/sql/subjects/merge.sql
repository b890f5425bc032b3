-- each: known subjects and the reports of some hours, one row per metric that describes the subject.
merged AS (
    SELECT *, coalesce(attribute_instants,
            map_from_entries([{k: x, v: attributes_at} FOR x IN map_keys(attributes)])) AS instants
    FROM (FROM known UNION ALL BY NAME FROM reported)),
named AS (
    SELECT *,
        unnest(CASE WHEN len(map_keys(attributes)) > 0 THEN map_keys(attributes) ELSE [NULL] END) AS metric
    FROM merged),
each AS (
    SELECT * EXCLUDE (attributes, instants, attribute_instants, attributes_at, rack),
        CASE WHEN metric = 'kafka.cluster.node.fenced' THEN rack END AS rack,
        instants[metric] AS reported_at, attributes[metric] AS value
    FROM named)
