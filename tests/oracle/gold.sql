-- Gold out of bronze in plain SQL; views runs, members and scrapes, and the macros now_us(), window_us() and window_name() are given.
-- Time is cut at every edge of every claim, and each slice is asked who claims it: no running sums.

CREATE MACRO window_of(t) AS t - t % window_us();
CREATE MACRO placed(t) AS list_distinct([
    {grain: window_name(), period: strftime(make_timestamp(t), '%Y-%m-%d'), window_: t},
    {grain: '5m', period: strftime(make_timestamp(t), '%Y-%m-%d'), window_: t - t % 300000000},
    {grain: '1h', period: strftime(make_timestamp(t), '%Y-%m-%d'), window_: epoch_us(date_trunc('hour', make_timestamp(t)))},
    {grain: '1d', period: strftime(make_timestamp(t), '%Y-%m'), window_: epoch_us(date_trunc('day', make_timestamp(t))::TIMESTAMP)},
    {grain: '1w', period: strftime(make_timestamp(t), '%G'), window_: epoch_us(date_trunc('week', make_timestamp(t))::TIMESTAMP)}]);
CREATE MACRO flagged(flags, flag) AS coalesce(list_contains(flags, flag), false);
CREATE MACRO long(name) AS coalesce(octet_length(encode(name)) > 1024, false);

CREATE TABLE known_sets AS
SELECT cluster, "set" AS members, any_value(topic) AS set_topic, any_value(partitions) AS partitions, any_value(clients) AS clients
FROM members GROUP BY cluster, "set" HAVING count(DISTINCT to_json({t: topic, p: partitions, c: clients})) = 1;

CREATE TABLE usable AS
WITH timed AS (
    SELECT * EXCLUDE (start, "end"), epoch_us(start) AS s, epoch_us("end") AS e,
        coalesce(len(list_distinct(partitions)), len(list_distinct(clients)), 0) AS held,
        coalesce(len(partitions), len(clients), 0) AS listed
    FROM runs LEFT JOIN known_sets USING (cluster, members))
SELECT *, window_of(s) AS w,
    CASE WHEN "group" IS NOT NULL THEN 'group' WHEN partition IS NOT NULL OR partitions IS NOT NULL THEN 'partition'
        WHEN topic IS NOT NULL THEN 'topic' WHEN "user" IS NOT NULL OR client_id IS NOT NULL OR clients IS NOT NULL THEN 'client'
        ELSE 'source' END AS level,
    flagged(flags, 'increase') AS counter,
    flagged(flags, 'known_wrong') AS wrong,
    coalesce(value > 0, false) AS positive,
    CASE WHEN flagged(flags, 'previous_positive') THEN 0 ELSE lead_us END AS lead_edge,
    CASE WHEN flagged(flags, 'next_positive') THEN 0 ELSE tail_us END AS tail_edge,
    NOT (ends_with(metric, '_offset') OR metric IN ('kafka.cluster.node.fenced', 'kafka.topic.partitions',
        'kafka.topic.replication_factor', 'kafka.topic.min_insync_replicas', 'kafka.topic.retention_time',
        'kafka.topic.retention_bytes', 'kafka.topic.remote_storage_enabled', 'kafka.topic.compacted',
        'kafka.quota.produce.byte_rate', 'kafka.quota.fetch.byte_rate', 'kafka.quota.request.percentage',
        'kafka.quota.controller_mutation.rate')) AS measure
