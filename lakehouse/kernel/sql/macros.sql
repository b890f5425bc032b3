-- Each cluster-hour (unit) has two hours of its own on one axis of time. So the statements are written for one
-- hour, and one kernel run computes many small hours.
CREATE MACRO stride() AS 7200000000::BIGINT;
CREATE MACRO hour_us() AS 3600000000::BIGINT;
CREATE MACRO window_of(t) AS t - t % window_us();
CREATE MACRO hour_of(t) AS t - t % hour_us();
CREATE MACRO on_axis(u, t) AS u * stride() + t % hour_us();
CREATE MACRO off_axis(u, hour, t) AS (hour + (t - u * stride()))::BIGINT;
-- An end can be any number; differences need instants between 1970 and 9999.
CREATE MACRO in_time(t) AS greatest(0, least(t, 253402300799999999));
-- Sums of doubles depend on their order, sums of these do not. Check the value first: NaN fails here.
CREATE MACRO exact(x) AS (x)::DECIMAL(38, 6);
CREATE MACRO value_seconds(value, us) AS exact(coalesce(value, 0.0) * us / 1e6);
CREATE MACRO is_number(x) AS isfinite(x) AND abs(x) <= 1e19;
CREATE MACRO is_long(name) AS coalesce(strlen(name) > 1024, false);
-- Labels as one text, ordered by name. The labels of a partition do not distinguish series.
CREATE MACRO part_of(level, labels) AS
    CASE WHEN level = 'partition' OR labels IS NULL THEN level
        ELSE concat(level, list_sort(map_entries(labels))::VARCHAR) END;
-- Labels as one text that can be parsed; equal labels have equal texts.
CREATE MACRO labels_of(labels) AS array_to_string(list_transform(list_sort(map_entries(labels)),
    lambda x: concat(escaped(x.key), '=', escaped(x.value))), ',');
CREATE MACRO escaped(name) AS regexp_replace(coalesce(name, ''), '([\\,=])', '\\\1', 'g');
-- A metric of a source and a topic or group, which several agents can report.
CREATE MACRO thing_of(u, source, metric, consumer_group, topic) AS
    {u: u, source: source, metric: metric, "of": coalesce(consumer_group, topic, '')};
-- An interval adds x at its start and subtracts it at its end: running sums of steps count open intervals.
CREATE MACRO step(x) AS unnest([x, -x]);
-- Whether a value is bad. The op of OpenSLO compares good values with the threshold.
CREATE MACRO breaks(op, threshold, value) AS CASE op WHEN 'lte' THEN value > threshold
    WHEN 'lt' THEN value >= threshold WHEN 'gte' THEN value < threshold ELSE value <= threshold END;
-- Time before the window counts once. It does not count if a value was above zero at the start of the window,
-- because the previous window has that time.
CREATE MACRO unless_open(opens, spill) AS CASE WHEN opens THEN 0 ELSE coalesce(spill, 0) END;
-- The role in a source's name. The agent creates these names (lakehouse/tables/agent_names.py).
CREATE MACRO role_of(source) AS split_part(source, '-', 1);
-- Sources that report partitions and groups: brokers, and a cluster that is read as a whole.
CREATE MACRO reports_partitions(source) AS role_of(source) IN ('broker', 'cluster');
CREATE MACRO is_unavailable(metric, positive) AS
    metric = 'kafka.partition.under_min_isr' OR (metric = 'kafka.partition.leaderless' AND positive);
-- The greatest struct is the latest report; at one instant it has the greatest known value.
CREATE MACRO reported(t, v, r) AS
    {instant: t, known: v IS NOT NULL, value: v, placed: r IS NOT NULL, rack: r};
