-- claims: what is reported of atoms that are swept, each by itself. `purpose` tells apart
--   gold        of doubted atoms, all that is reported;
--   spread      of these, what has a value and is asked for as a distribution;
--   threshold   of metrics with an objective above a value, of every atom;
--   objective   of clients that objectives ask for (see client_claims.sql).
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
    AND above > 0);
