-- described: runs of the whole hours that describe topics and nodes.
CREATE OR REPLACE TABLE described AS
SELECT w, hour_of(w) AS h, level, metric, topic, value, labels FROM usable
WHERE describes IS NOT NULL OR metric IN (SELECT attribute FROM conditions);

CREATE OR REPLACE TABLE topology_hours AS
SELECT DISTINCT h FROM described
WHERE metric = 'kafka.topic.partitions' AND level = 'topic' AND value IS NOT NULL;

-- asked_for: topics with all attributes that an objective requires.
CREATE OR REPLACE TABLE asked_for AS
WITH attributes AS (
    SELECT h, topic, metric AS attribute, max(value) AS value FROM described
    WHERE level = 'topic' GROUP BY ALL)
SELECT objective, h, topic FROM conditions JOIN attributes USING (attribute, value)
GROUP BY objective, h, topic, number HAVING count(*) = number;

-- unread: time, per metric, in which a source that may have had a report was not scraped. For topics, all sources
-- with scrapes in the hour are expected. For clients (live), sources that were scraped for the metric in the hour
-- or are reported as not fenced are expected. A source that was down had no report.
CREATE OR REPLACE TABLE unread AS
WITH metrics AS (SELECT DISTINCT metric FROM read_with),
answered AS (
    SELECT w, source, r.metric, s, e, outcome FROM attempts JOIN read_with r USING (family)
    WHERE outcome IN ('ok', 'down')),
expected AS (
    SELECT DISTINCT hour_of(w) AS h, source, metrics.metric, false AS live FROM attempts, metrics
    UNION
    SELECT hour_of(w), source, metric, true FROM answered WHERE outcome = 'ok'
    UNION
    SELECT h, labels['node'], metrics.metric, true FROM described d, metrics
    WHERE d.metric = 'kafka.cluster.node.fenced' AND value = 0 AND labels['node'] IS NOT NULL),
frames AS (
    SELECT h + number * window_us() AS w, source, metric, bool_or(live) AS live,
        bool_or(NOT live) AS accounted
    FROM expected, range(hour_us() // window_us()) windows(number) GROUP BY ALL),
edges AS (
    SELECT w, source, metric, unnest([w, w + window_us()]) AS t, 0 AS read FROM frames
    UNION ALL
    SELECT w, source, metric, unnest([s, e]), step(1) FROM answered),
segments AS (
    SELECT w, source, metric, t AS s, lead(t) OVER along AS e, sum(sum(read)) OVER along AS read
    FROM edges GROUP BY w, source, metric, t
    WINDOW along AS (PARTITION BY w, source, metric ORDER BY t))
SELECT w, source, metric, s, e, live, accounted
FROM segments JOIN frames USING (w, source, metric) WHERE read = 0 AND e > s;

-- fenced: time in which the controllers had fenced a source. Another broker may lead the partitions that it still
-- claims, because a broker that is cut off from the controllers does not learn of the new leader.
CREATE OR REPLACE TABLE fenced AS
SELECT DISTINCT w, labels['node'] AS source, s, e, may FROM usable
WHERE metric = 'kafka.cluster.node.fenced' AND positive AND labels['node'] IS NOT NULL;
