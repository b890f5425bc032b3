-- Groups: bad while an increase of the offsets lost spans it; good while the loss of all partitions is
-- known and is none. The bounds are two counters: what was lost at least, and at most.
INSERT INTO out_sli BY NAME
WITH bounds AS (
    SELECT w, regexp_replace(metric, '[.](low|high)$', '') AS metric, "group", s, e, series,
        ends_with(metric, '.high') AS high, value IS NOT NULL AS known, coalesce(value > 0, false) AS lost
    FROM usable WHERE level = 'group' AND counter),
edges AS (
    SELECT w, metric, "group", unnest([s, e]) AS t,
        step(CASE WHEN high AND known THEN series ELSE 0 END) AS known,
        step(CASE WHEN high AND NOT known THEN series ELSE 0 END) AS unknown,
        step((lost AND NOT high)::INTEGER) AS low, step((lost AND high)::INTEGER) AS high
    FROM bounds SEMI JOIN (SELECT metric FROM objectives WHERE level = 'group') USING (metric)),
running AS (
    SELECT w, metric, "group", lead(t) OVER along - t AS us,
        sum(sum(known)) OVER along AS known, sum(sum(unknown)) OVER along AS unknown,
        sum(sum(low)) OVER along AS low, sum(sum(high)) OVER along AS high
    FROM edges GROUP BY w, metric, "group", t
    WINDOW along AS (PARTITION BY w, metric, "group" ORDER BY t)),
segments AS (
    SELECT *, max(known + unknown) OVER (PARTITION BY w, metric, "group") AS most FROM running WHERE us > 0)
SELECT w, objective, "group",
    coalesce(sum(us) FILTER (low = 0 AND unknown = 0 AND known > 0 AND known = most), 0) AS good_us,
    coalesce(sum(us) FILTER (low > 0), 0) AS bad_us, bad_us AS bad_low_us,
    coalesce(sum(us) FILTER (low > 0 OR high > 0), 0) AS bad_high_us, 0 AS spill_us
FROM segments JOIN objectives o USING (metric) WHERE o.level = 'group'
GROUP BY w, objective, "group"
HAVING greatest(good_us, bad_us, bad_high_us) > 0;
