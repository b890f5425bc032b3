-- Views of gold for every engine. render.py turns them into statements.
--
-- The first lines of a view are its name and its comment. A line of the last SELECT has one or more columns, then their comments.
-- {gold.topics} is a gold table, {verdicts} a view of this file. utc(x) and local(x) convert a timestamp to clock time,
-- micros(x) to microseconds since 1970, and instant(x) converts microseconds to a timestamp. day_us(x) is the length of the
-- local day x in microseconds. x has no parentheses.
-- {hours} inserts the columns of a row's hour, {metrics_of_columns} the metrics that the columns of the view filter by.
-- Unknown is NULL, never zero. state_of[x; y] is the state of a row. Column x is the coverage in percent. The state is bad
-- if y is above zero, and not good if an optional third part is true. core/subjects.py contains the thresholds.

-- VIEW verdicts
-- Published verdicts of objectives: the newest SLO result of each objective, subject and period (jmxlake slo publish).
-- The true attainment is between low and high. A subject has one row with is_of_week per week: the objective's last
-- period that ended with the week. SLO results and views can have different time zones.
SELECT
    cluster, objective, -- Kafka cluster id | name of the objective
    topic, -- topic, of objectives on topics
    partition_id, -- partition, of objectives on partitions
    user_name, -- authenticated principal, of objectives on clients
    client_id, -- client id, of objectives on clients
    consumer_group, -- consumer group, of objectives on groups
    source, -- broker, controller or client that is read, of objectives on sources
    period_kind AS period, -- 1w: an ISO week, otherwise span
    subject, -- every name of the subject
    utc(period_start) AS from_utc, utc(period_end) AS to_utc, -- start of the period, UTC | end of the period, UTC
    local(period_start) AS from_local, local(period_end) AS to_local, -- start, local time | end, local time
    week_local, -- Monday, local time, of the week with the middle of the period's last seven days
    is_own AND place_in_week = 1 AND period_end = latest AS is_of_week, -- whether it counts in week_local
    verdict, -- met, missed, uncertain or no_data
    100e0 * target AS target_percent, -- percent of time that must be good
    100e0 * attainment AS attainment_percent, -- percent of good and bad time that was good; NULL: no data
    100e0 * attainment_low AS attainment_low_percent, -- lower bound: unknown time was bad
    100e0 * attainment_high AS attainment_high_percent, -- upper bound: unknown time was good
    CASE WHEN attainment IS NOT NULL THEN bad_us / 6e7 END AS bad_minutes, -- minutes seen bad; NULL: no data
    CASE WHEN attainment IS NOT NULL THEN bad_low_us / 6e7 END AS bad_low_minutes, -- its lower bound
    CASE WHEN attainment IS NOT NULL THEN bad_high_us / 6e7 END AS bad_high_minutes, -- its upper bound
    good_us / 6e7 AS good_minutes, -- minutes that were observed completely and good
    unknown_us / 6e7 AS unknown_minutes, -- minutes that were not observed completely
    expected_us / 6e7 AS expected_minutes, -- minutes in which the subject existed
    100e0 * (expected_us - unknown_us) / nullif(expected_us, 0) AS observed_percent, -- percent of them wholly observed
    state_of[observed_percent; bad_us; verdict = 'uncertain'] AS state, -- bad, good, partly_known or not_known
    budget_us / 6e7 AS budget_minutes, -- minutes that may be bad
    budget_left_us / 6e7 AS budget_left_minutes, -- budget_minutes less the minutes seen bad
    100e0 * agreed_attainment AS agreed_attainment_percent, -- attainment outside of agreed corrections
    agreed_verdict, -- verdict outside of agreed corrections; NULL: there is none
    team, owner, tier, -- team of the subject, as in owners; NULL: none | its owner | its tier
    statement, -- number of the statement; above 1: late data or a correction changed it
    utc(stated_at) AS stated_utc -- when it was stated, UTC
FROM (
    SELECT s.*, row_number() OVER (PARTITION BY cluster, objective, period_kind, period_start, period_end, topic,
            partition_id, user_name, client_id, consumer_group, source ORDER BY statement DESC) AS place,
        row_number() OVER (PARTITION BY cluster, objective, is_own, period_end, topic, partition_id, user_name,
            client_id, consumer_group, source ORDER BY stated_at DESC, statement DESC) AS place_in_week,
        max(CASE WHEN is_own THEN period_end END) OVER (PARTITION BY cluster, objective, week_local) AS latest
    FROM (
        SELECT s.*, period_kind <> 'span' AS is_own, concat_ws(', ', 'topic ' || topic,
            'partition ' || CAST(partition_id AS VARCHAR(9)), 'user ' || user_name, 'client id ' || client_id,
            'group ' || consumer_group, 'source ' || source) AS subject,
            CAST(date_trunc('week', local(period_end) - INTERVAL '84' HOUR) AS DATE) AS week_local
        FROM {gold.sla} s) s) s
LEFT JOIN (
    SELECT cluster AS of_cluster, topic AS of_topic, user_name AS of_user, client_id AS of_client,
        consumer_group AS of_group, source AS of_source, team, owner, tier
    FROM {gold.owners}) o
    ON of_cluster = cluster AND of_topic IS NOT DISTINCT FROM topic AND of_user IS NOT DISTINCT FROM user_name
    AND of_client IS NOT DISTINCT FROM client_id AND of_group IS NOT DISTINCT FROM consumer_group
    AND of_source IS NOT DISTINCT FROM source
WHERE place = 1

