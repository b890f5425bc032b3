-- Every hour of a cluster (a unit) has a stretch of its own on one axis of time, two hours long: so
-- the statements below are written as for one hour, and many small hours are computed at once.
CREATE MACRO stride() AS 7200000000::BIGINT;
CREATE MACRO hour_us() AS 3600000000::BIGINT;
CREATE MACRO window_of(t) AS t - t % window_us();
CREATE MACRO hour_of(t) AS t - t % hour_us();
CREATE MACRO on_axis(u, t) AS u * stride() + t % hour_us();
CREATE MACRO off_axis(u, hour, t) AS (hour + (t - u * stride()))::BIGINT;
-- An end may be any number; differences need instants between 1970 and 9999.
CREATE MACRO in_time(t) AS greatest(0, least(t, 253402300799999999));
-- Sums of doubles depend on their order; sums of these do not. Judge before you cast: NaN fails here.
CREATE MACRO exact(x) AS (x)::DECIMAL(38, 6);
CREATE MACRO value_seconds(value, us) AS exact(coalesce(value, 0.0) * us / 1e6);
CREATE MACRO is_number(x) AS isfinite(x) AND abs(x) <= 1e19;
CREATE MACRO is_long(name) AS coalesce(strlen(name) > 1024, false);
-- Labels as one text, in the order of their names; a partition is the same whatever labels it has.
CREATE MACRO part_of(level, labels) AS
    CASE WHEN level = 'partition' OR labels IS NULL THEN level
        ELSE concat(level, list_sort(map_entries(labels))::VARCHAR) END;
-- Labels as one text that can be read again, the same for the same labels.
CREATE MACRO labels_of(labels) AS array_to_string(list_transform(list_sort(map_entries(labels)),
    lambda x: concat(escaped(x.key), '=', escaped(x.value))), ',');
CREATE MACRO escaped(name) AS regexp_replace(coalesce(name, ''), '([\\,=])', '\\\1', 'g');
-- A span adds x at its start and subtracts it at its end: running sums of steps count open spans.
CREATE MACRO step(x) AS unnest([x, -x]);
-- Whether a value breaks a threshold (OpenSLO: op compares a good one).
CREATE MACRO breaks(op, threshold, value) AS CASE op WHEN 'lte' THEN value > threshold
    WHEN 'lt' THEN value >= threshold WHEN 'gte' THEN value < threshold ELSE value <= threshold END;
-- Time before the window counts once, and not if a value was above zero from its very start: the window
-- before has that time.
CREATE MACRO unless_open(opens, spill) AS CASE WHEN opens THEN 0 ELSE coalesce(spill, 0) END;
-- Sources that report of partitions and groups: brokers, and a cluster that is read as a whole.
CREATE MACRO reports_partitions(source) AS starts_with(source, 'broker-') OR starts_with(source, 'cluster-');
CREATE MACRO is_unavailable(metric, positive) AS
    metric = 'kafka.partition.under_min_isr' OR (metric = 'kafka.partition.leaderless' AND positive);
-- The greatest of these is the latest report; of several at one instant the greatest known value.
CREATE MACRO reported(t, v, r) AS
    {instant: t, known: v IS NOT NULL, value: v, placed: r IS NOT NULL, rack: r};
CREATE MACRO lead_edge(flags, us) AS CASE WHEN is_previous_positive(flags) THEN 0 ELSE us END;
CREATE MACRO tail_edge(flags, us) AS CASE WHEN is_next_positive(flags) THEN 0 ELSE us END;
