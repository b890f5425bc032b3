-- each: what these hours report of subjects, a row for each metric that describes one.
each AS (
    SELECT * EXCLUDE (u, hour_us) REPLACE (
        off_axis(u, hour_us, first_seen) AS first_seen, off_axis(u, hour_us, last_seen) AS last_seen,
        off_axis(u, hour_us, seen_whole_until) AS seen_whole_until,
        off_axis(u, hour_us, reported_at) AS reported_at)
    FROM out_subjects JOIN units USING (u))