FROM timed
WHERE s < e AND s <= now_us() + 3600000000 AND e <= window_of(s) + window_us()
    AND date::DATE = make_timestamp(s)::DATE
    AND lead_us BETWEEN 0 AND 86400000000 AND tail_us BETWEEN 0 AND 86400000000
    AND (value IS NULL OR (isfinite(value) AND abs(value) <= 1e19))
    AND regexp_full_match(metric, '[a-z][a-z0-9_]*([.][a-z][a-z0-9_]*)+')
    AND topic IS DISTINCT FROM ''
    AND NOT (long(topic) OR long("user") OR long(client_id) OR long("group"))
    AND NOT coalesce(list_bool_or([long(x) FOR x IN map_values(labels)]), false)
    AND (partition IS NULL OR (topic IS NOT NULL AND partition >= 0))
    AND series >= 1
    AND CASE WHEN members IS NULL THEN series = 1
        ELSE series = held AND held = listed AND coalesce(value, 0) = 0 AND partition IS NULL
            AND (partitions IS NULL OR (topic IS NOT NULL AND topic IS NOT DISTINCT FROM set_topic AND list_min(partitions) >= 0))
            AND (clients IS NULL OR topic IS NULL) END;

-- Who claims what: a partition is the same whoever claims it, else a source speaks for itself.
CREATE TABLE claims AS
WITH gauges AS (SELECT * FROM usable WHERE measure AND NOT counter AND NOT starts_with(metric, 'kafka.log.')),
named AS (
    SELECT * REPLACE (unnest(coalesce(partitions, [partition])) AS partition), 'p' AS atom FROM gauges WHERE level = 'partition'
    UNION ALL SELECT *, concat('s', source, to_json(labels)) FROM gauges WHERE level = 'topic'),
derived AS (
    SELECT * REPLACE ('kafka.partition.unavailable' AS metric) FROM named
    WHERE atom = 'p' AND (metric = 'kafka.partition.under_min_isr' OR (metric = 'kafka.partition.leaderless' AND positive))),
by_client AS (
    SELECT * EXCLUDE (one) REPLACE (one."user" AS "user", one.client_id AS client_id), concat('s', source, to_json(labels)) AS atom
    FROM (SELECT *, unnest(coalesce(clients, [{'user': "user", 'client_id': client_id}])) AS one
          FROM usable WHERE measure AND NOT counter AND level = 'client')),
everything AS (
    SELECT 'topic' AS kind, * REPLACE (NULL AS "user", NULL AS client_id) FROM (FROM named UNION ALL FROM derived)
    UNION ALL SELECT 'client', * REPLACE (NULL AS topic, NULL AS partition) FROM by_client)
SELECT kind, cluster, w, metric, topic, partition, "user", client_id, atom, s, e, value, positive, wrong,
    greatest(w, s - lead_edge) AS may, greatest(s, e - tail_edge) AS sure,
    CASE WHEN positive THEN greatest(0, lead_edge - (s - w)) END AS spilled, positive AND s = w AS opens,
    dense_rank() OVER (ORDER BY kind, cluster, w, metric, topic, "user", client_id) AS subject,
    dense_rank() OVER (ORDER BY kind, cluster, w, metric, topic, "user", client_id, partition, atom) AS atom_id
FROM everything;

CREATE TABLE slices AS
WITH edges AS (SELECT DISTINCT subject, unnest([s, e, may, sure]) AS a FROM claims)
SELECT subject, a, lead(a) OVER (PARTITION BY subject ORDER BY a) AS b FROM edges QUALIFY b IS NOT NULL;

CREATE TABLE by_atom AS
SELECT subject, atom_id, a, b - a AS us,
    bool_or(s <= a AND b <= e)::INT AS obs,
    bool_or(positive AND s <= a AND b <= e)::INT AS pos,
    bool_or(positive AND s <= a AND b <= sure)::INT AS low,
    bool_or(positive AND may <= a AND b <= e)::INT AS high,
    coalesce(avg(value) FILTER (positive AND s <= a AND b <= e),
             avg(coalesce(value, 0)) FILTER (s <= a AND b <= e), 0) AS v,
    any_value(partition) IS NULL AS of_source
FROM slices JOIN claims USING (subject)
WHERE may <= a AND b <= e
GROUP BY subject, atom_id, a, b;

CREATE TABLE atoms AS
SELECT subject, atom_id, any_value(partition) AS partition, min(value) AS least, max(value) AS greatest,
    bool_or(wrong) AS wrong, CASE WHEN bool_or(opens) THEN 0 ELSE coalesce(max(spilled), 0) END AS spill
