-- Sources: bad while a scrape of one of their families failed. A skipped tick is not an attempt.
INSERT INTO out_sli BY NAME
WITH steps AS (
    SELECT {w: w, objective: objective, source: source} AS place, unnest([s, e]) AS t,
        step((outcome = 'ok')::INTEGER) AS members, step((outcome <> 'ok')::INTEGER) AS bad, bad AS low
    FROM attempts, objectives o
    WHERE outcome <> 'skipped' AND o.level = 'source' AND o.metric = 'jmxlake.coverage')
SELECT unnest(place), * EXCLUDE (place) FROM timed(steps) WHERE greatest(good_us, bad_us) > 0;