-- VIEW team_weeks
-- Objectives of teams by week. One row per team, objective and ISO week, as sums over the team's subjects.
SELECT
    cluster, team, objective, -- Kafka cluster id | team, as in owners | name of the objective
    week_local, -- Monday of the week, local time
    count(*) AS subjects, -- number of subjects
    sum(CASE WHEN verdict = 'missed' THEN 1 ELSE 0 END) AS missed, -- subjects that missed the objective
    sum(CASE WHEN verdict = 'uncertain' THEN 1 ELSE 0 END) AS uncertain, -- subjects without a certain verdict
    sum(CASE WHEN verdict = 'no_data' THEN 1 ELSE 0 END) AS without_data, -- subjects without data
    100e0 * sum(good_minutes) / nullif(sum(good_minutes) + sum(bad_minutes), 0) AS attainment_percent, -- percent good
    sum(bad_minutes) AS bad_minutes, -- minutes seen bad, summed over subjects; NULL: no data
    sum(bad_low_minutes) AS bad_low_minutes, -- its lower bound
    sum(bad_high_minutes) AS bad_high_minutes, -- its upper bound
    sum(unknown_minutes) AS unknown_minutes, -- minutes that were not observed completely
    100e0 * (sum(expected_minutes) - sum(unknown_minutes)) / nullif(sum(expected_minutes), 0) AS observed_percent, -- percent
    state_of[observed_percent; sum(bad_minutes); bool_or(verdict IN ('uncertain', 'no_data'))] AS state -- bad, good, partly_known or not_known
FROM {verdicts}
WHERE is_of_week AND team IS NOT NULL
GROUP BY cluster, team, objective, week_local

-- VIEW topic_hours
-- Unavailability of topics: partitions under min ISR or without a leader. One row per topic and hour. Minutes with
-- several such partitions count once. NULL: no data. If the objective min-isr exists, only time in which it judged all
-- partitions is observed.
WITH judged AS (
    SELECT cluster AS of_cluster, topic AS of_topic, hour AS of_hour, good_us + bad_us AS judged_us
    FROM {gold.sli} WHERE objective = 'min-isr' AND topic IS NOT NULL),
judging AS (SELECT count(*) AS objectives FROM {gold.objectives} WHERE objective = 'min-isr')
SELECT
    cluster, topic, -- Kafka cluster id | topic
    {hours}
    max(affected_us) FILTER (WHERE is_out) / 6e7 AS unavailable_minutes, -- with one under its min ISR or leaderless
    max(affected_low_us) FILTER (WHERE is_out) / 6e7 AS unavailable_low_minutes, -- its lower bound
    max(affected_high_us) FILTER (WHERE is_out) / 6e7 AS unavailable_high_minutes, -- its upper bound
    max(affected_us) FILTER (WHERE is_under) / 6e7 AS under_min_isr_minutes, -- minutes with one under it
    max(affected_us) FILTER (WHERE is_leaderless) / 6e7 AS leaderless_minutes, -- minutes with one without
    max(series_affected_us) FILTER (WHERE is_out) / 6e7 AS unavailable_partition_minutes, -- over partitions
    max(max_concurrent) FILTER (WHERE is_out) AS most_partitions_unavailable, -- most at one instant
    max(series) FILTER (WHERE is_out) AS partitions, -- most partitions seen at one instant
    max(series_seen_us) FILTER (WHERE is_out) / 6e7 AS seen_partition_minutes, -- seen, summed over them
    min(CASE WHEN is_out THEN observed_us / 36e6 END) AS observed_percent, -- percent of the hour with every partition
    state_of[observed_percent; max(affected_high_us) FILTER (WHERE is_out)] AS state -- bad, good, partly_known or not_known
FROM (
    SELECT t.*, metric = 'kafka.partition.unavailable' AS is_out,
        metric = 'kafka.partition.under_min_isr' AS is_under, metric = 'kafka.partition.leaderless' AS is_leaderless,
        CASE WHEN objectives = 0 OR judged_us > series_seen_us / series
            THEN series_seen_us / series ELSE judged_us END AS observed_us
    FROM {gold.topics} t CROSS JOIN judging
    LEFT JOIN judged ON of_cluster = t.cluster AND of_topic = t.topic AND of_hour = t.hour) t
WHERE is_out OR is_under OR is_leaderless
GROUP BY cluster, topic, date, hour

-- VIEW topic_days
-- Days with an unavailable topic: sums of topic_hours by local day.
SELECT
    cluster, topic, -- Kafka cluster id | topic
    day_local, -- day, local time
    sum(unavailable_minutes) AS unavailable_minutes, -- minutes with one under its min ISR or leaderless
    sum(unavailable_low_minutes) AS unavailable_low_minutes, -- lower bound of unavailable_minutes
    sum(unavailable_high_minutes) AS unavailable_high_minutes, -- upper bound of unavailable_minutes
    sum(under_min_isr_minutes) AS under_min_isr_minutes, -- minutes with one under its min ISR
    sum(leaderless_minutes) AS leaderless_minutes, -- with one without a leader
    sum(unavailable_partition_minutes) AS unavailable_partition_minutes, -- minutes summed over partitions
    max(most_partitions_unavailable) AS most_partitions_unavailable, -- most at one instant
    count(unavailable_minutes) AS hours_seen, -- hours in which it was observed
    100e0 * sum(seen_partition_minutes) / nullif(sum(60e0 * partitions), 0) AS seen_percent, -- percent of them seen
    36e8 * sum(observed_percent) / day_us(day_local) AS observed_percent, -- percent of the day
    state_of[observed_percent; sum(unavailable_high_minutes)] AS state -- bad, good, partly_known or not_known
FROM (SELECT t.*, CAST(hour_local AS DATE) AS day_local FROM {topic_hours} t) t
GROUP BY cluster, topic, day_local

-- VIEW topic_weeks
-- ISO weeks with an unavailable topic: sums of topic_hours by local week. A week without hours is zero if the objective
-- min-isr was observed.
WITH stated AS (
    SELECT cluster, topic, week_local, max(unknown_minutes) AS unknown_minutes,
        min(observed_percent) AS observed_percent,
        bool_or(verdict = 'uncertain') AS is_uncertain,
        CASE WHEN count(attainment_percent) = count(*) THEN 0e0 END AS zero
    FROM {verdicts} WHERE is_of_week AND objective = 'min-isr' GROUP BY cluster, topic, week_local)
SELECT
    cluster, topic, week_local, -- Kafka cluster id | topic | Monday of the week, local time
    sum(unavailable_minutes) AS unavailable_minutes, -- minutes with one under its min ISR or leaderless
    sum(unavailable_low_minutes) AS unavailable_low_minutes, -- its lower bound
    sum(unavailable_high_minutes) AS unavailable_high_minutes, -- its upper bound
    sum(under_min_isr_minutes) AS under_min_isr_minutes, -- minutes with one under its min ISR
    sum(leaderless_minutes) AS leaderless_minutes, -- minutes with one without a leader
    max(most_partitions_unavailable) AS most_partitions_unavailable, -- most at one instant
    max(unknown_minutes) AS unknown_minutes, -- minutes not observed completely; NULL: not stated
    min(observed_percent) AS observed_percent, -- percent of the week wholly observed; NULL: not stated
    state_of[observed_percent; sum(unavailable_high_minutes); bool_or(is_uncertain)] AS state -- bad, good, partly_known or not_known
