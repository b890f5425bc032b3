-- Gold's topics and clients in Spark SQL, from runs; bench/native_tables.py runs it.
--
-- A subject is a metric of a topic or client in a window. An atom is a partition's number, or, below
-- zero, the part of a source that reports of a topic or client as a whole. Both are hashes of 64 bits
-- where a key would be several texts, because joins of texts take longer. Tables are read several
-- times, so they are written once; views are not.
--
-- Left out: rows that cannot be used and time that is recorded twice. Both are in gold/rejected, which
-- must be empty. Sums above 9e9 can differ in the last bit of a double, because such a decimal of six places
-- is no exact double and Spark and DuckDB convert them in different ways.

CREATE TEMPORARY VIEW sets AS
SELECT DISTINCT cluster, `set` AS members, topic, partitions, clients FROM members;

CREATE TABLE set_atoms USING parquet AS
SELECT cluster, members, topic, CAST(atom AS BIGINT) AS atom
FROM sets LATERAL VIEW explode(partitions) AS atom;

CREATE TEMPORARY VIEW usable AS
WITH placed AS (
    SELECT cluster, source, agent, metric, topic, partition, `user`, client_id, members,
        CAST(series AS BIGINT) AS series, unix_micros(start) AS s, unix_micros(`end`) AS e,
        unix_micros(start) - unix_micros(start) % window_us AS w, value + 0D AS value,
        coalesce(value > 0, false) AS positive,
        IF(coalesce(array_contains(flags, 'previous_positive'), false), 0, lead_us) AS lead_us,
        IF(coalesce(array_contains(flags, 'next_positive'), false), 0, tail_us) AS tail_us,
        coalesce(array_contains(flags, 'known_wrong'), false) AS wrong,
        coalesce(array_contains(flags, 'increase'), false) AS counter,
        NOT array_contains(unmeasured, metric) AS measure,
        array_contains(of_replicas, metric) AS replica,
        CASE WHEN `group` IS NOT NULL THEN 'group'
            WHEN partition IS NOT NULL OR (members IS NOT NULL AND topic IS NOT NULL) THEN 'partition'
            WHEN topic IS NOT NULL THEN 'topic'
            WHEN coalesce(`user`, client_id, members) IS NOT NULL THEN 'client'
            ELSE 'source' END AS level,
        CAST(array_sort(map_entries(labels)) AS STRING) AS labelled, labels['node'] AS node
    FROM runs)
SELECT * EXCEPT (labelled, lead_us, tail_us, agent), w - w % 3600000000 AS h,
    greatest(w, s - lead_us) AS may, greatest(s, e - tail_us) AS sure,
    greatest(0, lead_us - (s - w)) AS spill, positive AND s = w AS opens,
    -1 - shiftrightunsigned(xxhash64(source, labelled), 1) AS part,
    xxhash64(source, IF(level = 'partition', NULL, labelled), agent) AS claimant
FROM placed;

-- Clients that were not zero in a window. The others are idle, and have no rows.
CREATE TABLE busy USING parquet AS
SELECT DISTINCT cluster, w, metric, `user`, client_id FROM usable
WHERE level = 'client' AND measure AND NOT counter AND members IS NULL AND value <> 0;

-- A run of a subject. What is under its min ISR or has no leader is unavailable, a metric that no
-- broker reports: there a partition without a leader and one under its min ISR are two claims.
CREATE TABLE reports USING parquet AS
WITH of_topics AS (
    SELECT u.* EXCEPT (metric, claimant), of_metric AS metric,
        IF(of_metric <> metric AND metric = 'kafka.partition.leaderless', -claimant, claimant) AS claimant,
        IF(level = 'topic', part, CAST(partition AS BIGINT)) AS atom
    FROM usable u LATERAL VIEW explode(
        CASE WHEN level = 'partition' AND (metric = 'kafka.partition.under_min_isr'
                OR (metric = 'kafka.partition.leaderless' AND positive))
            THEN array(metric, 'kafka.partition.unavailable') ELSE array(metric) END) AS of_metric
    WHERE level IN ('partition', 'topic') AND measure AND NOT replica AND NOT counter),
