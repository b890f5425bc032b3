-- claim_edges: edges of claims on values, for objectives with a threshold.
CREATE OR REPLACE TABLE claim_edges AS
WITH valued AS (
    SELECT subject AS place, atom AS member, claimant, s, e, w, positive, lead_us, tail_us,
        exact(coalesce(value, 0)) AS v
    FROM claims WHERE purpose = 'threshold')
FROM with_edges(valued);

-- atom_segments: from one edge of an atom's claims to the next. The atom is observed once, and above zero if one
-- claim is. Its value is the mean of the claims above zero, otherwise of all claims. `least` and `most` bound the
-- value: all claims that may be above zero are, or only those that surely are.
CREATE OR REPLACE TABLE atom_segments AS
WITH numbered AS (
    SELECT row_number() OVER () AS id, positive::INTEGER AS p, exact(coalesce(value, 0)) AS v, * FROM claims),
edges AS (
    SELECT purpose, subject, atom, unnest([s, e, sure, may]) AS t, unnest([1, -1, 0, 0]) AS obs,
        unnest([p, -p, 0, 0]) AS pos, unnest([p, 0, -p, 0]) AS low, unnest([0, -p, 0, p]) AS high,
        unnest([id, -id, 0, 0]) AS ids, unnest([p * id, -p * id, 0, 0]) AS pos_ids,
        unnest([v, -v, 0, 0]) AS v, unnest([p * v, -p * v, 0, 0]) AS pos_v,
        unnest([v, -v, 0, 0]) AS least, unnest([v, -v, 0, 0]) AS most
    FROM numbered
    UNION ALL
    SELECT 'threshold', place, member, unnest([lead_from, s, tail_from, e]), 0, 0, 0, 0, 0, 0, 0, 0,
        unnest([-fall, fall, -sink, sink]), unnest([rise, -rise, lift, -lift])
    FROM claim_edges),
running AS (
    SELECT purpose, subject, atom, t, lead(t) OVER along - t AS us,
        sum(sum(COLUMNS(* EXCLUDE (purpose, subject, atom, t)))) OVER along
    FROM edges GROUP BY purpose, subject, atom, t
    WINDOW along AS (PARTITION BY purpose, subject, atom ORDER BY t)),
-- If only one claim counts, the sum of numbers is its number, and its value is not rounded.
valued AS (
    SELECT r.*, CASE WHEN pos > 1 THEN pos_v::DOUBLE / pos::DOUBLE
            WHEN pos = 0 AND obs > 1 THEN r.v::DOUBLE / obs::DOUBLE
            ELSE coalesce(n.value, 0) END AS value
    FROM running r LEFT JOIN numbered n
        ON n.id = CASE WHEN pos = 1 THEN pos_ids WHEN pos = 0 AND obs = 1 THEN ids END
    WHERE us > 0)
SELECT purpose, subject, atom, t, us, least(COLUMNS(['obs', 'pos', 'low', 'high']), 1)::BIGINT, value,
    least(least::DOUBLE / greatest(high, 1)::DOUBLE, value) AS least,
    greatest(most::DOUBLE / greatest(low, 1)::DOUBLE, value) AS most
FROM valued;

-- atom_facts: figures of an atom without a sweep.
CREATE OR REPLACE TABLE atom_facts AS
SELECT subject, atom, min(value) AS value_min, max(value) AS value_max, bool_or(wrong) AS known_wrong,
    bool_or(opens) AS opens, max(spill) FILTER (positive) AS spill
FROM claims WHERE purpose = 'gold' GROUP BY ALL;
