-- Rows of topics, partitions and clients: sums over atoms, and unions over time.

-- atom_sums: sums of plain atoms and of swept atoms. A grouped run has a set and no atom.
CREATE OR REPLACE TABLE atom_sums AS
SELECT subject, atom, set_number, sum(us)::BIGINT AS us, sum(us * weight)::BIGINT AS series_seen_us,
    sum(total) AS value_seconds, min(value_min) AS value_min, max(value_max) AS value_max,
    coalesce(sum(us) FILTER (positive), 0)::BIGINT AS series_affected_us,
    coalesce(sum(low_us) FILTER (positive), 0)::BIGINT AS series_affected_low_us,
    coalesce(sum(high_us) FILTER (positive), 0)::BIGINT AS series_affected_high_us,
    bool_or(known_wrong) AS known_wrong, bool_or(opens) AS opens, max(spill) FILTER (positive) AS spill
FROM plain JOIN stream_sums USING (stream, w, positive) GROUP BY ALL
UNION ALL BY NAME
SELECT subject, atom, sum(us * obs)::BIGINT AS series_seen_us, sum(value_seconds(value, us)) AS value_seconds,
    f.value_min, f.value_max, sum(us * pos)::BIGINT AS series_affected_us,
    sum(us * low)::BIGINT AS series_affected_low_us, sum(us * high)::BIGINT AS series_affected_high_us, f.known_wrong, f.opens, f.spill
FROM atom_segments JOIN atom_facts f USING (subject, atom) WHERE purpose = 'gold' GROUP BY ALL;

-- counts: number of atoms that are observed, above zero, surely and possibly above zero, per change.
CREATE OR REPLACE TABLE counts AS
WITH edges AS (
    SELECT subject, t, runs * weight AS obs, CASE WHEN positive THEN runs ELSE 0 END AS pos, low, high
    FROM plain JOIN stream_edges USING (stream, w, positive)
    UNION ALL
    SELECT subject, unnest([t, t + us]), step(obs), step(pos), step(low), step(high)
    FROM atom_segments WHERE purpose = 'gold'),
changes AS (  -- adjacent runs change nothing
    SELECT subject, t, sum(obs) AS obs, sum(pos) AS pos, sum(low) AS low, sum(high) AS high
    FROM edges GROUP BY ALL
    HAVING sum(obs) <> 0 OR sum(pos) <> 0 OR sum(low) <> 0 OR sum(high) <> 0)
SELECT subject, t, coalesce(lead(t) OVER along - t, 0) AS us,
    (sum(COLUMNS(* EXCLUDE (subject, t))) OVER along)::BIGINT
FROM changes WINDOW along AS (PARTITION BY subject ORDER BY t);

-- totals: sums over sources of their reports on a topic or client itself.
CREATE OR REPLACE TABLE totals AS
WITH edges AS (
    SELECT purpose, subject, unnest([s, e]) AS t, step(1) AS sources, step(exact(coalesce(value, 0))) AS v
    FROM plain_runs, (VALUES ('gold'), ('spread')) purposes(purpose)
    WHERE atom < 0 AND (purpose = 'gold' OR (spread AND value IS NOT NULL))
    UNION ALL
    SELECT purpose, subject, unnest([t, t + us]), step(obs), step(exact(value * obs))
    FROM atom_segments WHERE atom < 0 AND purpose IN ('gold', 'spread')),
segments AS (
    SELECT purpose, subject, lead(t) OVER along - t AS us, sum(sum(COLUMNS(['sources', 'v']))) OVER along
    FROM edges GROUP BY purpose, subject, t
    WINDOW along AS (PARTITION BY purpose, subject ORDER BY t))
SELECT purpose, subject, us, v::DOUBLE AS v FROM segments WHERE us > 0 AND sources > 0;

CREATE OR REPLACE TABLE subject_spills AS
SELECT subject, unless_open(bool_or(opens), max(spill)) AS before_us,
    sum(unless_open(opens, spill)) AS series_before_us
FROM atom_sums GROUP BY subject;

-- fenced_claims: time in which a fenced source claims a partition, which another broker may lead, and no report is
-- above zero. The partition is not observed then, even if another broker claims it: its topic is not observed either
-- (sli/topics.sql), and a sum over partitions must not have less unknown time than their union.
CREATE OR REPLACE TABLE fenced_claims AS
WITH claimed AS (
    SELECT subject, coalesce(p.atom, g.atom) AS atom, greatest(g.s, f.may) AS s, least(g.e, f.e) AS e
    FROM gauges g JOIN streams n USING (stream) JOIN fenced f ON f.w = g.w AND f.source = n.source
        LEFT JOIN set_partitions p ON p.set_number = g.set_number
    WHERE n.level = 'partition' AND n.metric <> 'kafka.partition.leaderless' AND NOT g.positive
        AND greatest(g.s, f.s) < least(g.e, f.e)),
