-- What one source or one group reports never overlaps: plain sums of its runs.
CREATE OR REPLACE TABLE additive AS
SELECT w, metric,
    CASE WHEN level = 'group' THEN "group" END AS "group",
    CASE WHEN level = 'group' THEN topic END AS topic,
    CASE WHEN level <> 'group' THEN source END AS source,
    coalesce(sum((e - s) * series) FILTER (NOT counter OR value IS NOT NULL), 0) AS observed_us,
    sum(value_seconds(value, e - s)) FILTER (NOT counter) AS value_seconds,
    min(value) FILTER (NOT counter) AS min, max(value) FILTER (NOT counter) AS max,
    sum(CASE WHEN positive THEN e - s ELSE 0 END) FILTER (NOT counter) AS positive_us,
    sum(CASE WHEN positive THEN sure - s ELSE 0 END) FILTER (NOT counter) AS positive_low_us,
    sum(CASE WHEN positive THEN e - may + spill ELSE 0 END) FILTER (NOT counter) AS positive_high_us,
    sum(exact(value)) FILTER (counter) AS increase, max(series) AS series, bool_or(wrong) AS known_wrong
FROM usable WHERE measure GROUP BY ALL;

INSERT INTO out_brokers BY NAME
SELECT * EXCLUDE ("group", topic) FROM additive WHERE source IS NOT NULL;

INSERT INTO out_groups BY NAME
SELECT * EXCLUDE (source) FROM additive WHERE source IS NULL;

-- Counters of topics, partitions and clients: by how much they rose. Where that is not known (null)
-- they are not observed.
CREATE OR REPLACE TABLE counters AS
SELECT w, metric, topic, partition, "user", client_id, level,
    coalesce(sum((e - s) * series) FILTER (value IS NOT NULL), 0) AS observed_us,
    sum(exact(value)) AS increase, max(series) AS series, bool_or(wrong) AS known_wrong
FROM usable
WHERE counter AND (level IN ('partition', 'topic') OR (level = 'client' AND members IS NULL))
GROUP BY ALL;

INSERT INTO out_topics BY NAME
SELECT w, metric, topic, sum(observed_us) AS observed_us, sum(increase) AS increase,
    max(series) AS series, bool_or(known_wrong) AS known_wrong
FROM counters WHERE level <> 'client' GROUP BY ALL;

INSERT INTO out_partitions BY NAME
SELECT * EXCLUDE (level, "user", client_id) FROM counters
WHERE level = 'partition' AND partition IS NOT NULL AND increase > 0;

INSERT INTO out_clients BY NAME
SELECT * EXCLUDE (level, topic, partition) FROM counters WHERE level = 'client' AND increase > 0;

-- What could not be used.
INSERT INTO out_rejected BY NAME
SELECT w, reason, 'runs' AS "table", source, metric, members, min(start_us) AS "start",
    max(start_us + e - s) AS "end", min(agent) AS agent, min(batch) AS batch, count(*) AS rows
FROM judged WHERE reason IS NOT NULL GROUP BY ALL;
