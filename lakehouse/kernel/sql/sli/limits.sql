-- Sources and groups: bad while a gauge of theirs breaks the objective's threshold, good while none does, as
-- many series are known as ever in the window and, of a group, every broker is read. What is idle is zero.

-- limited: runs of gauges with an objective. Each series is compared by itself, so `y` is 1 where it breaks
-- the threshold and the sum must not be above 0; but what several brokers report of a group's topic, each
-- of what it leads, is added up where too much of it is bad. Bounds of a group are two gauges, .low and
-- .high: the better one breaks it surely, the worse one possibly. They are not added up: time passes on
-- all brokers at once.
CREATE OR REPLACE TABLE limited AS
WITH named AS (
    SELECT stream, level, metric, '' AS bound FROM streams WHERE level IN ('source', 'group') AND NOT counter
    UNION ALL
    SELECT stream, level, regexp_replace(metric, '[.](low|high)$', ''), split_part(metric, '.', -1)
    FROM streams WHERE level = 'group' AND NOT counter AND regexp_matches(metric, '[.](low|high)$')),
runs AS (
    SELECT u.*, objective, bound, op, threshold, starts_with(op, 'l') AS most_is_bad,
        CASE WHEN o.level = 'group' THEN u."group" ELSE u.source END AS subject, o.level AS kind,
        o.level = 'group' AND topic IS NOT NULL AND partition IS NULL AND members IS NULL AND most_is_bad
            AND bound = '' AND NOT breaks(op, threshold, 0) AS summed
    FROM usable u JOIN named n USING (stream) JOIN objectives o ON o.level = n.level AND o.metric = n.metric)
SELECT w, objective, kind, subject, series, s, e, lead_us, tail_us, claimant,
    {topic: topic, partition: partition, members: members, labels: labels, bound: bound} AS member,
    bound = '' OR value IS NOT NULL AS known,
    bound <> CASE WHEN most_is_bad THEN 'high' ELSE 'low' END AS better,
    bound <> CASE WHEN most_is_bad THEN 'low' ELSE 'high' END AS worse,
    CASE WHEN summed THEN op ELSE 'lte' END AS op, CASE WHEN summed THEN threshold ELSE 0 END AS threshold,
    exact(CASE WHEN NOT known THEN 0 WHEN summed THEN coalesce(value, 0)
        ELSE breaks(runs.op, runs.threshold, coalesce(value, 0))::INTEGER END) AS y
FROM runs;

-- limit_edges: as claim_edges: where one run follows another there is one edge, the later one's.
CREATE OR REPLACE TABLE limit_edges AS
WITH series AS (
    SELECT *, coalesce(lag(e) OVER along = s, false) AS follows, lag(y) OVER along AS earlier_y,
        lag(tail_us) OVER along AS earlier_tail, coalesce(lead(s) OVER along = e, false) AS is_followed
    FROM limited WINDOW along AS (PARTITION BY w, objective, subject, member, claimant ORDER BY s, e)),
beside AS (
    SELECT *, CASE WHEN follows THEN earlier_y ELSE 0 END AS before,
        greatest(lead_us, CASE WHEN follows THEN earlier_tail ELSE 0 END) AS lead
    FROM series)
SELECT * EXCLUDE (lead, before, lead_us, tail_us, earlier_y, earlier_tail),
    greatest(w, s - lead) AS lead_from, CASE WHEN is_followed THEN e ELSE greatest(s, e - tail_us) END AS tail_from,
    greatest(y - before, 0) AS rise, greatest(before - y, 0) AS fall, greatest(y, 0) AS sink,
    greatest(-y, 0) AS lift, CASE WHEN y > 0 AND y > before THEN greatest(0, lead - (s - w)) ELSE 0 END AS spill
FROM beside;

INSERT INTO out_sli BY NAME
WITH edges AS (
    SELECT w, objective, kind, subject, member, series, op, threshold, better, worse,
        unnest([s, e, lead_from, s, tail_from, e]) AS t, unnest([1, -1, 0, 0, 0, 0]) AS runs,
        unnest([n, -n, 0, 0, 0, 0]) AS unknown,
        unnest([y, -y, 0, 0, 0, 0]) AS v, unnest([y, -y, -fall, fall, -sink, sink]) AS least,
        unnest([y, -y, rise, -rise, lift, -lift]) AS most
    FROM (SELECT *, (NOT known)::INTEGER AS n FROM limit_edges)),
