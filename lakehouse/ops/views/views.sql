-- The views of gold, for every engine: render.py makes statements of them.
--
-- A view begins with its name and its comment. A line of the last SELECT has one or more columns, then their comments.
-- {topics} is a table of gold, or a view of this file. utc(x) and local(x) are an instant as a clock shows it,
-- micros(x) is it in microseconds since 1970; x has no parentheses. Names in double quotes are reserved words.
-- Unknown is NULL, never zero.

-- VIEW verdicts
-- Was each objective met? The newest statement of each objective, subject and period, as jmxlake sla published it.
-- The true attainment lies between low and high.
SELECT
    cluster, objective, -- Kafka cluster id | name of the objective
    topic, -- topic, of objectives on topics
    "partition" AS partition_id, -- partition, of objectives on partitions
    "user" AS user_name, -- authenticated principal, of objectives on clients
    client_id, -- client id, of objectives on clients
    "group" AS consumer_group, -- consumer group, of objectives on groups
    source, -- broker, controller or client that is read, of objectives on sources
    grain AS period, -- 1w: an ISO week, else span
    utc("window") AS from_utc, utc(window_end) AS to_utc, -- start of the period, UTC | end of the period, UTC
    local("window") AS from_local, local(window_end) AS to_local, -- start of the period, local time | end of the period, local time
    verdict, -- met, missed, uncertain or no_data
    100e0 * target AS target_percent, -- percent of time that must be good
    100e0 * attainment AS attainment_percent, -- percent of good and bad time that was good; NULL: no data
    100e0 * attainment_low AS attainment_low_percent, -- lower bound: unknown time was bad
    100e0 * attainment_high AS attainment_high_percent, -- upper bound: unknown time was good
    CASE WHEN attainment IS NOT NULL THEN bad_us / 6e7 END AS bad_minutes, -- minutes seen bad; NULL: no data
    CASE WHEN attainment IS NOT NULL THEN bad_low_us / 6e7 END AS bad_low_minutes, -- lower bound of bad_minutes
    CASE WHEN attainment IS NOT NULL THEN bad_high_us / 6e7 END AS bad_high_minutes, -- upper bound of bad_minutes
    unknown_us / 6e7 AS unknown_minutes, -- minutes that were not wholly seen
    expected_us / 6e7 AS expected_minutes, -- minutes in which the subject existed
    budget_us / 6e7 AS budget_minutes, -- minutes that may be bad
    budget_left_us / 6e7 AS budget_left_minutes, -- budget_minutes less the minutes seen bad
    100e0 * agreed_attainment AS agreed_attainment_percent, -- attainment outside of agreed corrections
    agreed_verdict, -- verdict outside of agreed corrections; NULL: there is none
    statement, -- number of the statement; above 1: late data or a correction changed it
    utc(stated_at) AS stated_utc -- when it was stated, UTC
FROM (
    SELECT s.*, row_number() OVER (
        PARTITION BY cluster, objective, grain, "window", window_end, topic, "partition", "user", client_id,
            "group", source
        ORDER BY statement DESC) AS place
    FROM {sla} s) s
WHERE place = 1

-- VIEW topic_hours
-- When was a topic unavailable: any partition under its min ISR or without a leader? A row for each topic and hour;
-- minutes in which several partitions were count once. NULL: it was not read.
SELECT
    cluster, topic, -- Kafka cluster id | topic
    date AS date_utc, utc("window") AS hour_utc, local("window") AS hour_local, -- UTC date: leaves files out | start of the hour, UTC | local time
    max(any_us) FILTER (WHERE is_out) / 6e7 AS unavailable_minutes, -- minutes with a partition under its min ISR or without a leader
    max(any_low_us) FILTER (WHERE is_out) / 6e7 AS unavailable_low_minutes, -- lower bound of unavailable_minutes
    max(any_high_us) FILTER (WHERE is_out) / 6e7 AS unavailable_high_minutes, -- upper bound; what was first seen at the start of the hour may lie before it
    max(any_us) FILTER (WHERE is_under) / 6e7 AS under_min_isr_minutes, -- minutes with a partition under its min ISR
    max(any_us) FILTER (WHERE is_leaderless) / 6e7 AS leaderless_minutes, -- minutes with a partition without a leader
    max(positive_us) FILTER (WHERE is_out) / 6e7 AS unavailable_partition_minutes, -- the same summed over partitions
    max(max_concurrent) FILTER (WHERE is_out) AS most_partitions_unavailable, -- most at one instant
    max(series) FILTER (WHERE is_out) AS partitions, -- most partitions seen at one instant
    max(observed_us) FILTER (WHERE is_out) / 6e7 AS seen_partition_minutes -- minutes seen, summed over partitions; 60 for each that was seen throughout
