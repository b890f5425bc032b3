-- claim_edges: between two values of a series either one may have held (objectives above a value). Where
-- one run follows another there is one edge, the later one's.
CREATE OR REPLACE TABLE claim_edges AS
WITH series AS (
    SELECT subject, atom, s, e, w, positive, lead_us, tail_us, exact(coalesce(value, 0)) AS v,
        lag(e) OVER along = s AS follows, lag(v) OVER along AS earlier_v,
        lag(tail_us) OVER along AS earlier_tail,
        coalesce(lead(s) OVER along = e, false) AS is_followed
    FROM claims WHERE purpose = 'threshold'
    WINDOW along AS (PARTITION BY subject, atom, claimant ORDER BY s, e, v, lead_us, tail_us)),
beside AS (
    SELECT *, CASE WHEN follows THEN earlier_v ELSE 0 END AS before,
        greatest(lead_us, CASE WHEN follows THEN earlier_tail ELSE 0 END) AS lead
    FROM series)
SELECT subject, atom, s, e, greatest(w, s - lead) AS lead_from,
    CASE WHEN is_followed THEN e ELSE greatest(s, e - tail_us) END AS tail_from,
    greatest(v - before, 0) AS rise, greatest(before - v, 0) AS fall,
    greatest(v, 0) AS sink, greatest(-v, 0) AS lift,
    CASE WHEN positive AND v > before THEN greatest(0, lead - (s - w)) ELSE 0 END AS spill
FROM beside;

-- atom_segments: from one edge of an atom's claims to the next: observed once, above zero if any
-- claim says so, its value the mean of the claims above zero, else of all. `least` and `most` bound
-- the value: of the claims that may be above zero each is, or only those that surely are.
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
    SELECT 'threshold', subject, atom, unnest([lead_from, s, tail_from, e]), 0, 0, 0, 0, 0, 0, 0, 0,
        unnest([-fall, fall, -sink, sink]), unnest([rise, -rise, lift, -lift])
    FROM claim_edges),
running AS (
    SELECT purpose, subject, atom, t, lead(t) OVER along - t AS us,
        sum(sum(obs)) OVER along AS obs, sum(sum(pos)) OVER along AS pos,
        sum(sum(low)) OVER along AS low, sum(sum(high)) OVER along AS high,
        sum(sum(ids)) OVER along AS ids, sum(sum(pos_ids)) OVER along AS pos_ids,
        sum(sum(v)) OVER along AS v, sum(sum(pos_v)) OVER along AS pos_v,
        sum(sum(least)) OVER along AS least, sum(sum(most)) OVER along AS most
    FROM edges GROUP BY purpose, subject, atom, t
    WINDOW along AS (PARTITION BY purpose, subject, atom ORDER BY t)),
-- Where one claim alone counts, the sum of numbers is its number, and its value is not rounded.
valued AS (
    SELECT r.*, CASE WHEN pos > 1 THEN pos_v::DOUBLE / pos::DOUBLE
            WHEN pos = 0 AND obs > 1 THEN r.v::DOUBLE / obs::DOUBLE
            ELSE coalesce(n.value, 0) END AS value
    FROM running r LEFT JOIN numbered n
        ON n.id = CASE WHEN pos = 1 THEN pos_ids WHEN pos = 0 AND obs = 1 THEN ids END
    WHERE us > 0)
SELECT purpose, subject, atom, t, us, least(obs, 1)::BIGINT AS obs, least(pos, 1)::BIGINT AS pos,
    least(low, 1)::BIGINT AS low, least(high, 1)::BIGINT AS high, value,
    least(least::DOUBLE / greatest(high, 1)::DOUBLE, value) AS least,
    greatest(most::DOUBLE / greatest(low, 1)::DOUBLE, value) AS most
FROM valued;

-- atom_facts: what needs no sweep of an atom.
CREATE OR REPLACE TABLE atom_facts AS
SELECT subject, atom, min(value) AS min, max(value) AS max, bool_or(wrong) AS known_wrong,
    bool_or(opens) AS opens, max(spill) FILTER (positive) AS spill
FROM claims WHERE purpose = 'gold' GROUP BY ALL;