FROM claims GROUP BY subject, atom_id;

CREATE TABLE atom_rows AS
SELECT subject, atom_id, sum(us * obs)::BIGINT AS observed_us, sum(v * us * obs) / 1e6 AS value_seconds, sum(us * pos)::BIGINT AS positive_us,
    sum(us * low)::BIGINT AS positive_low_us, sum(us * high)::BIGINT AS positive_high_us
FROM by_atom GROUP BY subject, atom_id;

CREATE TABLE subjects_of_claims AS
SELECT subject, any_value(kind) AS kind, any_value(cluster) AS cluster, any_value(w) AS w, any_value(metric) AS metric,
    any_value(topic) AS topic, any_value("user") AS "user", any_value(client_id) AS client_id,
    CASE WHEN bool_or(opens) THEN 0 ELSE coalesce(max(spilled), 0) END AS spill
FROM claims GROUP BY subject;

CREATE TABLE subject_rows AS
WITH instants AS (
    SELECT subject, a, any_value(us) AS us, sum(obs) AS obs, sum(pos) AS pos, max(low) AS low, max(high) AS high,
        sum(obs) FILTER (of_source) AS told, sum(v) FILTER (of_source) AS v
    FROM by_atom GROUP BY subject, a),
unions AS (
    SELECT subject, max(obs)::BIGINT AS series, sum(us) FILTER (pos > 0) AS any_us, sum(us) FILTER (low > 0) AS any_low_us,
        sum(us) FILTER (high > 0) AS any_high_us, max(pos)::BIGINT AS max_concurrent, max(v) FILTER (told > 0) AS max_total
    FROM instants GROUP BY subject),
sums AS (
    SELECT subject, sum(observed_us)::BIGINT AS observed_us, sum(value_seconds) AS value_seconds, min(least) AS min, max(greatest) AS max,
        sum(positive_us)::BIGINT AS positive_us, sum(positive_low_us)::BIGINT AS positive_low_us,
        sum(positive_high_us + spill)::BIGINT AS positive_high_us, NULL::DOUBLE AS increase, bool_or(wrong) AS known_wrong
    FROM atoms JOIN atom_rows USING (subject, atom_id) GROUP BY subject)
SELECT s.*, sums.* EXCLUDE (subject), series, coalesce(any_us, 0)::BIGINT AS any_us, coalesce(any_low_us, 0)::BIGINT AS any_low_us,
    (coalesce(any_high_us, 0) + spill)::BIGINT AS any_high_us, max_concurrent, max_total
FROM subjects_of_claims s JOIN sums USING (subject) JOIN unions USING (subject);

CREATE TABLE counted AS
SELECT cluster, w, metric, topic, partition, "user", client_id, level, sum((e - s) * series) FILTER (value IS NOT NULL) AS observed_us,
    sum(value) AS increase, max(series) AS series, bool_or(wrong) AS known_wrong
FROM usable WHERE counter AND (level IN ('partition', 'topic') OR (level = 'client' AND clients IS NULL)) GROUP BY ALL;

CREATE MACRO mean_of(amount, us) AS CASE WHEN us > 0 THEN amount / (us / 1e6) END;

CREATE TABLE topics AS
WITH fine AS (
    SELECT cluster, w, metric, topic, observed_us, value_seconds, min, max, positive_us, positive_low_us, positive_high_us,
        increase, series, known_wrong, any_us, any_low_us, any_high_us, max_concurrent, max_total
    FROM subject_rows WHERE kind = 'topic'
    UNION ALL BY NAME
    SELECT cluster, w, metric, topic, coalesce(sum(observed_us), 0)::BIGINT AS observed_us, sum(increase) AS increase,
        max(series) AS series, bool_or(known_wrong) AS known_wrong FROM counted WHERE level <> 'client' GROUP BY ALL)
