-- Groups: bad during an increase of the lost offsets. Good while the loss of all partitions is known to be zero
-- and all brokers are scraped, because a broker that is not scraped may lead a partition with a loss. The bounds
-- are two counters: the minimum and the maximum loss.
INSERT INTO out_sli BY NAME
WITH bounds AS (
    SELECT w, base AS metric, consumer_group, s, e, series,
        side = 'high' AS high, value IS NULL AS unknown, coalesce(value > 0, false) AS lost
    FROM usable WHERE level = 'group' AND counter),
steps AS (
    SELECT {w: w, objective: objective, consumer_group: consumer_group} AS place, unnest([s, e]) AS t,
        step(CASE WHEN high THEN series ELSE 0 END) AS members,
        step((high AND unknown)::INTEGER) AS unknown, step((lost AND NOT high)::INTEGER) AS bad, bad AS low,
        step((lost AND high)::INTEGER) AS high
    FROM bounds JOIN objectives o USING (metric) WHERE o.level = 'group'
    UNION ALL BY NAME
    SELECT {w: x.w, objective: objective, consumer_group: consumer_group} AS place, unnest([x.s, x.e]) AS t,
        step(1) AS unknown
    FROM (SELECT DISTINCT w, metric, consumer_group FROM bounds) g
        JOIN objectives o ON o.metric = g.metric AND o.level = 'group'
        JOIN unread x ON x.w = g.w AND x.metric = g.metric
    WHERE x.live AND reports_partitions(x.source))
SELECT unnest(place), * EXCLUDE (place) FROM timed(steps) WHERE greatest(good_us, bad_us, bad_high_us) > 0;