FROM (
    SELECT t.*, metric = 'kafka.partition.unavailable' AS is_out, metric = 'kafka.partition.under_min_isr' AS is_under,
        metric = 'kafka.partition.leaderless' AS is_leaderless
    FROM {topics} t) t
WHERE is_out OR is_under OR is_leaderless
GROUP BY cluster, topic, date, "window"

-- VIEW topic_days
-- On which days was a topic unavailable? Sums of topic_hours by day of the local time zone.
SELECT
    cluster, topic, -- Kafka cluster id | topic
    CAST(hour_local AS DATE) AS day_local, -- day, local time
    sum(unavailable_minutes) AS unavailable_minutes, -- minutes with a partition under its min ISR or without a leader
    sum(unavailable_low_minutes) AS unavailable_low_minutes, -- lower bound of unavailable_minutes
    sum(unavailable_high_minutes) AS unavailable_high_minutes, -- upper bound of unavailable_minutes
    sum(under_min_isr_minutes) AS under_min_isr_minutes, -- minutes with one under its min ISR
    sum(leaderless_minutes) AS leaderless_minutes, -- with one without a leader
    sum(unavailable_partition_minutes) AS unavailable_partition_minutes, -- minutes summed over partitions
    max(most_partitions_unavailable) AS most_partitions_unavailable, -- most at one instant
    count(unavailable_minutes) AS hours_seen, -- hours of the day in which it was seen; 24 unless it is new, gone or was not read
    100e0 * sum(seen_partition_minutes) / nullif(sum(60e0 * partitions), 0) AS seen_percent -- percent of these hours, over partitions, that was seen
FROM {topic_hours}
GROUP BY cluster, topic, CAST(hour_local AS DATE)

-- VIEW min_isr_incidents
-- When was which partition under its min ISR or without a leader? A row for each stretch without a break, joined
-- over hours and over the brokers that reported it.
WITH marked AS (
    SELECT i.*, CASE WHEN lag("end") OVER (PARTITION BY cluster, metric, topic, "partition", source
        ORDER BY "start", "end") = "start" THEN 0 ELSE 1 END AS begins
    FROM {incidents} i
    WHERE metric IN ('kafka.partition.under_min_isr', 'kafka.partition.leaderless') AND "partition" IS NOT NULL),
placed AS (
    SELECT m.*, sum(begins) OVER (PARTITION BY cluster, metric, topic, "partition", source
        ORDER BY "start", "end" ROWS UNBOUNDED PRECEDING) AS place
    FROM marked m),
of_sources AS (
    SELECT cluster, metric, topic, "partition", source, min("start") AS "start", max("end") AS "end",
        max(CASE WHEN begins = 1 THEN lead_us END) AS lead_us,
        coalesce(max(CASE WHEN tail_us < micros("end") - micros("start") THEN micros("end") - tail_us END),
            min(micros("start"))) AS sure_until
    FROM placed
    GROUP BY cluster, metric, topic, "partition", source, place),
joined AS (
    SELECT s.*, CASE WHEN max("end") OVER (PARTITION BY cluster, metric, topic, "partition"
        ORDER BY "start", "end" ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) >= "start"
        THEN 0 ELSE 1 END AS begins
    FROM of_sources s),
numbered AS (
    SELECT j.*, sum(begins) OVER (PARTITION BY cluster, metric, topic, "partition"
        ORDER BY "start", "end" ROWS UNBOUNDED PRECEDING) AS place
    FROM joined j),
