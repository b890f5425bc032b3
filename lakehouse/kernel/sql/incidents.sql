-- bad_series: what was above zero in an hour, of watched metrics and as one source reports it; bad_runs:
-- its runs in this part. Those that touch are one stretch.
INSERT INTO bad_series
WITH fresh AS (
    SELECT hour_of(w) AS h, metric, level, topic, partition, "user", client_id, "group", source
    FROM usable SEMI JOIN watched USING (metric) WHERE positive
    EXCEPT SELECT * EXCLUDE (series) FROM bad_series)
SELECT (SELECT count(*) FROM bad_series) + row_number() OVER () AS series, * FROM fresh;

CREATE OR REPLACE TABLE bad_runs AS
WITH bad AS (
    SELECT b.series, s, e, sure, s - may + spill AS lead_us, value, wrong
    FROM usable u JOIN bad_series b ON b.h = hour_of(u.w) AND b.metric = u.metric AND b.level = u.level
        AND b.source = u.source AND b.topic IS NOT DISTINCT FROM u.topic
        AND b.partition IS NOT DISTINCT FROM u.partition AND b."user" IS NOT DISTINCT FROM u."user"
        AND b.client_id IS NOT DISTINCT FROM u.client_id AND b."group" IS NOT DISTINCT FROM u."group"
    WHERE positive),
marked AS (
    SELECT *, coalesce(s > max(e) OVER earlier, true) AS begins FROM bad
    WINDOW earlier AS (PARTITION BY series ORDER BY s, e ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
SELECT * EXCLUDE (begins), sum(begins::INTEGER) OVER (ORDER BY series, s, e) AS stretch FROM marked;

-- A stretch above zero within a part. Where a run may not have been above zero at all, those count that
-- end where it begins: `reached` are the instants at which the stretch may have been over.
INSERT INTO out_incidents BY NAME
WITH RECURSIVE reached AS (
    SELECT stretch, max(e) AS t FROM bad_runs GROUP BY stretch
    UNION
    SELECT stretch, s FROM reached JOIN bad_runs r USING (stretch) WHERE r.e = t AND sure = s),
ends AS (
    SELECT reached.stretch, max(CASE WHEN r.e IS NULL THEN t WHEN sure > s THEN sure END) AS sure_until
    FROM reached LEFT JOIN bad_runs r ON r.stretch = reached.stretch AND r.e = t GROUP BY ALL),
stretches AS (
    SELECT series, stretch, min(s) AS s, max(e) AS e, min({s: s, lead: lead_us}).lead AS lead_us,
        max(value) AS worst, sum(exact(value)) AS total, count(*) AS runs, bool_or(wrong) AS known_wrong
    FROM bad_runs GROUP BY ALL)
SELECT * EXCLUDE (stretch) FROM stretches JOIN ends USING (stretch);
