-- doubted: atoms of which runs may overlap, so that their sums are not sums over time: several
-- claimants name one, or a lead reaches back over an earlier run above zero. All else is summed
-- without a sweep. To doubt too much costs time and changes no row.
CREATE OR REPLACE TABLE doubted AS
WITH said AS (SELECT DISTINCT subject, claimant, set_number, atom FROM gauges),
named AS (
    SELECT subject, claimant, coalesce(p.atom, said.atom) AS atom
    FROM said LEFT JOIN set_partitions p USING (set_number))
SELECT subject, atom FROM named GROUP BY ALL HAVING min(claimant) <> max(claimant) OR doubt_all()
UNION
SELECT late.subject, late.atom
FROM (SELECT subject, atom, claimant, s, may FROM gauges WHERE positive AND may < s) late
    JOIN (SELECT subject, atom, claimant, s, e FROM gauges WHERE positive) early
    ON late.subject = early.subject AND late.atom = early.atom AND late.claimant = early.claimant
        AND early.s < late.s AND late.may < early.e;

CREATE OR REPLACE TABLE doubted_sets AS
SELECT g.subject, p.set_number, count(*) AS taken
FROM doubted d JOIN gold_subjects g USING (subject) JOIN set_partitions p ON g.u = p.u
    AND g.topic = p.topic AND d.atom = p.atom
GROUP BY ALL;

-- plain: gauges without doubted atoms; weight is for how many series a row stands.
CREATE OR REPLACE TABLE plain AS
SELECT g.* EXCLUDE (lead_us, tail_us, series, claimant), g.series::BIGINT AS weight
FROM gauges g ANTI JOIN doubted d ON g.subject = d.subject AND g.atom = d.atom WHERE set_number IS NULL
UNION ALL
SELECT g.* EXCLUDE (lead_us, tail_us, series, claimant), g.series - coalesce(taken, 0) AS weight
FROM gauges g LEFT JOIN doubted_sets d USING (subject, set_number)
    WHERE set_number IS NOT NULL AND g.series > coalesce(taken, 0);
