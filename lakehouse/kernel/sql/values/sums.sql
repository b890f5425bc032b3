-- usable: runs that are not rejected.
CREATE OR REPLACE VIEW usable_runs AS SELECT * EXCLUDE (reason, batch) FROM judged WHERE reason IS NULL;
CREATE OR REPLACE VIEW usable AS SELECT * FROM usable_runs JOIN streams USING (stream);

-- stream_sums: sums of a stream's runs above zero, and of its other runs, in a window. `total` is the increase of a
-- counter, or the value over time of a gauge.
CREATE OR REPLACE TABLE stream_sums AS
SELECT stream, w, positive, min(s) AS s, max(e) AS e, sum(e - s)::BIGINT AS us,
    (sum(e - s) FILTER (value IS NOT NULL))::BIGINT AS known_us,
    sum(CASE WHEN counter THEN exact(value) ELSE value_seconds(value, e - s) END) AS total,
    min(value) AS value_min, max(value) AS value_max, sum(sure - s)::BIGINT AS low_us,
    sum(e - may)::BIGINT AS high_us, sum(spill)::BIGINT AS spills_us, max(spill) AS spill, bool_or(opens) AS opens,
    bool_or(wrong) AS known_wrong
FROM usable_runs JOIN (SELECT stream, counter FROM streams) USING (stream) GROUP BY stream, w, positive;

-- stream_edges: number of runs that start at an instant minus runs that end: adjacent runs change nothing. `low` and
-- `high` are the same for time that was surely and possibly above zero.
CREATE OR REPLACE TABLE stream_edges AS
WITH edges AS (SELECT stream, w, positive, unnest([s, e]) AS t, step(1) AS runs FROM usable_runs),
net AS (
    SELECT stream, w, positive, t, sum(runs)::INTEGER AS runs FROM edges GROUP BY ALL HAVING sum(runs) <> 0)
SELECT *, positive::INTEGER * runs AS low, low AS high FROM net
UNION ALL
SELECT stream, w, positive, unnest([e, sure]), 0, step(1), 0 FROM usable_runs WHERE positive AND sure < e
UNION ALL
SELECT stream, w, positive, unnest([may, s]), 0, 0, step(1) FROM usable_runs WHERE positive AND may < s;
