-- judged_scrapes: rows of bronze/scrapes, with the reason of each rejected row.
CREATE TABLE judged_scrapes AS
SELECT * EXCLUDE (start_us, end_us), on_axis(u, start_us) AS s, s + (in_time(end_us) - start_us) AS e,
    window_of(s) AS w,
    CASE WHEN e <= s THEN 'it ends before it starts'
        WHEN start_us > latest_us() THEN 'it lies in the future'
        WHEN e > w + window_us() THEN 'it crosses a window of ' || window_name()
        WHEN NOT (is_number(seconds_total) AND is_number(seconds_max)) THEN 'the value is no number'
    END AS reason
FROM scrapes;

-- Of overlapping attempts at a family the first counts. The order is: success, `down`, other failures; then the
-- smallest agent id; then the earliest batch. A skipped tick is not an attempt: it overlaps the late attempt before
-- it, and is compared with other skipped ticks only.
CREATE TABLE overlapping_scrapes AS
WITH placed AS (
    SELECT *, j.rowid AS id, {w: w, source: source, family: family, skipped: outcome = 'skipped'} AS place
    FROM judged_scrapes j WHERE reason IS NULL),
doubles AS (
    SELECT place FROM placed QUALIFY s < lag(e) OVER (PARTITION BY place ORDER BY s)),
ranked AS (
    SELECT *, row_number() OVER (PARTITION BY place ORDER BY order_of(outcome), agent, batch, outcome, s, e,
        scrapes, seconds_total, seconds_max, interval_us, error) AS rank
    FROM placed SEMI JOIN doubles USING (place))
SELECT id, s, e, agent, place, rank,
    rank > min(rank) OVER (PARTITION BY place, outcome, agent, s, e, scrapes, seconds_total, seconds_max,
        interval_us, error) AS again
FROM ranked;

CREATE TABLE pieces_of_scrapes AS
SELECT id, f.s, f.e
FROM overlapping_scrapes o JOIN left_to_first(overlapping_scrapes) f USING (place, rank);

CREATE TABLE cut_scrapes AS
SELECT id, CASE WHEN place.skipped THEN '' WHEN again THEN 'it is there twice'
        WHEN EXISTS (FROM overlapping_scrapes x WHERE x.place = o.place AND x.rank < o.rank
            AND x.agent <> o.agent AND x.s < o.e AND o.s < x.e) THEN 'another agent read it as well'
        ELSE 'its agent recorded that time twice' END AS reason
FROM overlapping_scrapes o
    ANTI JOIN pieces_of_scrapes p ON p.id = o.id AND p.s = o.s AND p.e = o.e;

-- The first piece has all attempts, because the time of each attempt is not known.
INSERT INTO judged_scrapes BY NAME
SELECT j.* REPLACE (p.s AS s, p.e AS e, CASE WHEN first THEN scrapes ELSE 0 END AS scrapes,
        CASE WHEN first THEN seconds_total ELSE 0 END AS seconds_total)
FROM (SELECT id, s, e, row_number() OVER (PARTITION BY id ORDER BY s) = 1 AS first FROM pieces_of_scrapes) p
    SEMI JOIN cut_scrapes USING (id) JOIN judged_scrapes j ON j.rowid = p.id;

UPDATE judged_scrapes SET reason = cut_scrapes.reason FROM cut_scrapes WHERE judged_scrapes.rowid = cut_scrapes.id;

CREATE VIEW attempts AS SELECT * FROM judged_scrapes WHERE reason IS NULL;

INSERT INTO out_rejected BY NAME
SELECT w, reason, 'scrapes' AS table_name, source, family AS metric, s AS started_at, e AS ended_at,
    agent, batch, 1 AS row_count
FROM judged_scrapes WHERE reason <> '';

INSERT INTO out_coverage BY NAME
SELECT w, source, family, outcome, sum(e - s) AS outcome_us, sum(scrapes) AS scrapes,
    max(interval_us) AS interval_us, sum(exact(seconds_total)) AS seconds_total,
    max(seconds_max) AS seconds_max
FROM attempts GROUP BY ALL;

-- Sources, and the end of the last scrape of their topology.
INSERT INTO out_subjects BY NAME
SELECT u, 'source' AS kind, source, min(s) AS first_seen, max(e) AS last_seen,
    max(e) FILTER (family = 'topology' AND outcome = 'ok') AS seen_whole_until
FROM attempts GROUP BY ALL;