FROM (
    SELECT cluster, topic, week_local, unavailable_minutes, unavailable_low_minutes, unavailable_high_minutes,
        under_min_isr_minutes, leaderless_minutes, most_partitions_unavailable, NULL AS unknown_minutes,
        NULL AS observed_percent, FALSE AS is_uncertain
    FROM {topic_hours}
    UNION ALL
    SELECT cluster, topic, week_local, zero, zero, zero, zero, zero, zero, unknown_minutes, observed_percent,
        is_uncertain
    FROM stated)
GROUP BY cluster, topic, week_local

-- VIEW min_isr_incidents
-- Partitions under min ISR or without a leader. One row per interval without a break, joined over hours and over the
-- brokers that reported it.
WITH stretches AS (
    SELECT {stretches} FROM {gold.incidents}
    WHERE metric IN ('kafka.partition.under_min_isr', 'kafka.partition.leaderless') AND partition_id IS NOT NULL),
{joined_incidents},
clocked AS (
    SELECT j.*, instant(s) AS first_start, instant(e) AS last_end FROM joined_incidents j)
SELECT
    cluster, topic, partition_id, -- Kafka cluster id | topic | partition
    CASE metric WHEN 'kafka.partition.leaderless' THEN 'leaderless' ELSE 'under_min_isr' END AS kind, -- which
    utc(first_start) AS start_utc, local(first_start) AS start_local, -- first observed, UTC | local time
    utc(last_end) AS end_utc, local(last_end) AS end_local, -- seen to be over, UTC | local time
    (e - s) / 6e7 AS minutes, -- minutes from start to end
    (e - s - tail_us) / 6e7 AS low_minutes, -- lower bound: it may have ended earlier
    (e - s + lead_us) / 6e7 AS high_minutes, -- upper bound: it may have started earlier
    source_count AS sources -- how many brokers reported it
FROM clocked

-- VIEW events
-- Events of a week with their likely causes. One row per event: partition incidents that started within a short time,
-- or all incidents of a kind and subject in an ISO week. The view does not read bronze.events, so it does not show
-- restarts between two scrapes, or rolling restarts.
WITH stretches AS (
    SELECT {stretches_of_weeks} FROM {gold.incidents}),
slacks AS (
    SELECT cluster, {least_slack_us} + max(interval_us) AS slack_us
    FROM (SELECT {week_and_cluster} AS cluster, interval_us FROM {gold.readings} WHERE family IN ('min_isr', 'leaders')) r
    GROUP BY cluster),
{joined_incidents},
{grouped_incidents},
reached AS (
    SELECT g.*, metric NOT IN ({upper_bounds}) AS is_certain,
        coalesce(max(e) OVER (PARTITION BY cluster, kind, of_kind, place, of_topic, of_user, of_client, of_group,
            of_source, metric IN ({upper_bounds}) ORDER BY s, e ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), s) AS covered
    FROM grouped_incidents g WHERE kind <> 'symptom'),
happened AS (
    SELECT cluster, kind, of_kind, place, of_topic, of_user, of_client, of_group, of_source, min(s) AS s, max(e) AS e,
        min(onset) - {effect_us} - (max(coalesce(slack_us, {least_slack_us})) - {least_slack_us}) AS near_s,
        max(s) + max(coalesce(slack_us, {least_slack_us})) - {least_slack_us} AS near_e,
        min(onset) AS onset, count(*) AS incidents, count(DISTINCT topic) AS topics, min(topic) AS first_topic,
        count(DISTINCT topic || '/' || CAST(partition_id AS VARCHAR(9))) AS partitions,
        sum(CASE WHEN is_certain THEN greatest(e, covered) - greatest(s, covered) END) AS us
    FROM reached
    GROUP BY cluster, kind, of_kind, place, of_topic, of_user, of_client, of_group, of_source),
refused AS (
    SELECT {week_and_cluster} AS cluster, source, micros(started_at) AS s, micros(ended_at) AS e,
        CASE outcome WHEN 'down' THEN 2 ELSE 1 END AS proof
    FROM {gold.readings} WHERE {is_broker} AND outcome IN ('down', 'refused')),
refused_marked AS (
    SELECT r.*, CASE WHEN max(e) OVER (PARTITION BY cluster, source ORDER BY s, e
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) + 30000000 >= s THEN 0 ELSE 1 END AS begins
    FROM refused r),
refused_placed AS (
    SELECT m.*, sum(begins) OVER (PARTITION BY cluster, source ORDER BY s, e) AS place FROM refused_marked m),
away AS (
    SELECT cluster, source, min(s) AS s, max(e) AS e, max(proof) AS proof
    FROM refused_placed GROUP BY cluster, source, place),
causes AS (
    SELECT h.cluster, h.place, count(DISTINCT a.source) AS brokers, max(proof) AS proof,
        min_by(a.source, abs(a.s - h.onset) - proof * 1000000000000) AS broker
    FROM happened h JOIN away a ON a.cluster = h.cluster
        AND (a.s BETWEEN near_s AND near_e OR a.e BETWEEN near_s AND near_e)
    WHERE kind = 'availability'
    GROUP BY h.cluster, h.place),
clocked AS (
    SELECT h.*, substr(h.cluster, 11) AS named, CAST(substr(h.cluster, 1, 10) AS DATE) AS monday,
        CASE WHEN kind <> 'availability' THEN of_topic WHEN topics = 1 THEN first_topic END AS only_topic,
        CASE WHEN kind = 'availability' AND topics > 1
            THEN 'topic ' || first_topic || ' and ' || CAST(topics - 1 AS VARCHAR(9)) || ' more' END AS several,
        instant(s) AS start_at, instant(e) AS end_at, broker, brokers, proof
    FROM happened h LEFT JOIN causes c ON c.cluster = h.cluster AND c.place = h.place AND kind = 'availability')