of_clients AS (
    SELECT u.* EXCEPT (`user`, client_id, members), u.`user`, u.client_id FROM usable u
    WHERE level = 'client' AND NOT counter AND members IS NULL
    UNION ALL
    SELECT u.* EXCEPT (`user`, client_id, members), c.`user`, c.client_id
    FROM usable u JOIN (SELECT cluster, members, clients FROM sets) USING (cluster, members)
        LATERAL VIEW inline(clients) c
    WHERE level = 'client' AND NOT counter),
each AS (
    SELECT cluster, source, h, w, metric, topic, NULL AS `user`, NULL AS client_id, members, series, atom,
        claimant, s, e, may, sure, spill, opens, positive, value, wrong
    FROM of_topics
    UNION ALL
    SELECT c.cluster, source, h, c.w, c.metric, NULL, c.`user`, c.client_id, NULL, 1, part, claimant, s,
        e, may, sure, spill, opens, positive, value, wrong
    FROM of_clients c LEFT SEMI JOIN busy b ON b.cluster = c.cluster AND b.w = c.w AND b.metric = c.metric
        AND b.`user` <=> c.`user` AND b.client_id <=> c.client_id)
SELECT xxhash64(cluster, w, metric, topic, `user` IS NULL, `user`, client_id IS NULL, client_id) AS subject, *
FROM each;

CREATE TABLE subjects USING parquet AS
SELECT DISTINCT subject, cluster, h, w, metric, topic, `user` AS user_name, client_id FROM reports;

-- Atoms of which runs may overlap, so that their sums are not sums over time: several claimants name
-- one in the hour, or a lead reaches back over an earlier run above zero.
CREATE TABLE doubted USING parquet AS
WITH named AS (SELECT DISTINCT cluster, h, topic, claimant, atom, members FROM reports),
moved AS (
    SELECT n.cluster, h, n.topic, coalesce(p.atom, n.atom) AS atom
    FROM named n LEFT JOIN set_atoms p ON p.cluster = n.cluster AND p.members = n.members
    GROUP BY ALL HAVING min(claimant) <> max(claimant)),
late AS (SELECT subject, atom, claimant, s, may FROM reports WHERE positive AND may < s)
SELECT subject, atom FROM moved JOIN subjects g
    ON g.cluster = moved.cluster AND g.h = moved.h AND g.topic <=> moved.topic
UNION
SELECT subject, atom FROM late JOIN reports r USING (subject, atom, claimant)
WHERE r.positive AND r.s < late.s AND late.may < r.e;

-- How many atoms of a set are doubted.
CREATE TABLE taken USING parquet AS
SELECT subject, members, count(*) AS taken
FROM doubted JOIN subjects USING (subject) JOIN set_atoms USING (cluster, topic, atom)
GROUP BY subject, members;

-- Runs without doubted atoms; weight is for how many series a run counts.
CREATE TEMPORARY VIEW plain AS
SELECT r.*, r.series - coalesce(t.taken, 0) AS weight
FROM reports r LEFT ANTI JOIN doubted d ON d.subject = r.subject AND d.atom = r.atom
    LEFT JOIN taken t ON t.subject = r.subject AND t.members = r.members
WHERE r.series > coalesce(t.taken, 0);

-- From one edge of a doubted atom's runs to the next: observed once, above zero if any run says so, its
-- value the mean of the runs above zero, else of all.
CREATE TABLE claims USING parquet AS
SELECT r.subject, r.atom, s, e, may, sure, spill, opens, positive, value, wrong
FROM reports r LEFT SEMI JOIN doubted d ON d.subject = r.subject AND d.atom = r.atom
UNION ALL
SELECT r.subject, p.atom, s, e, may, sure, spill, opens, positive, value, wrong
FROM reports r JOIN set_atoms p ON p.cluster = r.cluster AND p.members = r.members
    LEFT SEMI JOIN doubted d ON d.subject = r.subject AND d.atom = p.atom;

