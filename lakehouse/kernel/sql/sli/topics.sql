-- Topics: bad while a partition is above zero, or the brokers' total is above the threshold;
-- good while none is, every partition is claimed by a leader that is not fenced, and all were read who may
-- report it.

-- expected_partitions: how many partitions a topic has: as reported in the window, else in the hour, else,
-- where no agent of the cluster reports the topology, as many as the highest one that is claimed implies.
CREATE OR REPLACE TABLE expected_partitions AS
WITH reported AS (
    SELECT w, h, topic, max(value) AS in_window, max(max(value)) OVER (PARTITION BY h, topic) AS in_hour
    FROM described WHERE metric = 'kafka.topic.partitions' AND level = 'topic' GROUP BY w, h, topic),
claimed AS (
    SELECT w, r.topic, max(coalesce(list_max(k.partitions), partition) + 1)::DOUBLE AS partitions
    FROM stream_sums JOIN streams r USING (stream) LEFT JOIN known_sets k USING (set_number)
    WHERE level = 'partition' AND hour_of(w) NOT IN (SELECT h FROM topology_hours)
    GROUP BY ALL)
SELECT w, topic, coalesce(r.in_window, t.in_hour, c.partitions) AS partitions
FROM (SELECT DISTINCT w, h, topic FROM gold_subjects WHERE topic IS NOT NULL)
    LEFT JOIN (SELECT w, topic, in_window FROM reported) r USING (w, topic)
    LEFT JOIN (SELECT DISTINCT h, topic, in_hour FROM reported) t USING (h, topic)
    LEFT JOIN claimed c USING (w, topic);

-- judged_topics: the conditions of objectives on a topic in a window; `leaders` is its metric of under
-- min ISR, which the leader of each partition reports.
CREATE OR REPLACE TABLE judged_topics AS
SELECT row_number() OVER () AS sli, g.subject, l.subject AS leaders, g.w, g.h, g.topic, g.metric, o.threshold
FROM gold_subjects g
    JOIN (SELECT DISTINCT metric, threshold FROM objectives WHERE level = 'topic') o USING (metric)
    LEFT JOIN gold_subjects l
        ON l.w = g.w AND l.topic = g.topic AND l.metric = 'kafka.partition.under_min_isr'
WHERE g.topic IS NOT NULL;

CREATE OR REPLACE TABLE topic_times AS
WITH edges AS (
    SELECT sli, unnest([t, t + us]) AS t,
        step(obs) AS obs, step(pos) AS pos, step(low) AS low, step(high) AS high
    FROM judged_topics JOIN counts USING (subject) WHERE threshold = 0 AND us > 0
    UNION ALL BY NAME
    SELECT sli, unnest([t, t + us]) AS t, step(obs) AS obs,
        step(exact(value * obs)) AS v, step(exact(least)) AS v_least, step(exact(most)) AS v_most
    FROM judged_topics JOIN atom_segments USING (subject) WHERE threshold > 0 AND purpose = 'threshold'
    UNION ALL BY NAME  -- a partition without a leader is claimed by no broker, and seen to be unavailable
    SELECT sli, unnest([t, t + us]) AS t, step(obs) AS claimed
    FROM judged_topics j JOIN counts c
        ON c.subject = CASE WHEN j.metric = 'kafka.partition.unavailable' THEN j.subject ELSE j.leaders END
    WHERE us > 0
    UNION ALL BY NAME
    SELECT sli, unnest([greatest(g.s, x.s), least(g.e, x.e)]) AS t, step(1) AS unread
    FROM judged_topics j
        JOIN gauges g ON g.subject = j.leaders
        JOIN streams n USING (stream)
        JOIN unread x ON x.w = j.w AND x.source = n.source AND x.metric = j.metric
    WHERE x.accounted AND greatest(g.s, x.s) < least(g.e, x.e)
    UNION ALL BY NAME
    SELECT sli, unnest([greatest(g.s, f.may), least(g.e, f.e)]) AS t, step(1) AS unread
    FROM judged_topics j
        JOIN gauges g ON g.subject = j.leaders
        JOIN streams n USING (stream)
        JOIN fenced f ON f.w = j.w AND f.source = n.source
    WHERE greatest(g.s, f.s) < least(g.e, f.e)),
running AS (
    SELECT sli, t, lead(t) OVER along - t AS us,
        sum(sum(obs)) OVER along AS obs, sum(sum(pos)) OVER along AS pos,
        sum(sum(low)) OVER along AS low, sum(sum(high)) OVER along AS high,
        (sum(sum(v)) OVER along)::DOUBLE AS v,
        (sum(sum(v_least)) OVER along)::DOUBLE AS v_least,
        (sum(sum(v_most)) OVER along)::DOUBLE AS v_most,
        sum(sum(claimed)) OVER along AS claimed, sum(sum(unread)) OVER along AS unread
    FROM edges GROUP BY sli, t
    WINDOW along AS (PARTITION BY sli ORDER BY t)),
segments AS (
    SELECT j.*, t, us,
        coalesce(CASE WHEN threshold = 0 THEN pos > 0 ELSE v > threshold END, false) AS bad,
        coalesce(CASE WHEN threshold = 0 THEN low > 0 ELSE v_least > threshold END, false) AS surely,
        coalesce(CASE WHEN threshold = 0 THEN high > 0 ELSE v_most > threshold END, false) AS possibly,
        obs > 0 AND claimed >= e.partitions AND coalesce(unread, 0) = 0 AS seen
    FROM running
        JOIN judged_topics j USING (sli)
        LEFT JOIN expected_partitions e ON e.w = j.w AND e.topic = j.topic
    WHERE us > 0),
times AS (
    SELECT sli, subject, w, h, topic, metric, threshold,
        coalesce(sum(us) FILTER (seen AND NOT bad), 0) AS good_us,
        coalesce(sum(us) FILTER (bad), 0) AS bad_us,
        coalesce(sum(us) FILTER (surely), 0) AS bad_low_us,
        coalesce(sum(us) FILTER (possibly), 0) AS bad_high_us,
        coalesce(sum(us) FILTER (seen), 0) AS seen_us,
        -- A rise reaches over the cut where the total may have been above it at the cut already.
        bool_or(t = w AND possibly AND NOT bad) AS rises
    FROM segments GROUP BY ALL),
rises AS (SELECT subject, max(spill) AS spill FROM claim_edges GROUP BY subject)
SELECT t.* EXCLUDE (rises),
    CASE WHEN threshold = 0 THEN spill_us WHEN rises THEN spill ELSE 0 END AS spill_us
FROM times t LEFT JOIN subject_spills USING (subject) LEFT JOIN rises USING (subject);

INSERT INTO out_sli BY NAME
SELECT w, o.objective, t.topic, good_us, bad_us, bad_low_us, t.bad_high_us + spill_us AS bad_high_us,
    seen_us, spill_us
FROM topic_times t
    JOIN objectives o ON o.level = 'topic' AND o.metric = t.metric AND o.threshold = t.threshold
    LEFT JOIN asked_for a ON a.objective = o.objective AND a.h = t.h AND a.topic = t.topic
WHERE (o.conditions = 0 OR a.topic IS NOT NULL OR t.bad_high_us + spill_us > 0)
    AND greatest(good_us, bad_us, bad_low_us, t.bad_high_us + spill_us) > 0;