SELECT place.grain, place.period, cluster, place.window_ AS "window", metric, topic, sum(observed_us)::BIGINT AS observed_us,
    sum(value_seconds) AS value_seconds, mean_of(sum(value_seconds), sum(observed_us)) AS mean, min(min) AS min, max(max) AS max,
    sum(positive_us)::BIGINT AS positive_us, sum(positive_low_us)::BIGINT AS positive_low_us,
    sum(positive_high_us)::BIGINT AS positive_high_us, sum(increase) AS increase, max(series) AS series,
    bool_or(known_wrong) AS known_wrong, sum(any_us)::BIGINT AS any_us, sum(any_low_us)::BIGINT AS any_low_us,
    sum(any_high_us)::BIGINT AS any_high_us, max(max_concurrent) AS max_concurrent, max(max_total) AS max_total
FROM (SELECT *, unnest(placed(w)) AS place FROM fine) GROUP BY ALL;

CREATE TABLE clients AS
WITH fine AS (
    SELECT cluster, w, metric, "user", client_id, observed_us, value_seconds, min, max, positive_us, positive_low_us, positive_high_us,
        increase, series, known_wrong, any_us, any_low_us, any_high_us, max_concurrent, max_total
    FROM subject_rows WHERE kind = 'client' AND (positive_us > 0 OR coalesce(max, 0) <> 0 OR coalesce(min, 0) <> 0)
    UNION ALL BY NAME
    SELECT cluster, w, metric, "user", client_id, observed_us, increase, series, known_wrong
    FROM counted WHERE level = 'client' AND increase > 0)
SELECT place.grain, place.period, cluster, place.window_ AS "window", metric, "user", client_id,
    sum(observed_us)::BIGINT AS observed_us, sum(value_seconds) AS value_seconds,
    mean_of(sum(value_seconds), sum(observed_us)) AS mean, min(min) AS min, max(max) AS max,
    sum(positive_us)::BIGINT AS positive_us, sum(positive_low_us)::BIGINT AS positive_low_us,
    sum(positive_high_us)::BIGINT AS positive_high_us, sum(increase) AS increase, max(series) AS series,
    bool_or(known_wrong) AS known_wrong, sum(any_us)::BIGINT AS any_us, sum(any_low_us)::BIGINT AS any_low_us,
    sum(any_high_us)::BIGINT AS any_high_us, max(max_concurrent) AS max_concurrent, max(max_total) AS max_total
FROM (SELECT *, unnest(placed(w)) AS place FROM fine) GROUP BY ALL;

CREATE TABLE partitions AS
WITH fine AS (
    SELECT s.cluster, s.w, s.metric, s.topic, a.partition, observed_us, value_seconds, least AS min, greatest AS max, positive_us,
        positive_low_us, positive_high_us + a.spill AS positive_high_us, NULL::DOUBLE AS increase, 1 AS series, wrong AS known_wrong
    FROM atoms a JOIN atom_rows USING (subject, atom_id) JOIN subjects_of_claims s USING (subject)
    WHERE a.partition IS NOT NULL AND (positive_us > 0 OR coalesce(least, 0) <> 0 OR coalesce(greatest, 0) <> 0)
    UNION ALL BY NAME
    SELECT cluster, w, metric, topic, partition, observed_us, increase, series, known_wrong
    FROM counted WHERE level = 'partition' AND partition IS NOT NULL AND increase > 0)
SELECT place.grain, place.period, cluster, place.window_ AS "window", metric, topic, partition,
    sum(observed_us)::BIGINT AS observed_us, sum(value_seconds) AS value_seconds,
    mean_of(sum(value_seconds), sum(observed_us)) AS mean, min(min) AS min, max(max) AS max,
    sum(positive_us)::BIGINT AS positive_us, sum(positive_low_us)::BIGINT AS positive_low_us,
    sum(positive_high_us)::BIGINT AS positive_high_us, sum(increase) AS increase, max(series) AS series,
    bool_or(known_wrong) AS known_wrong
FROM (SELECT *, unnest(placed(w)) AS place FROM fine) GROUP BY ALL;