SELECT
    named AS cluster, monday AS week_local, -- Kafka cluster id | Monday of its ISO week, local time
    kind, -- availability, throttling, loss, tiered, consumer_lag, latency, errors, replication or other
    of_kind AS what, -- type of request, copy or delete, otherwise the metric; NULL: no detail
    only_topic AS topic, -- topic; NULL: several topics or none
    of_user AS user_name, of_client AS client_id, -- authenticated principal | client id
    of_group AS consumer_group, of_source AS source, -- consumer group | broker, controller or client
    coalesce(nullif(concat_ws(', ', 'topic ' || only_topic, several, 'user ' || of_user, 'client id ' || of_client,
        'group ' || of_group, 'source ' || of_source), ''), 'cluster') AS subject, -- names of the subject
    utc(start_at) AS start_utc, local(start_at) AS start_local, -- first observed, UTC | local time
    utc(end_at) AS end_utc, local(end_at) AS end_local, -- seen to be over, UTC | local time
    (e - s) / 6e7 AS duration_minutes, us / 6e7 AS minutes, -- minutes from start to end | in which any of it was bad
    topics, partitions, incidents, -- topics that were hit | partitions | incidents
    CASE WHEN kind = 'throttling' THEN 'quota' WHEN kind = 'loss' THEN 'retention'
        WHEN kind = 'consumer_lag' THEN 'slow_group' WHEN proof = 2 THEN 'restarted'
        WHEN brokers > 0 THEN 'no_answer' ELSE 'not_known' END AS likely_cause, -- from readings only
    broker, brokers -- the likely broker | how many went away or came back near its start; NULL: none
FROM clocked

-- VIEW throttled_clients
-- Client throttling by quotas. One row per client, request type and hour with throttling, over all brokers. An hour
-- without a row can be good or not observed: sources_seen contains the observed time.
SELECT
    cluster, -- Kafka cluster id
    user_name, -- authenticated principal; NULL: the quota has no user
    client_id, -- client id; NULL: the quota has no client id
    split_part(metric, '.', 3) AS request, -- produce, fetch, request or controller_mutation
    {hours}
    affected_us / 6e7 AS throttled_minutes, -- minutes in which any broker throttled it
    affected_low_us / 6e7 AS throttled_low_minutes, -- lower bound of throttled_minutes
    affected_high_us / 6e7 AS throttled_high_minutes, -- upper bound of throttled_minutes
    value_seconds / nullif(series_affected_us / 1e6, 0) AS mean_throttle_ms, -- mean while throttled, ms
    value_max AS max_throttle_ms -- longest throttle time, milliseconds
FROM {gold.clients}
WHERE metric IN ({throttle_times}) AND affected_high_us > 0

-- VIEW client_weeks
-- ISO weeks with a throttled client: sums of throttled_clients by local week. A week without hours is zero if its
-- objective was observed.
SELECT
    cluster, user_name, client_id, -- Kafka cluster id | authenticated principal | client id
    request, week_local, -- produce, fetch, request or controller_mutation | Monday of the week, local time
    sum(throttled_minutes) AS throttled_minutes, -- minutes in which any broker throttled it
    sum(throttled_low_minutes) AS throttled_low_minutes, -- its lower bound
    sum(throttled_high_minutes) AS throttled_high_minutes, -- its upper bound
    max(max_throttle_ms) AS max_throttle_ms, -- longest throttle time, milliseconds
    max(unknown_minutes) AS unknown_minutes, -- minutes not observed completely; NULL: not stated
    min(observed_percent) AS observed_percent, -- percent of the week wholly observed; NULL: not stated
    state_of[observed_percent; sum(throttled_high_minutes); bool_or(is_uncertain)] AS state -- bad, good, partly_known or not_known
FROM (
    SELECT cluster, user_name, client_id, request, week_local, throttled_minutes, throttled_low_minutes,
        throttled_high_minutes, max_throttle_ms, NULL AS unknown_minutes, NULL AS observed_percent, FALSE AS is_uncertain
    FROM {throttled_clients}
    UNION ALL
    SELECT cluster, user_name, client_id, split_part(objective, '-', 1), week_local, zero, zero, zero, NULL,
        unknown_minutes, observed_percent, verdict = 'uncertain'
    FROM (SELECT v.*, CASE WHEN attainment_percent IS NOT NULL THEN 0e0 END AS zero FROM {verdicts} v) v
    WHERE is_of_week AND objective LIKE '%-throttling') p
GROUP BY cluster, user_name, client_id, request, week_local

-- VIEW consumer_groups
-- Lag of consumer groups. One row per group, topic and hour.
SELECT
    cluster, consumer_group, topic, -- Kafka cluster id | consumer group | topic
    {hours}
    CASE WHEN seen_us + behind_high_us > 0 THEN behind_us / 6e7 END AS behind_minutes, -- NULL: not observed
    CASE WHEN seen_us + behind_high_us > 0 THEN behind_low_us / 6e7 END AS behind_low_minutes, -- at least
    CASE WHEN seen_us + behind_high_us > 0 THEN behind_high_us / 6e7 END AS behind_high_minutes, -- at most
    CAST(ceil(records_max / 1.189207115002721e0) AS BIGINT) AS most_records_low, -- most not read, at least
    CASE WHEN seen_us >= 36e8 THEN records_max END AS most_records_high, -- at most; NULL: an hour seen in part
    seconds_low_max / 6e1 AS oldest_low_minutes, -- greatest age of the oldest record not read, at least
    CASE WHEN seen_us >= 36e8 AND seconds_high_max >= seconds_low_max THEN seconds_high_max / 6e1
        END AS oldest_high_minutes, -- at most; NULL: not known
    seconds_unknown_us / 6e7 AS oldest_unknown_minutes, -- minutes in which that age has no upper bound
    seen_us / 6e7 AS seen_minutes, -- minutes in which all brokers with its partitions reported
    seen_us / 36e6 AS observed_percent, -- percent of the hour
    state_of[observed_percent; behind_high_us] AS state -- bad, good, partly_known or not_known
FROM {gold.consumer_lag}