bounded AS (
    SELECT n.*, min("start") OVER incident AS first_start, max("end") OVER incident AS last_end
    FROM numbered n
    WINDOW incident AS (PARTITION BY cluster, metric, topic, "partition", place)),
incidents AS (
    SELECT cluster, metric, topic, "partition", first_start, last_end, count(DISTINCT source) AS sources,
        micros(last_end) - micros(first_start) AS us,
        min(CASE WHEN "start" = first_start THEN lead_us END) AS lead_us,
        min(CASE WHEN "end" = last_end THEN micros("end") - sure_until END) AS tail_us
    FROM bounded
    GROUP BY cluster, metric, topic, "partition", first_start, last_end)
SELECT
    cluster, topic, -- Kafka cluster id | topic
    "partition" AS partition_id, -- partition
    CASE WHEN metric = 'kafka.partition.leaderless' THEN 'leaderless' ELSE 'under_min_isr' END AS kind, -- under_min_isr or leaderless
    utc(first_start) AS start_utc, local(first_start) AS start_local, -- when it was first seen, UTC | when it was first seen, local time
    utc(last_end) AS end_utc, local(last_end) AS end_local, -- when it was seen to be over, UTC | when it was seen to be over, local time
    us / 6e7 AS minutes, -- minutes from start to end
    (us - tail_us) / 6e7 AS low_minutes, -- lower bound: it may have ended earlier
    (us + lead_us) / 6e7 AS high_minutes, -- upper bound: it may have started earlier
    sources -- how many brokers reported it
FROM incidents

-- VIEW throttled_clients
-- Which client was throttled by a quota, and when? A row for each client, kind of request and hour in which it was,
-- over all brokers. An hour without a row is not known to be good: sources_seen says whether it was seen.
SELECT
    cluster, -- Kafka cluster id
    "user" AS user_name, -- authenticated principal; NULL: the quota has no user
    client_id, -- client id; NULL: the quota has no client id
    split_part(metric, '.', 3) AS request, -- produce, fetch, request or controller_mutation
    date AS date_utc, utc("window") AS hour_utc, local("window") AS hour_local, -- UTC date: leaves files out | start of the hour, UTC | local time
    any_us / 6e7 AS throttled_minutes, -- minutes in which any broker throttled it
    any_low_us / 6e7 AS throttled_low_minutes, -- lower bound of throttled_minutes
    any_high_us / 6e7 AS throttled_high_minutes, -- upper bound of throttled_minutes
    value_seconds / nullif(positive_us / 1e6, 0) AS mean_throttle_ms, -- mean throttle time while it was throttled, milliseconds
    "max" AS max_throttle_ms -- longest throttle time, milliseconds
FROM {clients}
WHERE metric LIKE 'kafka.client.%.throttle_time' AND any_high_us > 0

-- VIEW consumer_groups
-- How far was a consumer group behind in a topic? A row for each group, topic and hour.
SELECT
    cluster, "group" AS consumer_group, -- Kafka cluster id | consumer group
    topic, -- topic
    date AS date_utc, utc("window") AS hour_utc, local("window") AS hour_local, -- UTC date: leaves files out | start of the hour, UTC | local time
    CASE WHEN seen_us + behind_high_us > 0 THEN behind_us / 6e7 END AS behind_minutes, -- minutes in which it was behind; NULL: it was not seen
    CASE WHEN seen_us + behind_high_us > 0 THEN behind_low_us / 6e7 END AS behind_low_minutes, -- lower bound of behind_minutes
    CASE WHEN seen_us + behind_high_us > 0 THEN behind_high_us / 6e7 END AS behind_high_minutes, -- upper bound of behind_minutes
    CAST(ceil(records_max / 1.189207115002721e0) AS BIGINT) AS most_records_low, -- most records not read at one instant, at least
    records_max AS most_records_high, -- the same, at most
    seconds_low_max / 6e1 AS oldest_low_minutes, -- greatest age of the oldest record not read, minutes, at least
    CASE WHEN seconds_high_max < seconds_low_max THEN NULL ELSE seconds_high_max / 6e1 END AS oldest_high_minutes, -- the same, at most; NULL: not known
    seconds_unknown_us / 6e7 AS oldest_unknown_minutes, -- minutes in which that age has no upper bound
    seen_us / 6e7 AS seen_minutes -- minutes in which all brokers with its partitions reported; 60 if throughout
