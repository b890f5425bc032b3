-- judged_scrapes: the agents' own account of their attempts, with the reason why a row cannot be used.
CREATE TABLE judged_scrapes AS
SELECT * EXCLUDE (start_us, end_us), on_axis(u, start_us) AS s, s + (in_time(end_us) - start_us) AS e,
    window_of(s) AS w,
    CASE WHEN e <= s THEN 'it ends before it starts'
        WHEN start_us > latest_us() THEN 'it lies in the future'
        WHEN e > w + window_us() THEN 'it crosses a window of ' || window_name()
        WHEN NOT (is_number(seconds_total) AND is_number(seconds_max)) THEN 'the value is no number'
    END AS reason
FROM scrapes;

CREATE VIEW attempts AS SELECT * FROM judged_scrapes WHERE reason IS NULL;

INSERT INTO out_rejected BY NAME
SELECT w, reason, 'scrapes' AS "table", source, family AS metric, s AS "start", e AS "end",
    agent, batch, 1 AS rows
FROM judged_scrapes WHERE reason IS NOT NULL;

INSERT INTO out_coverage BY NAME
SELECT w, source, family, outcome, sum(e - s) AS duration_us, sum(scrapes) AS scrapes,
    max(interval_us) AS interval_us, sum(exact(seconds_total)) AS seconds_total,
    max(seconds_max) AS seconds_max
FROM attempts GROUP BY ALL;

-- The sources themselves, and until when each of them reported which topics exist.
INSERT INTO out_subjects BY NAME
SELECT u, 'source' AS kind, source, min(s) AS first_seen, max(e) AS last_seen,
    max(e) FILTER (family = 'topology' AND outcome = 'ok') AS seen_whole_until
FROM attempts GROUP BY ALL;
