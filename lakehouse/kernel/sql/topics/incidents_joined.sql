-- Intervals above zero within parts, and their series.
CREATE TABLE bad_series (series BIGINT, identity STRUCT(h BIGINT, metric VARCHAR, level VARCHAR,
    topic VARCHAR, partition_id INTEGER, user_name VARCHAR, client_id VARCHAR, consumer_group VARCHAR,
    source VARCHAR));
CREATE TABLE out_incidents (series BIGINT, s BIGINT, e BIGINT, lead_us BIGINT, sure_until BIGINT,
    worst DOUBLE, total DECIMAL(38, 6), runs BIGINT, known_wrong BOOLEAN);

-- Intervals of an hour above zero: the intervals of parts are joined if they touch. An interval that may not have
-- been above zero at all does not determine the end.
CREATE VIEW incidents_joined AS
WITH marked AS (
    SELECT *, lag(e) OVER (PARTITION BY series ORDER BY s) IS DISTINCT FROM s AS begins FROM out_incidents),
placed AS (
    SELECT *, max(s) FILTER (begins) OVER (PARTITION BY series ORDER BY s) AS started_at FROM marked),
stretches AS (
    SELECT series, started_at, max(e) AS ended_at, max(lead_us) FILTER (begins) AS lead_us,
        max(e) - coalesce(max(sure_until) FILTER (sure_until > s), started_at) AS tail_us, max(worst) AS worst,
        sum(total) AS total, sum(runs) AS runs, bool_or(known_wrong) AS known_wrong
    FROM placed GROUP BY series, started_at)
SELECT identity.h AS w, * EXCLUDE (identity), unnest(identity) FROM stretches JOIN bad_series USING (series);
