-- Offsets that expired before a group read them, if the loss was above zero or unknown. The bounds are two
-- counters over the same time.
INSERT INTO out_lost_offsets BY NAME
WITH bounds AS (
    SELECT w, consumer_group, topic, partition_id, set_number, value, e - s AS us, side = 'high' AS high,
        bool_or(value IS NULL OR value > 0) OVER (PARTITION BY w, consumer_group, topic) AS lost
    FROM usable WHERE level = 'group' AND base = 'kafka.group.non_consumed' AND side <> ''),
each AS (
    SELECT bounds.* EXCLUDE (partition_id, set_number),
        unnest(coalesce(k.partitions, [partition_id])) AS partition_id
    FROM bounds LEFT JOIN known_sets k USING (set_number) WHERE lost)
SELECT w, consumer_group, topic, partition_id, coalesce(sum(exact(value)) FILTER (NOT high), 0) AS offsets_low,
    coalesce(sum(exact(value)) FILTER (high), 0) AS offsets_high,
    coalesce(sum(us) FILTER (high AND value IS NOT NULL), 0) AS series_seen_us,
    coalesce(sum(us) FILTER (high AND value IS NULL), 0) AS series_unknown_us
FROM each GROUP BY ALL HAVING offsets_high > 0 OR series_unknown_us > 0;
