-- doubted: atoms whose runs may overlap, so sums of runs are not sums over time. Several claimants report such an
-- atom, or a lead reaches back over an earlier run above zero. All other atoms are summed without a sweep. Too many
-- doubted atoms cost time and change no row.
CREATE OR REPLACE TABLE doubted AS
WITH moved AS (  -- in any window of this part: most atoms have one claimant, and need no check per window
    SELECT g.u, g.topic, coalesce(p.atom, o.atom) AS atom
    FROM (SELECT DISTINCT stream, claimant, atom, set_number FROM reports) o
        JOIN streams g USING (stream) LEFT JOIN set_partitions p ON p.set_number = o.set_number
    GROUP BY ALL HAVING min(o.claimant) <> max(o.claimant) OR doubt_all()),
of_sets AS (
    SELECT subject, p.atom, claimant FROM moved
        JOIN set_partitions p USING (u, topic, atom) JOIN reports USING (set_number)),
asked AS (
    SELECT subject, atom FROM moved JOIN gold_subjects g
        ON g.u = moved.u AND g.topic IS NOT DISTINCT FROM moved.topic),
own AS (SELECT subject, atom, claimant FROM reports SEMI JOIN asked USING (subject, atom)),
late AS (SELECT subject, atom, claimant, s, may FROM gauges WHERE positive AND may < s)
SELECT subject, atom FROM (FROM of_sets UNION ALL FROM own) GROUP BY ALL
HAVING min(claimant) <> max(claimant) OR doubt_all()
UNION
SELECT subject, atom
FROM late JOIN (
    SELECT subject, atom, claimant, r.s, r.e
    FROM usable_runs r JOIN (FROM reports SEMI JOIN late USING (subject, atom, claimant))
        USING (stream, w, positive)
    WHERE positive) early USING (subject, atom, claimant)
WHERE early.s < late.s AND late.may < early.e;

CREATE OR REPLACE TABLE doubted_sets AS
SELECT g.subject, p.set_number, count(*) AS taken
FROM doubted d JOIN gold_subjects g USING (subject) JOIN set_partitions p ON g.u = p.u
    AND g.topic = p.topic AND d.atom = p.atom
GROUP BY ALL;

-- plain: reports without doubted atoms. `weight` is the number of series of a run.
CREATE OR REPLACE TABLE plain AS
SELECT * EXCLUDE (series, claimant), series::BIGINT AS weight
FROM reports ANTI JOIN doubted USING (subject, atom) WHERE set_number IS NULL
UNION ALL
SELECT reports.* EXCLUDE (series, claimant), series - coalesce(taken, 0) AS weight
FROM reports LEFT JOIN doubted_sets USING (subject, set_number)
WHERE set_number IS NOT NULL AND series > coalesce(taken, 0);

CREATE OR REPLACE VIEW plain_runs AS SELECT * FROM usable_runs JOIN plain USING (stream, w, positive);