-- VIEW lost_records
-- Records that expired before a consumer group read them. One row per group, partition and hour. Offsets of transaction
-- markers and aborted records are included.
SELECT
    cluster, consumer_group, topic, -- Kafka cluster id | consumer group | topic
    partition_id, -- partition; NULL: all beyond the limit of the agent
    {hours}
    CASE WHEN series_seen_us > 0 OR offsets_high > 0 THEN offsets_low END AS lost_low, -- offsets lost, at least
    CASE WHEN series_seen_us > 0 AND series_unknown_us = 0 THEN offsets_high END AS lost_high, -- at most; NULL: not known
    series_seen_us / 6e7 AS seen_minutes, -- minutes for which the bounds hold
    series_unknown_us / 6e7 AS unknown_minutes, -- minutes in which the loss is not known
    100e0 * series_seen_us / nullif(series_seen_us + series_unknown_us, 0) AS observed_percent, -- percent of these minutes
    state_of[observed_percent; coalesce(offsets_high, offsets_low)] AS state -- bad, good, partly_known or not_known
FROM {gold.lost_offsets}

-- VIEW tier_lag
-- Upload and deletion lag of tiered topics. One row per topic, direction and hour.
SELECT
    cluster, topic, way, -- Kafka cluster id | topic | upload or deletion
    {hours}
    max(affected_us) FILTER (WHERE is_lag) / 6e7 AS lag_minutes, -- minutes in which anything waited
    max(affected_low_us) FILTER (WHERE is_lag) / 6e7 AS lag_low_minutes, -- its lower bound
    max(affected_high_us) FILTER (WHERE is_lag) / 6e7 AS lag_high_minutes, -- its upper bound
    max(max_total) FILTER (WHERE is_size) / 1073741824e0 AS most_lag_gib, -- most GiB that waited
    bool_or(known_wrong) AS known_wrong -- whether this version of Kafka is known to report it wrongly
FROM (
    SELECT t.*, CASE WHEN metric IN ({copy_lags}) THEN 'upload' ELSE 'deletion' END AS way,
        metric IN ('kafka.topic.remote_copy_lag.bytes', 'kafka.topic.remote_delete_lag.bytes') AS is_size,
        metric IN ('kafka.topic.remote_copy_lag.bytes', 'kafka.topic.remote_delete_lag.segments') AS is_lag
    FROM {gold.topics} t
    WHERE metric IN ({copy_lags}, {delete_lags})) t
GROUP BY cluster, topic, way, date, hour

-- VIEW tier_lag_weeks
-- ISO weeks with tiered-storage lag of a topic: sums of tier_lag by local week. A week without hours is zero if its
-- objective was observed.
SELECT
    cluster, topic, way, -- Kafka cluster id | topic | upload or deletion
    week_local, -- Monday of the week, local time
    sum(lag_minutes) AS lag_minutes, -- minutes in which anything waited
    sum(lag_low_minutes) AS lag_low_minutes, -- its lower bound
    sum(lag_high_minutes) AS lag_high_minutes, -- its upper bound
    max(most_lag_gib) AS most_lag_gib, -- most GiB that waited
    bool_or(known_wrong) AS known_wrong, -- whether this version of Kafka is known to report it wrongly
    max(unknown_minutes) AS unknown_minutes, -- minutes not observed completely; NULL: not stated
    min(observed_percent) AS observed_percent, -- percent of the week wholly observed; NULL: not stated
    state_of[observed_percent; sum(lag_high_minutes); bool_or(is_uncertain)] AS state -- bad, good, partly_known or not_known
FROM (
    SELECT cluster, topic, way, week_local, lag_minutes, lag_low_minutes, lag_high_minutes, most_lag_gib,
        known_wrong, NULL AS unknown_minutes, NULL AS observed_percent, FALSE AS is_uncertain
    FROM {tier_lag}
    UNION ALL
    SELECT cluster, topic, CASE objective WHEN 'copy-lag' THEN 'upload' ELSE 'deletion' END, week_local, zero,
        zero, zero, NULL, NULL, unknown_minutes, observed_percent, verdict = 'uncertain'
    FROM (SELECT v.*, CASE WHEN attainment_percent IS NOT NULL THEN 0e0 END AS zero FROM {verdicts} v) v
    WHERE is_of_week AND objective IN ('copy-lag', 'delete-lag')) p
GROUP BY cluster, topic, way, week_local

-- VIEW remote_log
-- Segments of tiered partitions that wait for upload or deletion, from the log of tiered storage (section remote_log of
-- an agent). One row per partition and hour in which one of them was above zero. NULL: zero, or not known.
SELECT
    cluster, topic, partition_id, -- Kafka cluster id | topic | partition
    {hours}
    max(value_max) FILTER (WHERE metric = 'kafka.partition.upload_lag.records') AS upload_records, -- most offsets waiting
    max(value_max) FILTER (WHERE metric = 'kafka.partition.upload_lag.bytes') / 1073741824e0 AS upload_gib, -- most GiB waiting
    max(value_max) FILTER (WHERE metric = 'kafka.partition.upload_held_back.bytes') / 1073741824e0 AS held_back_gib, -- GiB delayed
    max(value_max) FILTER (WHERE metric = 'kafka.partition.upload_running.seconds') AS upload_seconds, -- longest upload
    max(value_max) FILTER (WHERE metric = 'kafka.partition.delete_lag.records') AS delete_records, -- most offsets waiting
    max(value_max) FILTER (WHERE metric = 'kafka.partition.delete_lag.bytes') / 1073741824e0 AS delete_gib, -- most GiB waiting
    max(value_max) FILTER (WHERE metric = 'kafka.partition.delete_failed.segments') AS failed_segments, -- failed deletions
    max(value_max) FILTER (WHERE metric = 'kafka.partition.remote_abandoned.bytes') / 1073741824e0 AS abandoned_gib, -- GiB
    max(value_max) FILTER (WHERE metric = 'kafka.cluster.remote_orphans.bytes') / 1073741824e0 AS orphan_gib -- GiB
FROM {gold.partitions}
WHERE metric IN ({metrics_of_columns})
GROUP BY cluster, topic, partition_id, date, hour

