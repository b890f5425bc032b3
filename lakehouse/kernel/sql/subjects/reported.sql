-- each: reports of these hours, one row per subject and metric that describes it.
each AS (
    SELECT * EXCLUDE (u, hour_us) REPLACE (
        off_axis(u, hour_us, first_seen) AS first_seen, off_axis(u, hour_us, last_seen) AS last_seen,
        off_axis(u, hour_us, seen_whole_until) AS seen_whole_until,
        off_axis(u, hour_us, reported_at) AS reported_at)
    FROM out_subjects JOIN units USING (u))