FROM {consumer_lag}

-- VIEW lost_records
-- Which records expired before a consumer group read them? A row for each group, partition and hour; offsets of
-- transaction markers and aborted records count, too.
SELECT
    cluster, "group" AS consumer_group, -- Kafka cluster id | consumer group
    topic, -- topic
    "partition" AS partition_id, -- partition; NULL: all beyond the limit of the agent
    date AS date_utc, utc("window") AS hour_utc, local("window") AS hour_local, -- UTC date: leaves files out | start of the hour, UTC | local time
    CASE WHEN observed_us > 0 OR offsets_high > 0 THEN offsets_low END AS lost_low, -- offsets lost, at least; NULL: not known
    CASE WHEN observed_us > 0 OR offsets_high > 0 THEN offsets_high END AS lost_high, -- offsets lost, at most; NULL: not known
    observed_us / 6e7 AS seen_minutes, -- minutes for which the bounds hold
    unknown_us / 6e7 AS unknown_minutes -- minutes in which the loss is not known
FROM {non_consumed}

-- VIEW tier_lag
-- How much of a topic waits for its copy to the remote tier, or for its deletion there? A row for each topic and hour.
SELECT
    cluster, topic, -- Kafka cluster id | topic
    date AS date_utc, utc("window") AS hour_utc, local("window") AS hour_local, -- UTC date: leaves files out | start of the hour, UTC | local time
    max(any_us) FILTER (WHERE metric = 'kafka.topic.remote_copy_lag.bytes') / 6e7 AS copy_lag_minutes, -- minutes in which bytes waited for their copy
    max(max_total) FILTER (WHERE metric = 'kafka.topic.remote_copy_lag.bytes') / 1073741824e0 AS most_copy_lag_gib, -- most GiB that waited for their copy
    max(any_us) FILTER (WHERE metric = 'kafka.topic.remote_delete_lag.segments') / 6e7 AS delete_lag_minutes, -- minutes in which segments waited for their deletion
    max(max_total) FILTER (WHERE metric = 'kafka.topic.remote_delete_lag.bytes') / 1073741824e0 AS most_delete_lag_gib -- most GiB that waited for their deletion
FROM {topics}
WHERE metric LIKE 'kafka.topic.remote_copy_lag.%' OR metric LIKE 'kafka.topic.remote_delete_lag.%'
GROUP BY cluster, topic, date, "window"

-- VIEW remote_reads
-- How much was read from the remote tier? A row for each topic and hour.
SELECT
    cluster, topic, -- Kafka cluster id | topic
    date AS date_utc, utc("window") AS hour_utc, local("window") AS hour_local, -- UTC date: leaves files out | start of the hour, UTC | local time
    max(increase) FILTER (WHERE metric = 'kafka.topic.remote_fetch.requests') AS requests, -- reads from the remote tier
    max(increase) FILTER (WHERE metric = 'kafka.topic.remote_fetch.bytes') / 1073741824e0 AS read_gib, -- GiB that they read
    max(increase) FILTER (WHERE metric = 'kafka.topic.remote_fetch.errors') AS errors -- reads that failed
FROM {topics}
WHERE metric LIKE 'kafka.topic.remote_fetch.%'
GROUP BY cluster, topic, date, "window"

-- VIEW traffic
-- How much was written to a topic, and read of it? A row for each topic and hour, as its brokers count it. What they
-- did while they were not read is not in it: sources_seen says when that was.
SELECT
    cluster, topic, -- Kafka cluster id | topic
    date AS date_utc, utc("window") AS hour_utc, local("window") AS hour_local, -- UTC date: leaves files out | start of the hour, UTC | local time
    max(increase) FILTER (WHERE metric = 'kafka.topic.messages_in') AS records_in, -- records written
    max(increase) FILTER (WHERE metric = 'kafka.topic.bytes_in') / 1073741824e0 AS written_gib, -- GiB written
    max(increase) FILTER (WHERE metric = 'kafka.topic.bytes_out') / 1073741824e0 AS read_gib, -- GiB read by consumers
    max(increase) FILTER (WHERE metric = 'kafka.topic.bytes_rejected') / 1073741824e0 AS rejected_gib -- GiB refused