-- VIEW remote_reads
-- Reads from remote storage. One row per topic and hour.
SELECT
    cluster, topic, -- Kafka cluster id | topic
    {hours}
    max(increase) FILTER (WHERE metric = 'kafka.topic.remote_fetch.requests') AS requests, -- reads
    max(increase) FILTER (WHERE metric = 'kafka.topic.remote_fetch.bytes') / 1073741824e0 AS read_gib, -- GiB
    max(increase) FILTER (WHERE metric = 'kafka.topic.remote_fetch.errors') AS errors -- reads that failed
FROM {gold.topics}
WHERE metric IN ({metrics_of_columns})
GROUP BY cluster, topic, date, hour

-- VIEW traffic
-- Traffic of topics, as counted by brokers. One row per topic and hour. Time that was not observed is not included:
-- sources_seen contains that time.
SELECT
    cluster, topic, -- Kafka cluster id | topic
    {hours}
    max(increase) FILTER (WHERE metric = 'kafka.topic.messages_in') AS records_in, -- records written
    max(increase) FILTER (WHERE metric = 'kafka.topic.bytes_in') / 1073741824e0 AS written_gib, -- GiB written
    max(increase) FILTER (WHERE metric = 'kafka.topic.bytes_out') / 1073741824e0 AS read_gib, -- GiB read
    max(increase) FILTER (WHERE metric = 'kafka.topic.bytes_rejected') / 1073741824e0 AS rejected_gib -- GiB
FROM {gold.topics}
WHERE metric IN ({metrics_of_columns})
GROUP BY cluster, topic, date, hour

-- VIEW answers
-- Responses of brokers by error. One row per broker, request type, error and hour. A response counts once per partition
-- in it. The error NONE is a success.
SELECT
    cluster, source, -- Kafka cluster id | broker
    split_part(metric, '.', 3) AS request, -- produce or fetch
    substr(labels, 7) AS error, -- Kafka's name of the error
    {hours}
    increase AS answers -- partitions answered so
FROM {gold.labelled}
WHERE metric IN ('kafka.broker.produce.answers', 'kafka.broker.fetch.answers') AND increase > 0

-- VIEW metric_definitions
-- Meaning, unit and kind of each metric. One row per metric.
SELECT
    metric, kind, unit, -- metric | gauge or counter | UCUM unit of its values; 1: a number or a share
    meaning, level, -- meaning of its values | partition, topic, client, group or source
    families, roles, -- families that read it | roles of the sources that report it
    read_from, absent, -- jmx, admin or another interface | idle, not_applicable or zero without an MBean
    since, -- first Kafka version that has it; NULL: not known, or all supported versions
    is_own -- whether only a catalogue of the lake has it
FROM {gold.metrics}

-- VIEW objectives
-- Objectives with their targets. One row per version: a changed objective ends one row and starts the next row.
SELECT
    objective, title, meaning, -- name of the objective | title | description
    level, metric, -- cluster, topic, partition, client, group or source | metric of its values
    comparison, threshold, -- a good value is lte, lt, gte or gt | than this, in the unit of the metric
    100e0 * target AS target_percent, -- percent of time, slices or events that must be good
    time_window, is_rolling, -- length of its error budget | whether it ends at any time
    budgeting, unknown_as, -- method of OpenSLO | meaning of unknown time in the verdict
    service, team, applies_to, -- service | label team | chosen subjects and series; NULL: all
    composites, -- composites that include it
    utc(valid_from) AS valid_from_utc, -- first rollup with this version
    utc(valid_until) AS valid_until_utc, -- first rollup without it; NULL: it is current
    valid_until IS NULL AS is_current -- whether the last rollup used it
FROM {gold.objectives}

-- VIEW owners
-- Owners of topics, clients, groups and sources. One row per subject with an owner, from the last jmxlake weekly.
SELECT
    cluster, kind, -- Kafka cluster id | topic, client, group or source
    topic, user_name, client_id, -- topic | authenticated principal | client id
    consumer_group, source, -- consumer group | broker, controller or client
    team, owner, tier -- team, or NULL | owner, or NULL | tier, or NULL
FROM {gold.owners}

-- VIEW value_histograms
-- Time by value, for metrics with percentiles. One row per metric, subject, hour and value. Sums of minutes over hours and
-- subjects are histograms again.
SELECT
    cluster, metric, -- Kafka cluster id | metric, as in metric_definitions
    topic, user_name, client_id, -- topic | authenticated principal | client id
    consumer_group, source, -- consumer group | source; NULL: the value is of a topic, client or group
    {hours}
    {value_of_bucket} AS metric_value, -- value, within 0.55 percent
    series_us / 6e7 AS minutes -- minutes with this value, summed over series
FROM {gold.distributions}

-- VIEW percentile_days
-- Percentiles of values over time by local day. One row per metric, subject and day. Time without a value is not included.
WITH {percentiles_of_days}
SELECT
    cluster, metric, -- Kafka cluster id | metric, as in metric_definitions
    topic, user_name, client_id, -- topic | authenticated principal | client id
    consumer_group, source, -- consumer group | source; NULL: the value is of a topic, client or group
    place AS day_local, -- day, local time
    {percentiles}
FROM ordered
GROUP BY cluster, metric, topic, user_name, client_id, consumer_group, source, place

-- VIEW percentile_weeks
-- Percentiles of values over time by ISO week. One row per metric, subject and week. Time without a value is not included.
WITH {percentiles_of_weeks}
SELECT
    cluster, metric, -- Kafka cluster id | metric, as in metric_definitions
    topic, user_name, client_id, -- topic | authenticated principal | client id
    consumer_group, source, -- consumer group | source; NULL: the value is of a topic, client or group
    place AS week_local, -- Monday of the week, local time
    {percentiles}
FROM ordered
GROUP BY cluster, metric, topic, user_name, client_id, consumer_group, source, place

-- VIEW metrics
-- Values of every metric, including your own metrics. One row per metric, source, labels and hour.
SELECT
    cluster, metric, source, -- Kafka cluster id | metric, as in metric_definitions | source
    labels, -- key=value by key; NULL: the sum over every label of the source
    {hours}
    value_seconds * 1000000 / series_seen_us AS mean, -- mean over time
    value_min AS least, value_max AS most, -- least value of one series | greatest
    increase, -- of a counter: its increase
    series_seen_us / 6e7 AS seen_minutes -- minutes seen, summed over series