CREATE TABLE segments USING parquet AS
WITH cuts AS (
    SELECT subject, atom, t, lead(t) OVER (PARTITION BY subject, atom ORDER BY t) - t AS us
    FROM (SELECT DISTINCT subject, atom, explode(array(s, e, may, sure)) AS t FROM claims)),
held AS (
    SELECT c.subject, c.atom, t, us, coalesce(value, 0D) AS value, positive,
        t >= s AND t < e AS seen, positive AND t >= s AND t < e AS pos,
        positive AND t >= s AND t < sure AS low, positive AND t >= may AND t < e AS high
    FROM cuts c JOIN claims k ON k.subject = c.subject AND k.atom = c.atom AND t >= may AND t < e
    WHERE us > 0),
counted AS (
    SELECT subject, atom, t, us, max(CAST(seen AS BIGINT)) AS obs, max(CAST(pos AS BIGINT)) AS pos,
        max(CAST(low AS BIGINT)) AS low, max(CAST(high AS BIGINT)) AS high,
        count_if(seen) AS runs, count_if(pos) AS runs_above,
        max(value) FILTER (WHERE seen) AS one, max(value) FILTER (WHERE pos) AS one_above,
        sum(CAST(value AS DECIMAL(38, 6))) FILTER (WHERE seen) AS total,
        sum(CAST(value AS DECIMAL(38, 6))) FILTER (WHERE pos) AS total_above
    FROM held GROUP BY subject, atom, t, us)
SELECT subject, atom, t, us, obs, pos, low, high,
    CASE WHEN runs_above > 1 THEN CAST(total_above AS DOUBLE) / runs_above WHEN runs_above = 1 THEN one_above
        WHEN runs > 1 THEN CAST(total AS DOUBLE) / runs WHEN runs = 1 THEN one ELSE 0D END AS value
FROM counted;

CREATE TEMPORARY VIEW atom_sums AS
SELECT subject, atom, members, sum((e - s) * weight) AS series_seen_us,
    sum(CAST(coalesce(value, 0D) * (e - s) / 1e6D AS DECIMAL(38, 6))) AS value_seconds,
    min(value) AS value_min, max(value) AS value_max, sum(IF(positive, e - s, 0)) AS series_affected_us,
    sum(IF(positive, sure - s, 0)) AS series_affected_low_us,
    sum(IF(positive, e - may, 0)) AS series_affected_high_us,
    bool_or(wrong) AS known_wrong, bool_or(opens) AS opens, max(IF(positive, spill, 0)) AS spill
FROM plain GROUP BY subject, atom, members
UNION ALL
SELECT g.subject, g.atom, NULL, series_seen_us, value_seconds, value_min, value_max, series_affected_us,
    series_affected_low_us, series_affected_high_us, known_wrong, opens, spill
FROM (
    SELECT subject, atom, sum(us * obs) AS series_seen_us,
        sum(CAST(value * us / 1e6D AS DECIMAL(38, 6))) AS value_seconds, sum(us * pos) AS series_affected_us,
        sum(us * low) AS series_affected_low_us, sum(us * high) AS series_affected_high_us
    FROM segments GROUP BY subject, atom) g
JOIN (
    SELECT subject, atom, min(value) AS value_min, max(value) AS value_max, bool_or(wrong) AS known_wrong,
        bool_or(opens) AS opens, max(IF(positive, spill, 0)) AS spill
    FROM claims GROUP BY subject, atom) f ON f.subject = g.subject AND f.atom = g.atom;

