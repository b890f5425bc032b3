-- joined_incidents: stretches of gold/incidents that touch or overlap are one incident, over hours and over the
-- sources that report the same series; of a source's own series (level source) each source's are its own.
--
-- {stretches} has the columns of {series}, and source, s, e (start and end, microseconds), lead_us, tail_us, worst and
-- total.
--
-- The place of an incident is a sum over rows up to the last one that starts and ends alike: engines order these at will.
--
-- lead_us: the shortest lead of the sources that reported the start. tail_us: the shortest tail of the sources that
-- reported the end; a stretch that may not have been bad at all extends it to the stretch of its source before it.
stretches_marked AS (
    SELECT t.*, CASE WHEN level = 'source' THEN source END AS own_source,
        CASE WHEN lag(e) OVER (PARTITION BY {series}, source ORDER BY s, e) = s THEN 0 ELSE 1 END AS begins
    FROM {stretches} t),
stretches_placed AS (
    SELECT m.*, sum(begins) OVER (PARTITION BY {series}, source ORDER BY s, e) AS place
    FROM stretches_marked m),
of_sources AS (
    SELECT {series}, own_source, source, min(s) AS s, max(e) AS e,
        max(CASE WHEN begins = 1 THEN lead_us END) AS lead_us,
        coalesce(max(CASE WHEN tail_us < e - s THEN e - tail_us END), min(s)) AS sure_until,
        max(worst) AS worst, sum(CAST(total AS DECIMAL(38, 6))) AS total
    FROM stretches_placed
    GROUP BY {series}, own_source, source, place),
sources_marked AS (
    SELECT o.*, CASE WHEN max(e) OVER (PARTITION BY {series}, own_source
        ORDER BY s, e ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) >= s THEN 0 ELSE 1 END AS begins
    FROM of_sources o),
sources_placed AS (
    SELECT m.*, sum(begins) OVER (PARTITION BY {series}, own_source ORDER BY s, e) AS place
    FROM sources_marked m),
bounded AS (
    SELECT p.*, min(s) OVER (PARTITION BY {series}, own_source, place) AS first_start,
        max(e) OVER (PARTITION BY {series}, own_source, place) AS last_end
    FROM sources_placed p),
joined_incidents AS (
    SELECT {series}, own_source, first_start AS s, last_end AS e,
        min(CASE WHEN s = first_start THEN lead_us END) AS lead_us,
        min(CASE WHEN e = last_end THEN e - sure_until END) AS tail_us,
        max(worst) AS worst, CAST(sum(total) AS DOUBLE) AS total,
        array_agg(DISTINCT source) AS sources, count(DISTINCT source) AS source_count
    FROM bounded
    GROUP BY {series}, own_source, first_start, last_end)