-- What one source or group reports never overlaps: plain sums of rows, at any grain at once.
CREATE TABLE additive AS
SELECT place.grain, place.period, cluster, place.window_ AS "window", metric,
    CASE WHEN level = 'group' THEN "group" END AS "group", CASE WHEN level = 'group' THEN topic END AS topic,
    CASE WHEN level <> 'group' THEN source END AS source,
    coalesce(sum((e - s) * series) FILTER (NOT counter OR value IS NOT NULL), 0)::BIGINT AS observed_us,
    sum(coalesce(value, 0) * (e - s)) FILTER (NOT counter) / 1e6 AS value_seconds,
    min(value) FILTER (NOT counter) AS min, max(value) FILTER (NOT counter) AS max,
    (sum(CASE WHEN positive THEN e - s ELSE 0 END) FILTER (NOT counter))::BIGINT AS positive_us,
    (sum(CASE WHEN positive THEN greatest(0, e - s - tail_edge) ELSE 0 END) FILTER (NOT counter))::BIGINT AS positive_low_us,
    (sum(CASE WHEN positive THEN e - s + lead_edge ELSE 0 END) FILTER (NOT counter))::BIGINT AS positive_high_us,
    sum(value) FILTER (counter) AS increase, max(series) AS series, bool_or(wrong) AS known_wrong
FROM (SELECT *, unnest(placed(w)) AS place FROM usable WHERE measure) GROUP BY ALL;

CREATE TABLE groups AS SELECT * EXCLUDE (source), mean_of(value_seconds, observed_us) AS mean FROM additive WHERE source IS NULL;
CREATE TABLE brokers AS SELECT * EXCLUDE ("group", topic), mean_of(value_seconds, observed_us) AS mean FROM additive WHERE source IS NOT NULL;

CREATE TABLE coverage AS
SELECT place.grain, place.period, cluster, place.window_ AS "window", source, family, outcome,
    sum(e - s)::BIGINT AS duration_us, sum(scrapes)::BIGINT AS scrapes, max(interval_us) AS interval_us,
    sum(seconds_total) AS seconds_total, max(seconds_max) AS seconds_max
FROM (SELECT *, epoch_us(start) AS s, epoch_us("end") AS e, unnest(placed(window_of(epoch_us(start)))) AS place FROM scrapes
      WHERE start < "end" AND epoch_us(start) <= now_us() + 3600000000
          AND epoch_us("end") <= window_of(epoch_us(start)) + window_us() AND date::DATE = make_timestamp(epoch_us(start))::DATE
          AND isfinite(seconds_total) AND abs(seconds_total) <= 1e19 AND isfinite(seconds_max) AND abs(seconds_max) <= 1e19)
GROUP BY ALL;

CREATE TABLE non_consumed AS
WITH each AS (
    SELECT *, unnest(coalesce(partitions, [partition])) AS one, ends_with(metric, '.high') AS high
    FROM usable WHERE level = 'group' AND metric IN ('kafka.group.non_consumed.low', 'kafka.group.non_consumed.high')),
fine AS (
    SELECT cluster, w, "group", topic, one AS partition, coalesce(sum(value) FILTER (NOT high), 0) AS offsets_low,
        coalesce(sum(value) FILTER (high), 0) AS offsets_high,
        coalesce(sum(e - s) FILTER (high AND value IS NOT NULL), 0) AS observed_us,
        coalesce(sum(e - s) FILTER (high AND value IS NULL), 0) AS unknown_us
    FROM each GROUP BY ALL HAVING offsets_high > 0 OR unknown_us > 0)
SELECT place.grain, place.period, cluster, place.window_ AS "window", "group", topic, partition, sum(offsets_low) AS offsets_low,
    sum(offsets_high) AS offsets_high, sum(observed_us)::BIGINT AS observed_us, sum(unknown_us)::BIGINT AS unknown_us
FROM (SELECT *, unnest(placed(w)) AS place FROM fine) GROUP BY ALL;