-- Sums over atoms. Time before the window counts once, and not where a value was above zero from the
-- window's very start.
CREATE TEMPORARY VIEW sums AS
SELECT subject, sum(series_seen_us) AS series_seen_us, sum(value_seconds) AS value_seconds,
    min(value_min) AS value_min, max(value_max) AS value_max, sum(series_affected_us) AS series_affected_us,
    sum(series_affected_low_us) AS series_affected_low_us,
    sum(series_affected_high_us) AS series_affected_high_us, bool_or(known_wrong) AS known_wrong,
    IF(bool_or(opens), 0, max(spill)) AS before_us, sum(IF(opens, 0, spill)) AS series_before_us
FROM atom_sums GROUP BY subject;

-- For how long partitions are claimed by brokers that the controllers had fenced, and by no run above
-- zero. They are not observed then: another broker may lead them.
CREATE TABLE fenced USING parquet AS
SELECT DISTINCT cluster, w, node AS source, may, s, e FROM usable
WHERE metric = 'kafka.cluster.node.fenced' AND positive AND node IS NOT NULL;

CREATE TEMPORARY VIEW fenced_sums AS
WITH claimed AS (
    SELECT r.subject, coalesce(p.atom, r.atom) AS atom, greatest(r.s, f.may) AS s, least(r.e, f.e) AS e
    FROM reports r JOIN fenced f ON f.cluster = r.cluster AND f.w = r.w AND f.source = r.source
        LEFT JOIN set_atoms p ON p.cluster = r.cluster AND p.members = r.members
    WHERE r.topic IS NOT NULL AND (r.atom >= 0 OR r.members IS NOT NULL) AND NOT r.positive
        AND r.metric <> 'kafka.partition.leaderless' AND greatest(r.s, f.s) < least(r.e, f.e)),
edges AS (
    SELECT subject, atom, stack(2, s, 1L, 0L, e, -1L, 0L) AS (t, claims, above) FROM claimed
    UNION ALL
    SELECT r.subject, r.atom, stack(2, r.s, 0L, 1L, r.e, 0L, -1L)
    FROM reports r LEFT SEMI JOIN claimed c ON c.subject = r.subject AND c.atom = r.atom WHERE r.positive),
changes AS (
    SELECT subject, atom, t, sum(claims) AS claims, sum(above) AS above FROM edges
    GROUP BY subject, atom, t),
running AS (
    SELECT subject, lead(t) OVER (PARTITION BY subject, atom ORDER BY t) - t AS us,
        sum(claims) OVER along AS claims, sum(above) OVER along AS above
    FROM changes WINDOW along AS (
        PARTITION BY subject, atom ORDER BY t ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW))
SELECT subject, sum(us) AS fenced_us FROM running WHERE claims > 0 AND above = 0 GROUP BY subject;

-- Unions over time: how many atoms are observed, above zero, surely so and possibly so, and the total of
-- sources' own reports, from one change to the next.
CREATE TEMPORARY VIEW unions AS
WITH counted AS (
    SELECT subject, atom < 0 AS whole, s, e, may, sure, weight, CAST(positive AS BIGINT) AS p,
        coalesce(value, 0D) AS v
    FROM plain),
edges AS (
    SELECT subject, whole, stack(4,
        s, weight, p, p, IF(may < s, 0L, p), 1L, v,
        e, -weight, -p, IF(sure < e, 0L, -p), -p, -1L, -v,
        IF(p = 1 AND sure < e, sure, NULL), 0L, 0L, -1L, 0L, 0L, 0D,
        IF(p = 1 AND may < s, may, NULL), 0L, 0L, 0L, 1L, 0L, 0D) AS (t, obs, pos, low, high, own, v)
    FROM counted
    UNION ALL
    SELECT subject, atom < 0, stack(2,
        t, obs, pos, low, high, obs, value * obs,
        t + us, -obs, -pos, -low, -high, -obs, -value * obs)
    FROM segments),
changes AS (
    SELECT subject, t, sum(obs) AS obs, sum(pos) AS pos, sum(low) AS low, sum(high) AS high,
        sum(own) FILTER (WHERE whole) AS own,
        sum(CAST(v AS DECIMAL(38, 6))) FILTER (WHERE whole) AS v
    FROM edges WHERE t IS NOT NULL GROUP BY subject, t),
