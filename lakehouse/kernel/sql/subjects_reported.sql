-- each: what these hours report of subjects, a row for each metric that describes one.
each AS (SELECT * EXCLUDE (u, hour_us) FROM out_subjects JOIN units USING (u))
