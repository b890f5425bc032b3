-- Lag of groups per topic. Each broker reports the partitions that it leads: records are added up over
-- brokers, and the age is the greatest over brokers. The lag is observed while the number of brokers that
-- report it is the greatest of the window and all brokers are scraped.
INSERT INTO out_consumer_lag BY NAME
WITH reported AS (
    SELECT *, metric = 'kafka.group.lag' AS counts, side = 'high' AND value IS NULL AS open_ended
    FROM usable WHERE level = 'group' AND topic IS NOT NULL AND partition_id IS NULL AND members IS NULL
        AND base IN ('kafka.group.lag', 'kafka.group.time_lag')),
edges AS (
    SELECT w, consumer_group, topic, unnest([s, e, sure, may]) AS t, unnest([1, -1, 0, 0]) AS runs,
        unnest([v, -v, 0, 0]) AS v, unnest([p, -p, 0, 0]) AS pos, unnest([p, 0, -p, 0]) AS low,
        unnest([0, -p, 0, p]) AS high
    FROM (SELECT *, positive::INTEGER AS p, exact(coalesce(value, 0)) AS v FROM reported WHERE counts)
    UNION ALL BY NAME
    SELECT w, consumer_group, topic, unnest([s, e]) AS t, step(1) AS unknown FROM reported WHERE open_ended
    UNION ALL BY NAME
    SELECT w, consumer_group, topic, unnest([x.s, x.e]) AS t, step(1) AS unread
    FROM (SELECT DISTINCT w, consumer_group, topic FROM reported) JOIN unread x USING (w)
    WHERE x.metric = 'kafka.group.lag' AND x.live AND reports_partitions(x.source)),
running AS (
    SELECT w, consumer_group, topic, lead(t) OVER along - t AS us,
        coalesce(sum(sum(COLUMNS(* EXCLUDE (w, consumer_group, topic, t)))) OVER along, 0)
    FROM edges GROUP BY w, consumer_group, topic, t
    WINDOW along AS (PARTITION BY w, consumer_group, topic ORDER BY t)),
segments AS (
    SELECT *, max(runs) OVER (PARTITION BY w, consumer_group, topic) AS most FROM running WHERE us > 0),
sums AS (
    SELECT w, consumer_group, topic, max(v) FILTER (runs > 0) AS records_max,
        sum(us) FILTER (runs > 0 AND runs = most AND unread = 0) AS seen_us,
        sum(us) FILTER (pos > 0) AS behind_us, sum(us) FILTER (low > 0) AS behind_low_us,
        sum(us) FILTER (high > 0) AS behind_high_us, sum(us) FILTER (unknown > 0) AS seconds_unknown_us
    FROM segments GROUP BY ALL),
ages AS (
    SELECT w, consumer_group, topic, max(value) FILTER (side = 'low') AS seconds_low_max,
        max(value) FILTER (side = 'high') AS seconds_high_max,
        unless_open(bool_or(opens) FILTER (counts), max(spill) FILTER (counts AND positive)) AS before_us
    FROM reported GROUP BY ALL)
SELECT w, consumer_group, topic, records_max::DOUBLE AS records_max, seconds_low_max, seconds_high_max, before_us,
    coalesce(COLUMNS(['seen_us', 'behind_us', 'behind_low_us', 'seconds_unknown_us']), 0),
    coalesce(behind_high_us, 0) + before_us AS behind_high_us
FROM ages LEFT JOIN sums USING (w, consumer_group, topic);
