-- Time per value, for metrics with a distribution. Partitions: the value of each partition, per topic. Metrics
-- that brokers report per topic: their total. Clients, groups and sources: the value of each series. The series
-- __other__ is excluded, because a sum is not the value of a series.
INSERT INTO out_distributions BY NAME
WITH own AS (SELECT * FROM usable WHERE spread AND NOT counter AND value IS NOT NULL),
of_topics AS (
    SELECT subject, value, (e - s) * weight AS us FROM plain_runs
    WHERE spread AND value IS NOT NULL AND (atom >= 0 OR set_number IS NOT NULL)
    UNION ALL
    SELECT subject, value, us FROM atom_segments WHERE purpose = 'spread' AND atom >= 0 AND obs > 0
    UNION ALL
    SELECT subject, v, us FROM totals WHERE purpose = 'spread'),
folded AS (
    SELECT w, metric, set_number, sum(e - s) AS us FROM own
    WHERE level = 'client' AND members IS NOT NULL GROUP BY ALL),
held AS (
    SELECT w, metric, topic, value, us FROM of_topics JOIN gold_subjects USING (subject)
    WHERE topic <> '__other__'
    UNION ALL BY NAME
    SELECT w, metric, user_name, client_id, value, e - s AS us FROM own
    WHERE level = 'client' AND members IS NULL AND client_id IS DISTINCT FROM '__other__'
    UNION ALL BY NAME
    SELECT w, metric, c.user_name, c.client_id, 0 AS value, us FROM folded JOIN set_clients c USING (set_number)
    UNION ALL BY NAME
    SELECT w, metric, topic, consumer_group, CASE WHEN level = 'source' THEN source END AS source, value,
        (e - s) * series AS us
    FROM own WHERE level = 'source' OR (level = 'group' AND topic IS DISTINCT FROM '__other__')),
-- Machines round logarithms differently. Ends of buckets are 1 part in 10^8 higher, so a value at an end,
-- such as a power of two, is in the same bucket on every machine.
placed AS (SELECT *, abs(value) <= 1e-12 AS zero, ceil(log2(abs(value)) * 64 - 1e-6) - 1 AS place FROM held)
SELECT w, metric, topic, user_name, client_id, consumer_group, source,
    CASE WHEN zero THEN 0 ELSE sign(value) END::INTEGER AS sign,
    CASE WHEN zero THEN 0 ELSE place END::INTEGER AS bucket,
    sum(us) AS series_us, sum(value_seconds(value, us)) AS value_seconds
FROM placed GROUP BY ALL;