FROM (
    SELECT cluster, date, hour, metric, source, labels, series_seen_us, value_seconds, value_min, value_max,
        increase
    FROM {gold.labelled}
    UNION ALL
    SELECT cluster, date, hour, metric, source, NULL, series_seen_us, value_seconds, value_min, value_max,
        increase
    FROM {gold.sources}) m
WHERE series_seen_us > 0

-- VIEW outcomes
-- Outcomes of scrapes. One row per source, metric family, outcome and hour.
SELECT
    cluster, source, family, -- Kafka cluster id | broker, controller or client | family of metrics
    outcome, -- ok, or why the scrape failed
    {hours}
    outcome_us / 6e7 AS minutes, -- minutes that the outcome covers
    scrapes AS attempts, -- attempts to read it
    interval_us / 1e6 AS interval_seconds -- longest interval of the attempts, seconds
FROM {gold.coverage}

-- VIEW sources_seen
-- Coverage of brokers, controllers and clients. One row per source, metric family and hour in which the source existed.
-- An hour without any scrape of the cluster has no row.
WITH hours AS (
    SELECT DISTINCT cluster, date, hour, micros(hour) AS start_us FROM {gold.coverage}),
newest AS (
    SELECT cluster, max(micros(last_seen)) AS seen_us, max(micros(attributes_at)) AS listed_us
    FROM {gold.subjects} WHERE kind = 'source' GROUP BY cluster),
sources AS (
    SELECT s.cluster, s.source, micros(s.first_seen) AS first_us,
        CASE WHEN n.listed_us > micros(s.attributes_at) + 180000000
            THEN greatest(micros(s.last_seen), micros(s.attributes_at)) ELSE n.seen_us END AS last_us
    FROM {gold.subjects} s JOIN newest n ON n.cluster = s.cluster
    WHERE s.kind = 'source'),
families AS (
    SELECT DISTINCT cluster, source, family FROM {gold.coverage}),
attempts AS (
    SELECT cluster, source, family, date, hour, sum(scrapes) AS attempts,
        coalesce(sum(scrapes) FILTER (WHERE outcome NOT IN ('ok', 'skipped')), 0) AS failed,
        coalesce(sum(outcome_us) FILTER (WHERE outcome = 'ok'), 0) AS seen_us
    FROM {gold.coverage} GROUP BY cluster, source, family, date, hour),
lived AS (
    SELECT s.cluster, s.source, f.family, h.date, h.hour, coalesce(a.attempts, 0) AS attempts,
        coalesce(a.failed, 0) AS failed, coalesce(a.seen_us, 0) AS seen_us,
        greatest(coalesce(a.seen_us, 0),
            least(h.start_us + 3600000000, s.last_us) - greatest(h.start_us, s.first_us)) AS expected_us
    FROM hours h
    JOIN sources s ON s.cluster = h.cluster
    LEFT JOIN families f ON f.cluster = s.cluster AND f.source = s.source
    LEFT JOIN attempts a ON a.cluster = s.cluster AND a.source = s.source AND a.family = f.family
        AND a.date = h.date AND a.hour = h.hour)
SELECT
    cluster, source, -- Kafka cluster id | broker, controller or client
    coalesce(family, 'any') AS family, -- family of metrics; any: the source was never read
    {hours}
    seen_us / 6e7 AS seen_minutes, -- minutes that readings cover
    (expected_us - seen_us) / 6e7 AS unknown_minutes, -- minutes in which it existed and was not observed
    100e0 * seen_us / expected_us AS seen_percent, -- percent of the minutes in which it existed
    CAST(attempts AS BIGINT) AS attempts, CAST(failed AS BIGINT) AS failed -- attempts | of them failed
FROM lived
WHERE expected_us > 0

-- VIEW sources_tried
-- Sources that are no longer scraped. One row per source with a scrape in the last week.
WITH listed AS (
    SELECT cluster, source, micros(attributes_at) AS listed_us,
        max(micros(attributes_at)) OVER (PARTITION BY cluster) AS newest_us
    FROM {gold.subjects} WHERE kind = 'source'),
tried AS (
    SELECT cluster, source, max(ended_at) AS last_end, max(max(ended_at)) OVER () AS newest_end
    FROM {gold.readings} WHERE date >= CAST(current_timestamp - INTERVAL '7' DAY AS DATE) GROUP BY cluster, source)
SELECT
    cluster, source, -- Kafka cluster id | broker, controller or client
    utc(last_end) AS tried_until_utc, -- last attempt of an agent to read it, UTC
    (micros(newest_end) - micros(last_end)) / 6e7 AS silent_minutes, -- until the newest of all
    (micros(current_timestamp) - micros(last_end)) / 6e7 AS late_minutes, -- minutes until now
    coalesce(newest_us > listed_us + 180000000, FALSE) AS is_gone -- whether only other sources are listed
FROM tried LEFT JOIN listed USING (cluster, source)

-- VIEW budget_burn
-- Current burn rates of error budgets, at the newest hour. With rate 1, a budget lasts as long as its objective's period.
-- Only certainly bad time and published objectives count. One row per subject that was bad in the last 3 days.
WITH bad AS (
    SELECT s.*, (micros(newest) - micros(hour)) / 3600000000 AS hours_ago,
        micros(newest) - micros(last_hour) < 21600000000 AS is_recent
    FROM {gold.sli} s CROSS JOIN (SELECT max(hour) AS newest FROM {gold.coverage}) n
    LEFT JOIN (SELECT cluster AS of_cluster, max(hour) AS last_hour FROM {gold.coverage} WHERE outcome = 'ok'
        GROUP BY cluster) o ON of_cluster = s.cluster
    WHERE bad_low_us > 0),
targets AS (
    SELECT cluster, objective, nullif(1 - max(target_percent) / 100, 0) AS budget
    FROM {verdicts} GROUP BY cluster, objective)
SELECT
    cluster, objective, -- Kafka cluster id | name of the objective
    topic, user_name, client_id, -- topic | authenticated principal | client id
    consumer_group, source, -- consumer group | broker, controller or client
    sum(CASE WHEN hours_ago < 6 THEN bad_low_us WHEN is_recent THEN 0 END)
        / (6 * 3.6e9 * max(budget)) AS rate_6h, -- over 6 hours; NULL: the cluster was not observed then
    sum(bad_low_us) / (72 * 3.6e9 * max(budget)) AS rate_3d -- over 3 days
