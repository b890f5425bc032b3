-- Clients: bad while at least one broker throttles them; good while none does, as many brokers are seen
-- as ever in the window, but for those that are down, and every other broker is read: one that is not may
-- be the one that throttles.
CREATE OR REPLACE TABLE client_times AS
WITH unread_metrics AS (
    SELECT DISTINCT x.w, x.metric, x.s, x.e
    FROM unread x JOIN objectives o ON o.level = 'client' AND o.metric = x.metric
    WHERE x.live
        AND (starts_with(source, 'broker-') OR (o.by_controllers AND starts_with(source, 'controller-')))),
edges AS (
    SELECT subject, unnest([t, t + us]) AS t, step(obs) AS obs, step(pos) AS pos, step(low) AS low,
        step(high) AS high
    FROM atom_segments WHERE purpose = 'objective'
    UNION ALL BY NAME
    SELECT subject, unnest([s, e]) AS t, step(1) AS unread
    FROM judged_clients JOIN unread_metrics USING (w, metric)
    UNION ALL BY NAME
    SELECT subject, unnest([s, e]) AS t, step(1) AS down
    FROM judged_clients JOIN read_with USING (metric) JOIN attempts USING (w, family)
    WHERE outcome = 'down'),
running AS (
    SELECT subject, lead(t) OVER along - t AS us, sum(sum(obs)) OVER along AS obs,
        sum(sum(pos)) OVER along AS pos, sum(sum(low)) OVER along AS low, sum(sum(high)) OVER along AS high,
        coalesce(sum(sum(unread)) OVER along, 0) AS unread, coalesce(sum(sum(down)) OVER along, 0) AS down
    FROM edges GROUP BY subject, t
    WINDOW along AS (PARTITION BY subject ORDER BY t)),
segments AS (SELECT *, max(obs) OVER (PARTITION BY subject) AS most FROM running WHERE us > 0),
spills AS (
    SELECT subject, unless_open(bool_or(opens), max(spill) FILTER (positive)) AS spill_us
    FROM claims WHERE purpose = 'objective' GROUP BY subject)
SELECT subject, spill_us,
    coalesce(sum(us) FILTER (pos = 0 AND obs > 0 AND obs + down >= most AND unread = 0), 0) AS good_us,
    coalesce(sum(us) FILTER (pos > 0), 0) AS bad_us,
    coalesce(sum(us) FILTER (low > 0), 0) AS bad_low_us,
    coalesce(sum(us) FILTER (high > 0), 0) + spill_us AS bad_high_us
FROM segments JOIN spills USING (subject) GROUP BY subject, spill_us;

-- A class's times are those of each of its clients that has no run of its own in the window.
INSERT INTO out_sli BY NAME
WITH each AS (
    SELECT w, metric, "user", client_id, t.* EXCLUDE (subject)
    FROM client_times t JOIN judged_clients USING (subject) WHERE alone
    UNION ALL
    SELECT j.w, j.metric, c."user", c.client_id, t.* EXCLUDE (subject)
    FROM client_times t
        JOIN judged_clients j USING (subject)
        JOIN client_classes c ON j.u = c.u AND j.class = c.class
        ANTI JOIN (SELECT * FROM judged_clients WHERE alone) a ON a.w = j.w AND a.metric = j.metric
            AND a."user" IS NOT DISTINCT FROM c."user" AND a.client_id IS NOT DISTINCT FROM c.client_id
    WHERE NOT j.alone)
SELECT each.* EXCLUDE (metric), o.objective
FROM each JOIN objectives o ON o.level = 'client' AND o.metric = each.metric;
