-- bad_series: series of watched metrics that one source reported above zero in an hour.
CREATE OR REPLACE TABLE bad_streams AS
SELECT DISTINCT stream, {h: h, metric: metric, level: level, topic: topic, partition_id: partition_id,
    user_name: user_name, client_id: client_id, consumer_group: consumer_group, source: source} AS identity
FROM stream_sums JOIN streams USING (stream) SEMI JOIN watched USING (metric) WHERE positive;

INSERT INTO bad_series
WITH fresh AS (SELECT identity FROM bad_streams EXCEPT SELECT identity FROM bad_series)
SELECT (SELECT count(*) FROM bad_series) + row_number() OVER () AS series, * FROM fresh;

-- bad_runs: their runs in this part. Runs that touch are one interval.
CREATE OR REPLACE TABLE bad_runs AS
WITH numbered AS (SELECT stream, series FROM bad_streams JOIN bad_series USING (identity)),
bad AS (
    SELECT series, s, e, sure, s - may + spill AS lead_us, value, wrong
    FROM usable_runs JOIN numbered USING (stream) WHERE positive),
depths AS (
    SELECT series, t, sum(sum(runs)) OVER along AS runs
    FROM stream_edges JOIN numbered USING (stream) WHERE positive GROUP BY series, t HAVING sum(runs) <> 0
    WINDOW along AS (PARTITION BY series ORDER BY t)),
-- An interval ends where no run is open, counted from the last run.
places AS (
    SELECT series, t, sum((runs = 0)::INTEGER) OVER (PARTITION BY series ORDER BY t DESC) AS place
    FROM depths),
spans AS (
    SELECT series, row_number() OVER () AS stretch, min(t) AS started_at, max(t) AS ended_at
    FROM places GROUP BY series, place)
SELECT bad.*, stretch, started_at
FROM bad JOIN spans USING (series) WHERE bad.s >= started_at AND bad.e <= ended_at;

-- Intervals above zero within a part. If a run may not have been above zero at all, the runs that end at its start
-- count: `reached` are the instants at which the interval may have ended.
INSERT INTO out_incidents BY NAME
WITH RECURSIVE reached AS (
    SELECT stretch, max(e) AS t FROM bad_runs GROUP BY stretch
    UNION
    SELECT stretch, s FROM reached JOIN bad_runs r USING (stretch) WHERE r.e = t AND sure = s),
ends AS (
    SELECT reached.stretch, max(CASE WHEN r.e IS NULL THEN t WHEN sure > s THEN sure END) AS sure_until
    FROM reached LEFT JOIN bad_runs r ON r.stretch = reached.stretch AND r.e = t GROUP BY ALL),
stretches AS (
    SELECT series, stretch, started_at AS s, max(e) AS e, min(lead_us) FILTER (s = started_at) AS lead_us,
        max(value) AS worst, sum(exact(value)) AS total, count(*) AS runs, bool_or(wrong) AS known_wrong
    FROM bad_runs GROUP BY ALL)
SELECT * EXCLUDE (stretch) FROM stretches JOIN ends USING (stretch);
