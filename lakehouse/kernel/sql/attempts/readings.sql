-- Intervals of an hour in which the scrapes of a family of a source had one outcome.
INSERT INTO out_readings BY NAME
WITH marked AS (
    SELECT *, coalesce(s > max(e) OVER earlier, true) AS begins FROM attempts
    WINDOW earlier AS (PARTITION BY hour_of(w), source, family, outcome
        ORDER BY s, e ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)),
numbered AS (
    SELECT *, max(s) FILTER (begins) OVER (PARTITION BY hour_of(w), source, family, outcome
        ORDER BY s, e) AS started_at
    FROM marked)
SELECT hour_of(w) AS w, source, family, outcome, started_at, max(e) AS ended_at, sum(scrapes) AS scrapes,
    max(seconds_max + 0.0) AS seconds_max, max(interval_us) AS interval_us,
    (min({s: s, error: error}) FILTER (error IS NOT NULL)).error AS error
FROM numbered GROUP BY hour_of(w), source, family, outcome, started_at;
