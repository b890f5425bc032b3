-- Reports of one source, one group or of replicas never overlap, so sums of runs suffice. The sum over replicas is
-- also a row of the topic. Series of a source that labels distinguish are also rows of their own.
CREATE OR REPLACE TABLE additive AS
WITH summed AS (
    SELECT *, unnest(CASE WHEN level = 'group' THEN ['group']
        WHEN replica AND topic IS NOT NULL AND NOT counter THEN ['source', 'topic']
        WHEN level = 'source' AND cardinality(labels) > 0 THEN ['source', 'labels']
        ELSE ['source'] END) AS sum_of
    FROM streams WHERE measure)
SELECT w, metric, sum_of,
    CASE WHEN sum_of = 'group' THEN consumer_group END AS consumer_group,
    CASE WHEN sum_of IN ('group', 'topic') THEN topic END AS topic,
    CASE WHEN sum_of IN ('source', 'labels') THEN source END AS source,
    CASE WHEN sum_of = 'labels' THEN labels_of(labels) END AS labels,
    coalesce(sum(CASE WHEN counter THEN known_us ELSE us END * series), 0) AS series_seen_us,
    sum(total) FILTER (NOT counter) AS value_seconds,
    min(value_min) FILTER (NOT counter) AS value_min, max(value_max) FILTER (NOT counter) AS value_max,
    sum(CASE WHEN positive THEN us ELSE 0 END) FILTER (NOT counter) AS series_affected_us,
    sum(CASE WHEN positive THEN low_us ELSE 0 END) FILTER (NOT counter) AS series_affected_low_us,
    sum(CASE WHEN positive THEN high_us + spills_us ELSE 0 END) FILTER (NOT counter) AS series_affected_high_us,
    sum(total) FILTER (counter) AS increase, max(series) AS series, bool_or(known_wrong) AS known_wrong
FROM stream_sums JOIN summed USING (stream) GROUP BY ALL;

INSERT INTO out_sources BY NAME
SELECT * EXCLUDE (sum_of, labels, consumer_group, topic) FROM additive WHERE sum_of = 'source';

INSERT INTO out_labelled BY NAME
SELECT * EXCLUDE (sum_of, consumer_group, topic) FROM additive WHERE sum_of = 'labels';

INSERT INTO out_groups BY NAME
SELECT * EXCLUDE (sum_of, labels, source) FROM additive WHERE sum_of = 'group';

INSERT INTO out_topics BY NAME
SELECT * EXCLUDE (sum_of, labels, consumer_group, source) FROM additive WHERE sum_of = 'topic' AND value_max > 0;

-- Counters of topics, partitions and clients: their increases. A counter with an unknown increase (null) is not
-- observed.
CREATE OR REPLACE TABLE counters AS
SELECT w, metric, topic, partition_id, user_name, client_id, level,
    coalesce(sum(known_us * series), 0) AS series_seen_us,
    sum(total) AS increase, max(series) AS series, bool_or(known_wrong) AS known_wrong
FROM stream_sums JOIN streams USING (stream)
WHERE counter AND (level IN ('partition', 'topic') OR (level = 'client' AND members IS NULL))
GROUP BY ALL;

INSERT INTO out_topics BY NAME
SELECT w, metric, topic, sum(series_seen_us) AS series_seen_us, sum(increase) AS increase,
    max(series) AS series, bool_or(known_wrong) AS known_wrong
FROM counters WHERE level <> 'client' GROUP BY ALL;

INSERT INTO out_partitions BY NAME
SELECT * EXCLUDE (level, user_name, client_id) FROM counters
WHERE level = 'partition' AND partition_id IS NOT NULL AND increase > 0;

INSERT INTO out_clients BY NAME
SELECT * EXCLUDE (level, topic, partition_id) FROM counters WHERE level = 'client' AND increase > 0;

-- Rejected runs.
INSERT INTO out_rejected BY NAME
SELECT w, reason, 'runs' AS table_name, source, metric, members, min(s) AS started_at, max(e) AS ended_at,
    min(agent) AS agent, min(batch) AS batch, count(*) AS row_count
FROM judged JOIN streams USING (stream) WHERE reason IS NOT NULL GROUP BY ALL;
