-- known_sets: what bronze says of each member set: in how many ways, and what it holds.
CREATE OR REPLACE TABLE known_sets AS
SELECT row_number() OVER () AS set_number, u, members, count(*) AS ways, min(topic) AS set_topic,
    min(partitions) AS partitions,
    min(clients) AS clients, coalesce(len(min(partitions)), len(min(clients))) AS held,
    coalesce(len(list_distinct(min(partitions))), len(list_distinct(min(clients)))) AS distinct_held,
    coalesce(list_min(min(partitions)) < 0, false) AS negative
FROM (SELECT DISTINCT u, members, topic, partitions, clients FROM sets) GROUP BY u, members;

CREATE OR REPLACE TABLE metric_names AS
SELECT metric, regexp_full_match(metric, '[a-z][a-z0-9_]*([.][a-z][a-z0-9_]*)+') AS is_name,
    NOT (ends_with(metric, '_offset') OR metric IN (SELECT metric FROM describing)) AS measure,
    starts_with(metric, 'kafka.log.') AS replica  -- every replica reports these, not only leaders
FROM (SELECT DISTINCT metric FROM runs);

-- judged: every run on the axis of time, with the first reason why it cannot be used.
CREATE OR REPLACE TABLE judged AS
SELECT u, on_axis(u, start_us) AS s, s + (end_us - start_us) AS e, window_of(s) AS w, start_us,
    source, agent, batch, metric, measure, replica, topic, partition, "user", client_id, "group", labels,
    members, set_number, series, value + 0.0 AS value, lead_us, tail_us,
    CASE WHEN "group" IS NOT NULL THEN 'group'
        WHEN partition IS NOT NULL OR (members IS NOT NULL AND topic IS NOT NULL) THEN 'partition'
        WHEN topic IS NOT NULL THEN 'topic'
        WHEN "user" IS NOT NULL OR client_id IS NOT NULL OR members IS NOT NULL THEN 'client'
        ELSE 'source' END AS level,
    is_increase(flags) AS counter,
    is_known_wrong(flags) AS wrong,
    is_distribution(flags) AS spread,
    coalesce(value > 0, false) AS positive,
    -- An edge between two values above zero is none. What of a lead lies before the window is its spill.
    greatest(w, s - lead_edge(flags, lead_us)) AS may, greatest(s, e - tail_edge(flags, tail_us)) AS sure,
    greatest(0, lead_edge(flags, lead_us) - (s - w)) AS spill,
    positive AND s = w AS opens,
    CASE WHEN e <= s THEN 'it ends before it starts'
        WHEN start_us > latest_us() THEN 'it lies in the future'
        WHEN e > w + window_us() THEN 'it crosses a window of ' || window_name()
        WHEN lead_us < 0 OR tail_us < 0 THEN 'an edge is negative'
        WHEN greatest(lead_us, tail_us) > 86400000000 THEN 'an edge is longer than a day'
        WHEN NOT is_number(value) THEN 'the value is no number'
        WHEN NOT is_name THEN 'no metric can have this name'
        WHEN topic = '' OR is_long(topic) OR is_long("user") OR is_long(client_id) OR is_long("group")
            OR (labels IS NOT NULL AND len(list_filter(map_values(labels), lambda x: is_long(x))) > 0)
            THEN 'a name is empty or too long'
        WHEN partition IS NOT NULL AND topic IS NULL THEN 'topic is missing'
        WHEN partition < 0 THEN 'the partition is negative'
        WHEN series < 1 THEN 'it stands for no series'
        WHEN members IS NULL AND series > 1 THEN 'it stands for several series without a set'
        WHEN members IS NULL THEN NULL
        WHEN ways IS NULL THEN 'its member set is not known'
        WHEN ways > 1 THEN 'its member set is told in several ways'
        WHEN held IS NULL OR held <> series OR distinct_held <> held OR partition IS NOT NULL
            OR (clients IS NOT NULL AND topic IS NOT NULL)
            OR (partitions IS NOT NULL AND (topic IS NULL OR topic IS DISTINCT FROM set_topic OR negative))
            THEN 'it is not what its member set holds'
        WHEN value <> 0 THEN 'it folds series that are not zero'
    END AS reason
FROM runs JOIN metric_names USING (metric) LEFT JOIN known_sets USING (u, members);

CREATE OR REPLACE VIEW usable AS SELECT * FROM judged WHERE reason IS NULL;
