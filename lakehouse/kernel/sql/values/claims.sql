-- claims: reports of swept atoms. `purpose` is
--   gold        all reports of atoms with overlapping runs (doubted)
--   spread      the same reports, if they have a value and the metric needs a distribution
--   threshold   all reports of metrics that have an objective with a threshold
--   objective   reports of clients with objectives (see client_claims.sql)
CREATE OR REPLACE TABLE claims AS
WITH each AS (
    SELECT g.* FROM gauges g SEMI JOIN doubted d ON g.subject = d.subject AND g.atom = d.atom
        WHERE set_number IS NULL
    UNION ALL
    SELECT g.* REPLACE (d.atom AS atom) FROM gauges g JOIN doubted d ON g.subject = d.subject
        JOIN set_partitions p ON p.set_number = g.set_number AND p.atom = d.atom)
SELECT 'gold' AS purpose, * FROM each
UNION ALL
SELECT 'spread', each.* FROM each JOIN gold_subjects USING (subject)
WHERE spread AND value IS NOT NULL AND topic <> '__other__'
UNION ALL
SELECT 'threshold', g.* REPLACE (coalesce(p.atom, g.atom) AS atom)
FROM gauges g JOIN gold_subjects t USING (subject) LEFT JOIN set_partitions p USING (set_number)
WHERE t.topic IS NOT NULL AND t.metric IN (SELECT metric FROM objectives WHERE level = 'topic'
    AND threshold > 0);
