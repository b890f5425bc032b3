-- known_sets: contents of the member sets that runs name; `ways` is the number of different contents in bronze.
CREATE OR REPLACE TABLE known_sets AS
SELECT row_number() OVER () AS set_number, u, members, count(*) AS ways, min(topic) AS set_topic,
    min(partitions) AS partitions,
    min(clients) AS clients, coalesce(len(min(partitions)), len(min(clients))) AS held,
    coalesce(len(list_distinct(min(partitions))), len(list_distinct(min(clients)))) AS distinct_held,
    coalesce(list_min(min(partitions)) < 0, false) AS negative
FROM (
    SELECT DISTINCT u, members, topic, partitions, clients
    FROM (SELECT DISTINCT u, members FROM runs) JOIN units USING (u) JOIN sets USING (cluster, members))
GROUP BY u, members;

CREATE OR REPLACE VIEW identified AS
SELECT *, {u: u, source: source, agent: agent, metric: metric, topic: topic, partition_id: partition,
    user_name: "user", client_id: client_id, consumer_group: "group", labels: labels, members: members,
    series: series, counter: is_increase(flags), spread: is_distribution(flags)} AS identity
FROM runs;

-- streams: a metric of one subject, or of a set of subjects, as one agent reports it, with the first reason to reject
-- its runs. A claimant is a source as one agent reports it. `base` is the value that a metric bounds, or the metric.
CREATE OR REPLACE TABLE streams AS
WITH named AS (SELECT identity, unnest(identity) FROM (SELECT DISTINCT identity FROM identified)),
levels AS (
    SELECT *, CASE WHEN consumer_group IS NOT NULL THEN 'group'
            WHEN partition_id IS NOT NULL OR (members IS NOT NULL AND topic IS NOT NULL) THEN 'partition'
            WHEN topic IS NOT NULL THEN 'topic'
            WHEN user_name IS NOT NULL OR client_id IS NOT NULL OR members IS NOT NULL THEN 'client'
            ELSE 'source' END AS level,
        part_of(level, labels) AS part
    FROM named)
SELECT row_number() OVER () AS stream, levels.*, set_number, u * stride() AS h,
    dense_rank() OVER (ORDER BY source, part, agent) AS claimant,
    -dense_rank() OVER (ORDER BY source, part) AS part_number,
    coalesce(base, metric) AS base, coalesce(side, '') AS side, describes,
    describes IS NULL AND is_position IS NOT TRUE AS measure,
    coalesce(by_replicas, false) AS replica,  -- followers report it too
    CASE WHEN NOT regexp_full_match(metric, '[a-z][a-z0-9_]*([.][a-z][a-z0-9_]*)+')
            THEN 'no metric can have this name'
        WHEN topic = '' OR is_long(topic) OR is_long(user_name) OR is_long(client_id)
            OR is_long(consumer_group) OR (labels IS NOT NULL AND len(list_filter(map_values(labels), lambda x: is_long(x))) > 0)
            THEN 'a name is empty or too long'
        WHEN partition_id IS NOT NULL AND topic IS NULL THEN 'topic is missing'
        WHEN partition_id < 0 THEN 'the partition is negative'
        WHEN series < 1 THEN 'it stands for no series'
        WHEN members IS NULL AND series > 1 THEN 'it stands for several series without a set'
        WHEN members IS NULL THEN NULL
        WHEN ways IS NULL THEN 'its member set is not known'
        WHEN ways > 1 THEN 'its member set has several contents'
        WHEN held IS NULL OR held <> series OR distinct_held <> held OR partition_id IS NOT NULL
            OR (clients IS NOT NULL AND topic IS NOT NULL)
            OR (partitions IS NOT NULL AND (topic IS NULL OR topic IS DISTINCT FROM set_topic OR negative))
            THEN 'it is not what its member set holds'
    END AS fault
FROM levels LEFT JOIN known_sets USING (u, members) LEFT JOIN traits USING (metric);

-- judged: every run on the axis of time, with the first reason to reject it.
CREATE OR REPLACE TABLE judged AS
SELECT stream, on_axis(r.u, start_us) AS s, s + (in_time(end_us) - start_us) AS e, window_of(s) AS w,
    value + 0.0 AS value, lead_us, tail_us, is_known_wrong(flags) AS wrong,
    coalesce(value > 0, false) AS positive,
    -- There is no edge between two values above zero. The part of a lead before the window is its spill.
    greatest(w, s - lead_edge(flags, lead_us)) AS may, greatest(s, e - tail_edge(flags, tail_us)) AS sure,
    greatest(0, lead_edge(flags, lead_us) - (s - w)) AS spill,
    positive AND s = w AS opens,
    CASE WHEN e <= s THEN 'it ends before it starts'
        WHEN start_us > latest_us() THEN 'it lies in the future'
        WHEN e > w + window_us() THEN 'it crosses a window of ' || window_name()
        WHEN lead_us < 0 OR tail_us < 0 THEN 'an edge is negative'
        WHEN greatest(lead_us, tail_us) > 86400000000 THEN 'an edge is longer than a day'
        WHEN NOT is_number(value) THEN 'the value is no number'
        WHEN is_increase(flags) AND value < 0 THEN 'a count is negative'
        WHEN fault IS NOT NULL THEN fault
        WHEN set_number IS NOT NULL AND value <> 0 THEN 'it folds series that are not zero'
    END AS reason, batch
FROM identified r JOIN streams USING (identity);