-- Order of several attempts at one instant: the first counts.
CREATE MACRO order_of(outcome) AS CASE outcome WHEN 'ok' THEN 0 WHEN 'down' THEN 1 ELSE 2 END;
-- Time of the segments with a condition.
CREATE MACRO time_of(us, met) AS coalesce(sum(us) FILTER (met), 0);
CREATE MACRO lead_edge(flags, us) AS CASE WHEN is_previous_positive(flags) THEN 0 ELSE us END;
CREATE MACRO tail_edge(flags, us) AS CASE WHEN is_next_positive(flags) THEN 0 ELSE us END;
-- Values `v` of members with their edges: within an edge the value before or after it may have held. Two adjacent
-- runs of a claimant have one edge, that of the later run.
CREATE MACRO with_edges(valued) AS TABLE
    WITH beside AS (
        SELECT *, lag(e) OVER along = s AS follows,
            CASE WHEN follows THEN lag(v) OVER along ELSE 0 END AS before,
            greatest(lead_us, CASE WHEN follows THEN lag(tail_us) OVER along ELSE 0 END) AS reach,
            CASE WHEN lead(s) OVER along = e THEN e ELSE greatest(s, e - tail_us) END AS tail_from
        FROM query_table(valued)
        WINDOW along AS (PARTITION BY place, member, claimant ORDER BY s, e, v, lead_us, tail_us))
    SELECT * EXCLUDE (claimant, lead_us, tail_us, follows, before, reach),
        greatest(w, s - reach) AS lead_from, greatest(v - before, 0) AS rise, greatest(before - v, 0) AS fall,
        greatest(v, 0) AS sink, greatest(-v, 0) AS lift,
        CASE WHEN positive AND v > before THEN greatest(0, reach - (s - w)) ELSE 0 END AS spill
    FROM beside;
-- Good and bad time of places. Segments are observed or not, and `bad`, surely bad (low) or possibly bad (high).
-- A rise carries over into the previous window (spill) if it was possibly bad at the start of the window.
CREATE MACRO times_of(segments) AS TABLE
    SELECT place, time_of(us, seen AND NOT bad) AS good_us, time_of(us, bad) AS bad_us,
        time_of(us, low) AS bad_low_us, time_of(us, seen) AS seen_us,
        CASE WHEN bool_or(t = window_of(t) AND high AND NOT bad) THEN coalesce(max(spill), 0)
            ELSE 0 END AS before_us,
        time_of(us, bad OR high) + before_us AS bad_high_us
    FROM query_table(segments) GROUP BY place;
-- The same from steps of counts: bad, surely bad and possibly bad members, and known, down and unknown members.
-- The place is observed while the number of known and down members is at least the greatest number of known ones.
CREATE TABLE no_steps (t BIGINT, bad INTEGER, low INTEGER, high INTEGER, members INTEGER, down INTEGER,
    unknown INTEGER, spill BIGINT);
CREATE MACRO timed(steps) AS TABLE
    WITH sums AS (
        SELECT place, t, lead(t) OVER along - t AS us, max(spill) AS spill,
            coalesce(sum(sum(COLUMNS(* EXCLUDE (place, t, spill)))) OVER along, 0)
        FROM (FROM no_steps UNION ALL BY NAME FROM query_table(steps)) GROUP BY place, t
        WINDOW along AS (PARTITION BY place ORDER BY t)),
    counted AS (SELECT *, max(members) OVER (PARTITION BY place) AS most FROM sums WHERE us > 0),
    segments AS (
        SELECT place, t, us, spill, bad > 0 AS bad, low > 0 AS low, high > 0 AS high,
            unknown = 0 AND members > 0 AND members + down >= most AS seen
        FROM counted)
    SELECT * EXCLUDE (seen_us) FROM times_of(segments);
-- Disjoint intervals of places: each instant belongs to the lowest rank that has it. Adjacent intervals are joined.
CREATE MACRO left_to_first(spans) AS TABLE
    WITH each AS (SELECT DISTINCT place, rank, s, e FROM query_table(spans)),
    cuts AS (
        SELECT place, t AS s, lead(t) OVER (PARTITION BY place ORDER BY t) AS e
        FROM (SELECT DISTINCT place, unnest([s, e]) AS t FROM each)),
    held AS (
        SELECT place, c.s, c.e, min(rank) AS rank FROM cuts c JOIN each USING (place)
        WHERE each.s <= c.s AND c.e <= each.e GROUP BY ALL),
    marked AS (
        SELECT *, (lag(e) OVER along = s AND lag(rank) OVER along = rank) IS NOT TRUE AS begins
        FROM held WINDOW along AS (PARTITION BY place ORDER BY s)),
    numbered AS (SELECT *, sum(begins::INTEGER) OVER (PARTITION BY place ORDER BY s) AS number FROM marked)
    SELECT place, rank, min(s) AS s, max(e) AS e FROM numbered GROUP BY place, rank, number;
