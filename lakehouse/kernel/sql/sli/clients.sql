-- Clients: bad while at least one broker throttles them. Good while no broker does, the number of brokers that
-- report (or are down) is the greatest of the window, and all other brokers are scraped, because a broker that is
-- not scraped may throttle the client.
CREATE OR REPLACE TABLE client_times AS
WITH unread_metrics AS (
    SELECT DISTINCT x.w, x.metric, x.s, x.e
    FROM unread x JOIN objectives o ON o.level = 'client' AND o.metric = x.metric
    WHERE x.live
        AND (role_of(source) = 'broker' OR (o.by_controllers AND role_of(source) = 'controller'))),
steps AS (
    SELECT subject AS place, unnest([t, t + us]) AS t, step(obs) AS members, step(pos) AS bad,
        step(low) AS low, step(high) AS high
    FROM atom_segments WHERE purpose = 'objective'
    UNION ALL BY NAME
    SELECT subject AS place, unnest([s, e]) AS t, step(1) AS unknown
    FROM judged_clients JOIN unread_metrics USING (w, metric)
    UNION ALL BY NAME
    SELECT subject AS place, unnest([s, e]) AS t, step(1) AS down
    FROM judged_clients JOIN read_with USING (metric) JOIN attempts USING (w, family)
    WHERE outcome = 'down'
    UNION ALL BY NAME
    SELECT subject AS place, s AS t, spill FROM claims WHERE purpose = 'objective' AND positive)
SELECT place AS subject, * EXCLUDE (place) FROM timed(steps);

-- Each client without a run of its own in the window has the times of its class.
INSERT INTO out_sli BY NAME
WITH each AS (
    SELECT w, metric, user_name, client_id, t.* EXCLUDE (subject)
    FROM client_times t JOIN judged_clients USING (subject) WHERE alone
    UNION ALL
    SELECT j.w, j.metric, c.user_name, c.client_id, t.* EXCLUDE (subject)
    FROM client_times t JOIN judged_clients j USING (subject)
        JOIN client_classes c ON j.u = c.u AND j.class = c.class
        ANTI JOIN (SELECT * FROM judged_clients WHERE alone) a ON a.w = j.w AND a.metric = j.metric
            AND a.user_name IS NOT DISTINCT FROM c.user_name AND a.client_id IS NOT DISTINCT FROM c.client_id
    WHERE NOT j.alone)
SELECT each.* EXCLUDE (metric), o.objective
FROM each JOIN objectives o ON o.level = 'client' AND o.metric = each.metric;
