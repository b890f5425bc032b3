-- Clients with objectives. Clients in the same member sets have the same times: they are one class, which is
-- swept once. A client with a run of its own in a window is swept separately.
CREATE OR REPLACE TABLE client_runs AS
SELECT u, w, metric, s, e, user_name, client_id, set_number, positive, value, may, sure, opens, spill,
    part_number AS atom
FROM usable
WHERE level = 'client' AND NOT counter AND measure
    AND metric IN (SELECT metric FROM objectives WHERE level = 'client');

CREATE OR REPLACE TABLE client_classes AS
WITH in_sets AS (
    SELECT u, user_name, client_id, list(set_number ORDER BY set_number) AS sets
    FROM set_clients SEMI JOIN client_runs USING (set_number) GROUP BY ALL)
SELECT *, dense_rank() OVER (ORDER BY u, sets) AS class FROM in_sets;

CREATE OR REPLACE TABLE class_sets AS
SELECT u, class, unnest(sets) AS set_number FROM (SELECT DISTINCT u, class, sets FROM client_classes);

CREATE OR REPLACE TABLE judged_clients AS
WITH own AS (SELECT DISTINCT u, w, metric, user_name, client_id FROM client_runs WHERE set_number IS NULL),
each AS (
    SELECT DISTINCT r.u, r.w, r.metric, c.class, NULL AS user_name, NULL AS client_id, false AS alone
    FROM client_runs r JOIN class_sets c USING (set_number)
    UNION ALL
    SELECT own.u, own.w, own.metric, c.class, own.user_name, own.client_id, true
    FROM own LEFT JOIN client_classes c ON c.u = own.u
        AND c.user_name IS NOT DISTINCT FROM own.user_name AND c.client_id IS NOT DISTINCT FROM own.client_id)
SELECT row_number() OVER () AS subject, * FROM each;

INSERT INTO claims BY NAME
WITH reported AS (
    SELECT j.subject, r.* FROM judged_clients j JOIN class_sets c ON c.u = j.u AND c.class = j.class
        JOIN client_runs r ON r.w = j.w AND r.metric = j.metric AND r.set_number = c.set_number
    UNION ALL
    SELECT j.subject, r.* FROM judged_clients j JOIN client_runs r ON r.w = j.w AND r.metric = j.metric
        AND r.user_name IS NOT DISTINCT FROM j.user_name AND r.client_id IS NOT DISTINCT FROM j.client_id
    WHERE j.alone AND r.set_number IS NULL)
SELECT 'objective' AS purpose, subject, atom, s, e, w, value, positive, may, sure, opens, spill FROM reported;