FROM {topics}
WHERE metric IN ('kafka.topic.messages_in', 'kafka.topic.bytes_in', 'kafka.topic.bytes_out',
    'kafka.topic.bytes_rejected')
GROUP BY cluster, topic, date, "window"

-- VIEW answers
-- How many answers of a broker were errors, and which? A row for each broker, kind of request, error and hour; an
-- answer is counted for each partition in it. The error NONE is a success.
SELECT
    cluster, source, -- Kafka cluster id | broker
    split_part(metric, '.', 3) AS request, -- produce or fetch
    substr(labels, 7) AS error, -- Kafka's name of the error
    date AS date_utc, utc("window") AS hour_utc, local("window") AS hour_local, -- UTC date: leaves files out | start of the hour, UTC | local time
    increase AS answers -- partitions answered so
FROM {labelled}
WHERE metric IN ('kafka.broker.produce.answers', 'kafka.broker.fetch.answers') AND increase > 0

-- VIEW sources_seen
-- Which broker, controller or client was not seen, and when? A row for each source, family of metrics and hour in
-- which it existed. An hour in which no source of the cluster was read has no row.
WITH hours AS (
    SELECT DISTINCT cluster, date, "window", micros("window") AS start_us FROM {coverage}),
newest AS (
    SELECT cluster, max(micros(last_seen)) AS seen_us, max(micros(attributes_at)) AS listed_us
    FROM {subjects} WHERE kind = 'source' GROUP BY cluster),
sources AS (
    SELECT s.cluster, s.source, micros(s.first_seen) AS first_us,
        CASE WHEN n.listed_us > micros(s.attributes_at) + 180000000
            THEN greatest(micros(s.last_seen), micros(s.attributes_at)) ELSE n.seen_us END AS last_us
    FROM {subjects} s JOIN newest n ON n.cluster = s.cluster
    WHERE s.kind = 'source'),
families AS (
    SELECT DISTINCT cluster, source, family FROM {coverage}),
attempts AS (
    SELECT cluster, source, family, date, "window", sum(scrapes) AS attempts,
        coalesce(sum(scrapes) FILTER (WHERE outcome NOT IN ('ok', 'skipped')), 0) AS failed,
        coalesce(sum(duration_us) FILTER (WHERE outcome = 'ok'), 0) AS seen_us
    FROM {coverage} GROUP BY cluster, source, family, date, "window"),
lived AS (
    SELECT s.cluster, s.source, f.family, h.date, h."window", coalesce(a.attempts, 0) AS attempts,
        coalesce(a.failed, 0) AS failed, coalesce(a.seen_us, 0) AS seen_us,
        greatest(coalesce(a.seen_us, 0),
            least(h.start_us + 3600000000, s.last_us) - greatest(h.start_us, s.first_us)) AS expected_us
    FROM hours h
    JOIN sources s ON s.cluster = h.cluster
    LEFT JOIN families f ON f.cluster = s.cluster AND f.source = s.source
    LEFT JOIN attempts a ON a.cluster = s.cluster AND a.source = s.source AND a.family = f.family
        AND a.date = h.date AND a."window" = h."window")
SELECT
    cluster, source, -- Kafka cluster id | broker, controller or client
    coalesce(family, 'any') AS family, -- family of metrics; any: the source was never read
    date AS date_utc, utc("window") AS hour_utc, local("window") AS hour_local, -- UTC date: leaves files out | start of the hour, UTC | local time
    seen_us / 6e7 AS seen_minutes, -- minutes that readings cover
    (expected_us - seen_us) / 6e7 AS unknown_minutes, -- minutes in which it existed and was not seen
    100e0 * seen_us / expected_us AS seen_percent, -- percent of the minutes in which it existed
    CAST(attempts AS BIGINT) AS attempts, CAST(failed AS BIGINT) AS failed -- attempts to read it | attempts that failed
FROM lived
WHERE expected_us > 0
