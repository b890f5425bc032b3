-- Sources: bad while an attempt to read a family of theirs failed. A tick that was skipped is no attempt.
INSERT INTO out_sli BY NAME
WITH edges AS (
    SELECT w, source, unnest([s, e]) AS t,
        step((outcome = 'ok')::INTEGER) AS ok, step((outcome <> 'ok')::INTEGER) AS failed
    FROM attempts WHERE outcome <> 'skipped'),
running AS (
    SELECT w, source, lead(t) OVER along - t AS us,
        sum(sum(ok)) OVER along AS ok, sum(sum(failed)) OVER along AS failed
    FROM edges GROUP BY w, source, t
    WINDOW along AS (PARTITION BY w, source ORDER BY t)),
segments AS (SELECT *, max(ok) OVER (PARTITION BY w, source) AS most FROM running WHERE us > 0)
SELECT w, objective, source,
    coalesce(sum(us) FILTER (failed = 0 AND ok > 0 AND ok = most), 0) AS good_us,
    coalesce(sum(us) FILTER (failed > 0), 0) AS bad_us,
    bad_us AS bad_low_us, bad_us AS bad_high_us, 0 AS spill_us
FROM segments, objectives o WHERE o.level = 'source' AND o.metric = 'jmxlake.coverage'
GROUP BY w, objective, source
HAVING greatest(good_us, bad_us) > 0;
