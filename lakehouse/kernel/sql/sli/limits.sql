-- Sources and groups: bad while one of their gauges breaks the objective's threshold. Good while no gauge does, the
-- number of known series is the greatest of the window and, for a group, all brokers are scraped. Idle is zero.

-- limited: runs of gauges with an objective, without series that its label patterns exclude (a missing label is
-- empty). Each series is compared separately: `v` is 1 if it breaks the threshold, and the sum must not exceed 0.
-- If high values of a group's topic are bad, the values of its brokers are added up, because each broker reports
-- the partitions that it leads. Bounds of a group are two gauges: the better bound breaks the threshold surely, the
-- worse bound possibly. They are not added up, because time passes on all brokers at once.
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