running AS (
    SELECT subject, lead(t) OVER (PARTITION BY subject ORDER BY t) - t AS us,
        sum(obs) OVER along AS obs, sum(pos) OVER along AS pos, sum(low) OVER along AS low,
        sum(high) OVER along AS high, sum(own) OVER along AS own, sum(v) OVER along AS v
    FROM changes WINDOW along AS (
        PARTITION BY subject ORDER BY t ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW))
SELECT subject, max(obs) AS series, max(pos) AS max_concurrent, sum(IF(pos > 0, us, 0)) AS affected_us,
    sum(IF(low > 0, us, 0)) AS affected_low_us, sum(IF(high > 0, us, 0)) AS affected_high_us,
    CAST(max(v) FILTER (WHERE own > 0) AS DOUBLE) AS max_total
FROM running WHERE us > 0 GROUP BY subject;

-- Counters: by how much they rose. Where that is not known they are not observed.
CREATE TEMPORARY VIEW counters AS
SELECT cluster, w, metric, topic, IF(level = 'client', `user`, NULL) AS user_name,
    IF(level = 'client', client_id, NULL) AS client_id,
    coalesce(sum(IF(value IS NULL, 0, e - s) * series), 0) AS series_seen_us,
    sum(CAST(value AS DECIMAL(38, 6))) AS increase, max(series) AS series, bool_or(wrong) AS known_wrong
FROM usable WHERE counter AND (level IN ('partition', 'topic') OR (level = 'client' AND members IS NULL))
GROUP BY ALL;

-- What every replica of a partition reports: sums over all of them, without the union.
CREATE TEMPORARY VIEW replicas AS
SELECT cluster, w, metric, topic, sum((e - s) * series) AS series_seen_us,
    sum(CAST(coalesce(value, 0D) * (e - s) / 1e6D AS DECIMAL(38, 6))) AS value_seconds,
    min(value) AS value_min, max(value) AS value_max, sum(IF(positive, e - s, 0)) AS series_affected_us,
    sum(IF(positive, sure - s, 0)) AS series_affected_low_us,
    sum(IF(positive, e - may + spill, 0)) AS series_affected_high_us,
    max(series) AS series, bool_or(wrong) AS known_wrong
FROM usable WHERE measure AND replica AND NOT counter AND level IN ('partition', 'topic')
GROUP BY cluster, w, metric, topic HAVING max(value) > 0;

CREATE TABLE finest USING parquet AS
SELECT cluster, w, metric, topic, user_name, client_id,
    series_seen_us - coalesce(fenced_us, 0) AS series_seen_us,
    value_seconds, value_min, value_max, series_affected_us, series_affected_low_us,
    series_affected_high_us + series_before_us AS series_affected_high_us,
    CAST(NULL AS DECIMAL(38, 6)) AS increase, series, known_wrong, affected_us, affected_low_us,
    affected_high_us + before_us AS affected_high_us, max_concurrent, max_total, before_us, series_before_us
FROM sums JOIN unions USING (subject) JOIN subjects USING (subject)
    LEFT JOIN fenced_sums USING (subject)
WHERE topic IS NOT NULL OR series_affected_us > 0 OR value_max <> 0 OR value_min <> 0
UNION ALL
SELECT cluster, w, metric, topic, user_name, client_id, series_seen_us, NULL, NULL, NULL, NULL, NULL, NULL,
    increase, series, known_wrong, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM counters WHERE topic IS NOT NULL OR increase > 0
UNION ALL
SELECT cluster, w, metric, topic, NULL, NULL, series_seen_us, value_seconds, value_min, value_max, series_affected_us,
    series_affected_low_us, series_affected_high_us, NULL, series, known_wrong, NULL, NULL, NULL, NULL,
    NULL, NULL, NULL
FROM replicas;
