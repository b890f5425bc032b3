-- Topics: bad while a partition is above zero, or the brokers' total is above the threshold. Good while neither
-- is, a leader that is not fenced claims every partition, and all sources that may report it were scraped.

-- expected_partitions: number of partitions of a topic, as reported in the window, otherwise in the hour. If no
-- agent of the cluster reports the topology, it is the highest claimed partition + 1.
CREATE OR REPLACE TABLE expected_partitions AS
WITH reported AS (
    SELECT w, h, topic, max(value) AS in_window, max(max(value)) OVER (PARTITION BY h, topic) AS in_hour
    FROM described WHERE metric = 'kafka.topic.partitions' AND level = 'topic' GROUP BY w, h, topic),
claimed AS (
    SELECT w, r.topic, max(coalesce(list_max(k.partitions), partition_id) + 1)::DOUBLE AS partitions
    FROM stream_sums JOIN streams r USING (stream) LEFT JOIN known_sets k USING (set_number)
    WHERE level = 'partition' AND hour_of(w) NOT IN (SELECT h FROM topology_hours)
    GROUP BY ALL)
SELECT w, topic, coalesce(r.in_window, t.in_hour, c.partitions) AS partitions
FROM (SELECT DISTINCT w, h, topic FROM gold_subjects WHERE topic IS NOT NULL)
    LEFT JOIN (SELECT w, topic, in_window FROM reported) r USING (w, topic)
    LEFT JOIN (SELECT DISTINCT h, topic, in_hour FROM reported) t USING (h, topic)
    LEFT JOIN claimed c USING (w, topic);

-- judged_topics: the conditions of objectives on a topic in a window. `leaders` is its subject for the metric
-- under_min_isr, which the leader of each partition reports.
CREATE OR REPLACE TABLE judged_topics AS
SELECT row_number() OVER () AS sli, g.subject, l.subject AS leaders, g.w, g.h, g.topic, g.metric, o.threshold
FROM gold_subjects g
    JOIN (SELECT DISTINCT metric, threshold FROM objectives WHERE level = 'topic') o USING (metric)
    LEFT JOIN gold_subjects l
        ON l.w = g.w AND l.topic = g.topic AND l.metric = 'kafka.partition.under_min_isr'
WHERE g.topic IS NOT NULL;

INSERT INTO out_sli BY NAME
WITH edges AS (
    SELECT sli, unnest([t, t + us]) AS t,
        step(obs) AS obs, step(pos) AS pos, step(low) AS low, step(high) AS high
    FROM judged_topics JOIN counts USING (subject) WHERE threshold = 0 AND us > 0
    UNION ALL BY NAME
    SELECT sli, unnest([t, t + us]) AS t, step(obs) AS obs,
        step(exact(value * obs)) AS v, step(exact(least)) AS v_least, step(exact(most)) AS v_most
    FROM judged_topics JOIN atom_segments USING (subject) WHERE threshold > 0 AND purpose = 'threshold'
    UNION ALL BY NAME  -- no broker claims an offline partition, but it is observed as unavailable
    SELECT sli, unnest([t, t + us]) AS t, step(obs) AS claimed
    FROM judged_topics j JOIN counts c
        ON c.subject = CASE WHEN j.metric = 'kafka.partition.unavailable' THEN j.subject ELSE j.leaders END
    WHERE us > 0
    UNION ALL BY NAME
    SELECT sli, unnest([greatest(g.s, x.s), least(g.e, x.e)]) AS t, step(1) AS unread
    FROM judged_topics j JOIN gauges g ON g.subject = j.leaders JOIN streams n USING (stream)
        JOIN unread x ON x.w = j.w AND x.source = n.source AND x.metric = j.metric
    WHERE x.accounted AND greatest(g.s, x.s) < least(g.e, x.e)
    UNION ALL BY NAME
    SELECT sli, unnest([greatest(g.s, f.may), least(g.e, f.e)]) AS t, step(1) AS unread
    FROM judged_topics j JOIN gauges g ON g.subject = j.leaders JOIN streams n USING (stream)
        JOIN fenced f ON f.w = j.w AND f.source = n.source
    WHERE greatest(g.s, f.s) < least(g.e, f.e)),
running AS (
    SELECT sli, t, lead(t) OVER along - t AS us, sum(sum(COLUMNS(* EXCLUDE (sli, t)))) OVER along
    FROM edges GROUP BY sli, t WINDOW along AS (PARTITION BY sli ORDER BY t)),
rises AS (SELECT place AS subject, max(spill) AS rise_us FROM claim_edges GROUP BY place),
segments AS (
    SELECT sli AS place, t, us, CASE WHEN threshold = 0 THEN before_us ELSE rise_us END AS spill,
        coalesce(CASE WHEN threshold = 0 THEN pos > 0 ELSE v > threshold END, false) AS bad,
        coalesce(CASE WHEN threshold = 0 THEN low > 0 ELSE v_least > threshold END, false) AS low,
        coalesce(CASE WHEN threshold = 0 THEN high > 0 ELSE v_most > threshold END, false) AS high,
        obs > 0 AND claimed >= e.partitions AND coalesce(unread, 0) = 0 AS seen
    FROM running JOIN judged_topics j USING (sli)
        LEFT JOIN expected_partitions e ON e.w = j.w AND e.topic = j.topic
        LEFT JOIN subject_spills USING (subject) LEFT JOIN rises USING (subject)
    WHERE us > 0)
SELECT j.w, o.objective, j.topic, times.* EXCLUDE (place)
FROM times_of(segments) times JOIN judged_topics j ON j.sli = times.place
    JOIN objectives o ON o.level = 'topic' AND o.metric = j.metric AND o.threshold = j.threshold
    LEFT JOIN asked_for a ON a.objective = o.objective AND a.h = j.h AND a.topic = j.topic
WHERE (o.conditions = 0 OR a.topic IS NOT NULL OR bad_high_us > 0)
    AND greatest(good_us, bad_us, bad_low_us, bad_high_us) > 0;