FROM bad JOIN targets USING (cluster, objective)
WHERE hours_ago < 72
GROUP BY cluster, objective, topic, user_name, client_id, consumer_group, source

-- VIEW week_choices
-- Weeks for a filter: each ISO week in gold, and (last), which is the newest complete week, otherwise the newest week.
WITH weeks AS (
    SELECT DISTINCT week_local FROM {outcomes}),
named AS (
    SELECT week_local, CAST(extract(YEAR FROM week_local + INTERVAL '3' DAY) AS VARCHAR(4)) || '-W'
        || lpad(CAST(extract(WEEK FROM week_local) AS VARCHAR(2)), 2, '0') AS iso_week
    FROM weeks),
newest AS (
    SELECT coalesce(max(week_local) FILTER (WHERE week_local + INTERVAL '7' DAY <= local(current_timestamp)),
        max(week_local)) AS week_local
    FROM weeks)
SELECT
    choice, iso_week, -- an ISO week, or (last) | the ISO week that it is, such as 2026-W46
    week_local -- its Monday, local time
FROM (
    SELECT iso_week AS choice, iso_week, week_local FROM named
    UNION ALL SELECT '(last)', iso_week, week_local FROM named JOIN newest USING (week_local)) c

-- VIEW cluster_days
-- Summary of each day of a cluster. One row per local day of the ISO weeks with scrapes. NULL: no scrape on that day. A
-- day is only as good as the least observed of unavailable_minutes, throttled_minutes and lost_low, if agents collect it.
WITH seen AS (
    SELECT cluster, source, family, CAST(hour_local AS DATE) AS day_local, sum(seen_minutes) AS minutes,
        CASE WHEN family IN ('min_isr', 'leaders', 'metadata_log') THEN 'unavailable' WHEN family = 'quotas' THEN 'throttled'
            WHEN family = 'offsets' THEN 'lost' END AS figure
    FROM {sources_seen} GROUP BY cluster, source, family, CAST(hour_local AS DATE)),
brokers AS (
    SELECT cluster, day_local, count(DISTINCT source) AS brokers
    FROM seen WHERE {is_broker} GROUP BY cluster, day_local),
figures AS (
    SELECT cluster, source, day_local, figure, max(minutes) AS minutes,
        bool_or(family = 'metadata_log' OR {is_cluster}) AS is_of_all
    FROM seen WHERE figure IS NOT NULL GROUP BY cluster, source, day_local, figure),
observed AS (
    SELECT f.cluster, f.day_local, 6e9 * sum(minutes) / (day_us(f.day_local)
        * CASE WHEN NOT bool_or(is_of_all) AND max(brokers) > count(*) THEN max(brokers) ELSE count(*) END) AS of_figure
    FROM figures f LEFT JOIN brokers b ON b.cluster = f.cluster AND b.day_local = f.day_local
    GROUP BY f.cluster, f.day_local, figure),
parts AS (
    SELECT cluster, CAST(hour_local AS DATE) AS day_local, NULL AS observed,
        CASE WHEN family IN ('min_isr', 'leaders', 'metadata_log') THEN 0e0 END AS unavailable,
        CASE WHEN family = 'quotas' THEN 0e0 END AS throttled, CASE WHEN family = 'tiered' THEN 0e0 END AS most,
        CASE WHEN family = 'offsets' THEN 0e0 END AS lost_low, CASE WHEN family = 'offsets' THEN 0e0 END AS lost_high,
        CASE WHEN family = 'remote_reads' THEN 0e0 END AS gib
    FROM {outcomes} WHERE outcome = 'ok' AND minutes > 0
    UNION ALL
    SELECT cluster, CAST(week_local + days AS DATE), NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM {outcomes} CROSS JOIN (VALUES (INTERVAL '0' DAY), (INTERVAL '1' DAY), (INTERVAL '2' DAY),
        (INTERVAL '3' DAY), (INTERVAL '4' DAY), (INTERVAL '5' DAY), (INTERVAL '6' DAY)) AS d (days)
    UNION ALL SELECT cluster, day_local, NULL, unavailable_minutes, NULL, NULL, NULL, NULL, NULL FROM {topic_days}
    UNION ALL SELECT cluster, CAST(hour_local AS DATE), NULL, NULL, throttled_minutes, NULL, NULL, NULL, NULL
    FROM {throttled_clients}
    UNION ALL SELECT cluster, CAST(hour_local AS DATE), NULL, NULL, NULL, most_lag_gib, NULL, NULL, NULL FROM {tier_lag}
    UNION ALL SELECT cluster, CAST(hour_local AS DATE), NULL, NULL, NULL, NULL, lost_low, lost_high, NULL
    FROM {lost_records}
    UNION ALL SELECT cluster, CAST(hour_local AS DATE), NULL, NULL, NULL, NULL, NULL, NULL, read_gib FROM {remote_reads}
    UNION ALL SELECT cluster, day_local, of_figure, NULL, NULL, NULL, NULL, NULL, NULL FROM observed)
SELECT
    cluster, day_local, -- Kafka cluster id | day, local time
    CAST(date_trunc('week', day_local) AS DATE) AS week_local, -- Monday of its ISO week
    sum(unavailable) AS unavailable_minutes, -- minutes with a partition unavailable, summed over topics
    sum(throttled) AS throttled_minutes, -- minutes throttled, summed over clients and kinds of requests
    max(most) AS most_lag_gib, -- most GiB of a topic that waited for the remote tier
    sum(lost_low) AS lost_low, -- offsets lost, at least
    CASE WHEN count(lost_low) = count(lost_high) THEN sum(lost_high) END AS lost_high, -- at most; NULL: not known
    sum(gib) AS read_gib, -- GiB read back from the remote tier
    CASE WHEN min(observed) > 100 THEN 100e0 ELSE min(observed) END AS observed_percent, -- percent of the day, of the least observed figure of state; NULL: none was
    state_of[observed_percent; sum(unavailable) > 0 OR sum(throttled) > 0 OR
        sum(coalesce(lost_high, lost_low))] AS state -- as in topic_days
FROM parts
GROUP BY cluster, day_local