edges AS (
    SELECT subject, atom, unnest([s, e]) AS t, step(1) AS claims, 0 AS pos FROM claimed
    UNION ALL
    SELECT subject, atom, unnest([s, e]), 0, step(1) FROM gauges SEMI JOIN claimed USING (subject, atom)
    WHERE positive),
running AS (
    SELECT subject, atom, lead(t) OVER along - t AS us, sum(sum(COLUMNS(['claims', 'pos']))) OVER along
    FROM edges GROUP BY subject, atom, t WINDOW along AS (PARTITION BY subject, atom ORDER BY t))
SELECT subject, atom, sum(us)::BIGINT AS fenced_us FROM running WHERE claims > 0 AND pos = 0 GROUP BY ALL;

CREATE OR REPLACE TABLE subject_rows AS
WITH sums AS (
    SELECT subject, min(value_min) AS value_min, max(value_max) AS value_max, bool_or(known_wrong) AS known_wrong,
        sum(COLUMNS(['series_seen_us', 'value_seconds', 'series_affected_us', 'series_affected_low_us',
            'series_affected_high_us']))
    FROM atom_sums GROUP BY subject),
unions AS (
    SELECT subject, max(obs) AS series, max(pos) AS max_concurrent, time_of(us, pos > 0) AS affected_us,
        time_of(us, low > 0) AS affected_low_us, time_of(us, high > 0) AS affected_high_us
    FROM counts WHERE us > 0 GROUP BY subject),
most AS (SELECT subject, max(v) AS max_total FROM totals WHERE purpose = 'gold' GROUP BY subject),
fenced_sums AS (SELECT subject, sum(fenced_us)::BIGINT AS fenced_us FROM fenced_claims GROUP BY subject)
SELECT g.w, metric, topic, user_name, client_id, max_total, before_us, series_before_us,
    sums.* REPLACE (series_affected_high_us + series_before_us AS series_affected_high_us,
        series_seen_us - coalesce(fenced_us, 0) AS series_seen_us),
    unions.* EXCLUDE (subject) REPLACE (affected_high_us + before_us AS affected_high_us)
FROM gold_subjects g JOIN sums USING (subject) JOIN unions USING (subject) JOIN subject_spills USING (subject)
    LEFT JOIN most USING (subject) LEFT JOIN fenced_sums USING (subject);

INSERT INTO out_topics BY NAME
SELECT * EXCLUDE (subject, user_name, client_id) FROM subject_rows WHERE topic IS NOT NULL;

INSERT INTO out_clients BY NAME
SELECT * EXCLUDE (subject, topic) FROM subject_rows
WHERE topic IS NULL AND (series_affected_us > 0 OR value_max <> 0 OR value_min <> 0);

-- A partition above zero was also observed while a grouped run of zeros included it.
INSERT INTO out_partitions BY NAME
WITH single AS (
    SELECT a.*, g.u, g.w, g.metric, g.topic FROM atom_sums a JOIN gold_subjects g USING (subject)
    WHERE atom >= 0 AND (series_affected_us > 0 OR value_max <> 0 OR value_min <> 0)),
folded AS (
    SELECT o.subject, o.atom, sum(f.us) AS us, min(f.value_min) AS value_min, max(f.value_max) AS value_max,
        bool_or(f.known_wrong) AS known_wrong
    FROM single o JOIN set_partitions p ON p.u = o.u AND p.topic = o.topic AND p.atom = o.atom
        JOIN atom_sums f ON f.subject = o.subject AND f.set_number = p.set_number
    WHERE o.us IS NOT NULL  -- a swept atom is not part of grouped runs
    GROUP BY ALL)
SELECT o.w, o.metric, o.topic, o.atom AS partition_id, 1 AS series,
    o.series_seen_us + coalesce(f.us, 0) - coalesce(fenced_us, 0) AS series_seen_us, o.value_seconds,
    least(o.value_min, f.value_min) AS value_min, greatest(o.value_max, f.value_max) AS value_max,
    series_affected_us, series_affected_low_us,
    series_affected_high_us + unless_open(opens, spill) AS series_affected_high_us,
    unless_open(opens, spill) AS series_before_us,
    o.known_wrong OR coalesce(f.known_wrong, false) AS known_wrong
FROM single o LEFT JOIN folded f ON f.subject = o.subject AND f.atom = o.atom
    LEFT JOIN fenced_claims c ON c.subject = o.subject AND c.atom = o.atom;