running AS (
    SELECT w, objective, kind, subject, series, op, threshold, better, worse, t,
        lead(t) OVER along - t AS us, sum(sum(runs)) OVER along AS runs,
        sum(sum(unknown)) OVER along AS unknown,
        sum(sum(v)) OVER along AS v, sum(sum(least)) OVER along AS least, sum(sum(most)) OVER along AS most
    FROM edges GROUP BY w, objective, kind, subject, member, series, op, threshold, better, worse, t
    WINDOW along AS (PARTITION BY w, objective, subject, member, series ORDER BY t)),
judged AS (
    SELECT *, better AND runs > 0 AND breaks(op, threshold, v) AS broken,
        better AND runs > 0 AND breaks(op, threshold, least) AS surely,
        worse AND breaks(op, threshold, most) AS possibly
    FROM running WHERE us > 0),
steps AS (
    SELECT w, objective, kind, subject, unnest([t, t + us]) AS t, step(broken::INTEGER) AS bad,
        step(surely::INTEGER) AS low, step(possibly::INTEGER) AS high
    FROM judged WHERE broken OR surely OR possibly
    UNION ALL BY NAME
    SELECT w, objective, kind, subject, unnest([t, t + us]) AS t, step(series) AS members,
        step((unknown > 0)::INTEGER) AS unknown
    FROM judged WHERE worse AND runs > 0
    UNION ALL BY NAME
    SELECT w, objective, kind, subject, unnest([x.s, x.e]) AS t, step(1) AS unknown
    FROM (SELECT DISTINCT w, objective, kind, subject FROM limited WHERE kind = 'group')
        JOIN (SELECT objective, metric FROM objectives) o USING (objective) JOIN unread x USING (w, metric)
    WHERE x.live AND reports_partitions(x.source)),
sums AS (
    SELECT w, objective, kind, subject, t, lead(t) OVER along - t AS us,
        coalesce(sum(sum(bad)) OVER along, 0) AS bad, coalesce(sum(sum(low)) OVER along, 0) AS low,
        coalesce(sum(sum(high)) OVER along, 0) AS high, coalesce(sum(sum(members)) OVER along, 0) AS members,
        coalesce(sum(sum(unknown)) OVER along, 0) AS unknown
    FROM steps GROUP BY w, objective, kind, subject, t
    WINDOW along AS (PARTITION BY w, objective, subject ORDER BY t)),
segments AS (
    SELECT *, max(members) OVER (PARTITION BY w, objective, subject) AS most FROM sums WHERE us > 0),
times AS (
    SELECT w, objective, kind, subject,
        coalesce(sum(us) FILTER (bad = 0 AND unknown = 0 AND members > 0 AND members = most), 0) AS good_us,
        coalesce(sum(us) FILTER (bad > 0), 0) AS bad_us, coalesce(sum(us) FILTER (low > 0), 0) AS bad_low_us,
        coalesce(sum(us) FILTER (bad > 0 OR high > 0), 0) AS bad_high_us,
        -- A rise reaches over the cut where it may have been bad at the cut already.
        bool_or(t = w AND high > 0 AND bad = 0) AS rises
    FROM segments GROUP BY ALL),
spills AS (
    SELECT w, objective, subject, coalesce(max(spill) FILTER (worse), 0) AS spill FROM limit_edges GROUP BY ALL)
SELECT w, objective, CASE WHEN kind = 'source' THEN subject END AS source,
    CASE WHEN kind = 'group' THEN subject END AS "group", good_us, bad_us, bad_low_us,
    CASE WHEN rises THEN spill ELSE 0 END AS spill_us, bad_high_us + spill_us AS bad_high_us
FROM times JOIN spills USING (w, objective, subject)
WHERE greatest(good_us, bad_us, times.bad_high_us) > 0;
