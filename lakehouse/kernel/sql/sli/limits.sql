-- Sources and groups: bad while a gauge of theirs breaks the objective's threshold, good while none does, as
-- many series are known as ever in the window and, of a group, every broker is read. What is idle is zero.

-- limited: runs of gauges with an objective, but of series that its patterns of labels do not choose; a label
-- that is absent is empty to them. Each series is compared by itself, so `v` is 1 where it breaks the threshold
-- and the sum must not be above 0; but what several brokers report of a group's topic, each of what it leads,
-- is added up where too much of it is bad. Bounds of a group are two gauges, .low and .high: the better one
-- breaks it surely, the worse one possibly. They are not added up: time passes on all brokers at once.
CREATE OR REPLACE TABLE limited AS
WITH named AS (
    SELECT stream, level, metric, '' AS bound FROM streams WHERE level IN ('source', 'group') AND NOT counter
    UNION ALL
    SELECT stream, level, base, side FROM streams WHERE level = 'group' AND NOT counter AND side <> ''),
unchosen AS (
    SELECT stream, objective
    FROM streams JOIN objectives USING (level, metric) JOIN label_patterns p USING (objective)
    WHERE regexp_full_match(coalesce(labels[label], ''), regex)::INTEGER = excluding),
runs AS (
    SELECT u.*, objective, bound, op, threshold, starts_with(op, 'l') AS most_is_bad,
        o.level = 'group' AS grouped, grouped AND topic IS NOT NULL AND partition_id IS NULL AND members IS NULL
            AND most_is_bad AND bound = '' AND NOT breaks(op, threshold, 0) AS summed
    FROM usable u JOIN named n USING (stream) JOIN objectives o ON o.level = n.level AND o.metric = n.metric
        ANTI JOIN unchosen x ON x.stream = n.stream AND x.objective = o.objective)
SELECT {w: w, objective: objective, source: CASE WHEN NOT grouped THEN source END,
        consumer_group: CASE WHEN grouped THEN consumer_group END} AS place,
    {topic: topic, partition_id: partition_id, members: members, labels: labels, bound: bound} AS member,
    claimant, series, s, e, w, lead_us, tail_us, bound = '' OR value IS NOT NULL AS known,
    bound <> CASE WHEN most_is_bad THEN 'high' ELSE 'low' END AS better,
    bound <> CASE WHEN most_is_bad THEN 'low' ELSE 'high' END AS worse,
    CASE WHEN summed THEN op ELSE 'lte' END AS op, CASE WHEN summed THEN threshold ELSE 0 END AS threshold,
    exact(CASE WHEN NOT known THEN 0 WHEN summed THEN coalesce(value, 0)
        ELSE breaks(runs.op, runs.threshold, coalesce(value, 0))::INTEGER END) AS v,
    v > 0 AS positive
FROM runs;

CREATE OR REPLACE TABLE limit_edges AS FROM with_edges(limited);

INSERT INTO out_sli BY NAME
WITH edges AS (
    SELECT place, member, series, op, threshold, better, worse,
        unnest([s, e, lead_from, s, tail_from, e]) AS t, unnest([1, -1, 0, 0, 0, 0]) AS runs,
        unnest([n, -n, 0, 0, 0, 0]) AS unknown, unnest([v, -v, 0, 0, 0, 0]) AS v,
        unnest([v, -v, -fall, fall, -sink, sink]) AS least, unnest([v, -v, rise, -rise, lift, -lift]) AS most
    FROM (SELECT *, (NOT known)::INTEGER AS n FROM limit_edges)),
running AS (
    SELECT place, series, op, threshold, better, worse, t, lead(t) OVER along - t AS us,
        sum(sum(COLUMNS(['runs', 'unknown', 'v', 'least', 'most']))) OVER along
    FROM edges GROUP BY place, member, series, op, threshold, better, worse, t
    WINDOW along AS (PARTITION BY place, member, series ORDER BY t)),
judged AS (
    SELECT *, better AND runs > 0 AND breaks(op, threshold, v) AS broken,
        better AND runs > 0 AND breaks(op, threshold, least) AS surely,
        worse AND breaks(op, threshold, most) AS possibly
    FROM running WHERE us > 0),
steps AS (
    SELECT place, unnest([t, t + us]) AS t, step(broken::INTEGER) AS bad, step(surely::INTEGER) AS low,
        step(possibly::INTEGER) AS high
    FROM judged WHERE broken OR surely OR possibly
    UNION ALL BY NAME
    SELECT place, unnest([t, t + us]) AS t, step(series) AS members, step((unknown > 0)::INTEGER) AS unknown
    FROM judged WHERE worse AND runs > 0
    UNION ALL BY NAME
    SELECT place, unnest([x.s, x.e]) AS t, step(1) AS unknown
    FROM (SELECT DISTINCT place FROM limited WHERE place.consumer_group IS NOT NULL)
        JOIN objectives o ON o.objective = place.objective
        JOIN unread x ON x.w = place.w AND x.metric = o.metric
    WHERE x.live AND reports_partitions(x.source)
    UNION ALL BY NAME
    SELECT place, s AS t, spill FROM limit_edges WHERE worse)
SELECT unnest(place), * EXCLUDE (place) FROM timed(steps) WHERE greatest(good_us, bad_us, bad_high_us) > 0;
