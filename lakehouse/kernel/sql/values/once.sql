-- Values that were read twice count once. If runs of one series and agent overlap, the run of the earliest batch
-- counts. If several agents report a source's metric (per topic or group) at an instant, the agent with the most
-- gauges above zero (bad) counts, then the agent with the smallest id. So the order of rows does not matter. While
-- another agent surely reports fewer of them, the bad values are not sure. An agent that does not report the metric is
-- not compared. Almost no hour has such runs; the other hours pay only for the search.

-- of_agents: streams whose metric another agent reports for the same source.
CREATE OR REPLACE TABLE of_agents AS
SELECT stream, agent, thing_of(u, source, metric, consumer_group, topic) AS thing FROM streams
QUALIFY min(agent) OVER (PARTITION BY thing) <> max(agent) OVER (PARTITION BY thing);

-- doubles: windows in which runs of a stream overlap each other, or runs of another agent.
CREATE OR REPLACE TABLE doubles AS
WITH several AS (SELECT stream, w FROM judged WHERE reason IS NULL GROUP BY stream, w HAVING count(*) > 1),
of_one AS (
    SELECT stream, w FROM judged SEMI JOIN several USING (stream, w) WHERE reason IS NULL
    QUALIFY s < lag(e) OVER (PARTITION BY stream, w ORDER BY s)),
extents AS (
    SELECT w, thing, agent, min(s) AS s, max(e) AS e FROM judged JOIN of_agents USING (stream)
    WHERE reason IS NULL GROUP BY ALL),
meeting AS (SELECT w, thing FROM extents QUALIFY s < lag(e) OVER (PARTITION BY w, thing ORDER BY s))
SELECT stream, w FROM of_one UNION SELECT stream, w FROM of_agents JOIN meeting USING (thing);

CREATE OR REPLACE TABLE overlapping AS
WITH turns AS (
    SELECT j.* EXCLUDE (reason), j.rowid AS id, {w: w, stream: stream} AS own,
        row_number() OVER (
            PARTITION BY stream, w ORDER BY batch, s, e, value, lead_us, tail_us, may, sure, wrong) AS turn
    FROM judged j SEMI JOIN doubles USING (stream, w) WHERE reason IS NULL)
SELECT id, s, e, agent, own, {w: w, thing: thing_of(u, source, metric, consumer_group, topic)} AS thing, turn,
    turn > min(turn) OVER (PARTITION BY stream, w, s, e, value, lead_us, tail_us, may, sure, wrong) AS again
FROM turns JOIN streams USING (stream);

CREATE OR REPLACE TABLE first_of_series AS
WITH spans AS (SELECT own AS place, turn AS rank, s, e FROM overlapping) FROM left_to_first(spans);

-- own_pieces: time of a run that no earlier run of its series and agent has, and the bounds of its value.
CREATE OR REPLACE TABLE own_pieces AS
SELECT o.id, o.agent, o.thing, f.s, f.e, greatest(f.s, least(f.e, j.sure)) AS sure,
    CASE WHEN f.s = j.s THEN j.may ELSE f.s END AS may,
    j.positive AND NOT counter AS bad, series
FROM overlapping o JOIN first_of_series f ON f.place = own AND f.rank = turn
    JOIN judged j ON j.rowid = o.id JOIN streams USING (stream);

-- counted: number of runs of an agent, and of its bad series: reported, sure and possible, per change of any agent. A
-- series that is not bad may become bad in its tail.
CREATE OR REPLACE TABLE counted AS
WITH edges AS (
    SELECT thing, agent, unnest([s, e, sure, may]) AS t, unnest([1, -1, 0, 0]) AS runs,
        unnest([n, -n, 0, 0]) AS bad, unnest([n, 0, -n, 0]) AS low, unnest([0, -n - more, more, n]) AS high
    FROM (SELECT *, bad::INTEGER AS n, CASE WHEN bad THEN 0 ELSE series END AS more FROM own_pieces)),
cuts AS (
    SELECT thing, t AS s, lead(t) OVER (PARTITION BY thing ORDER BY t) AS e
    FROM (SELECT DISTINCT thing, t FROM edges)),
counts AS (
    SELECT thing, agent, t AS s, lead(t) OVER along AS e,
        sum(sum(COLUMNS(['runs', 'bad', 'low', 'high']))) OVER along
    FROM edges GROUP BY thing, agent, t WINDOW along AS (PARTITION BY thing, agent ORDER BY t))
SELECT cuts.*, counts.* EXCLUDE (thing, s, e)
FROM cuts JOIN counts ON counts.thing = cuts.thing AND counts.s <= cuts.s AND cuts.e <= counts.e;

-- first_of_agents: the agent that counts at an instant, and whether no other agent contradicts it.
CREATE OR REPLACE TABLE first_of_agents AS
WITH firsts AS (
    SELECT thing AS place, s, e, min({fewer: -bad, agent: agent, low: low}) AS first, min(high) AS least
    FROM counted WHERE runs > 0 GROUP BY ALL),
spans AS (SELECT place, s, e, {agreed: first.low <= least, agent: first.agent} AS rank FROM firsts)
FROM left_to_first(spans);

-- pieces: remaining time of these runs.
CREATE OR REPLACE TABLE pieces AS
WITH spans AS (
    SELECT id AS place, bad AND NOT a.rank.agreed AS rank, greatest(o.s, a.s) AS s, least(o.e, a.e) AS e
    FROM own_pieces o JOIN first_of_agents a ON a.place = thing AND a.rank.agent = agent AND a.s < o.e AND o.s < a.e)
SELECT place AS id, rank AS unsure, s, e FROM left_to_first(spans);

CREATE OR REPLACE TABLE cut AS
SELECT o.id, CASE WHEN again THEN 'it is there twice'
        WHEN f.s IS NULL THEN 'its agent recorded that time twice'
        WHEN u.id IS NOT NULL THEN 'another agent contradicts it'
        ELSE 'another agent read it as well' END AS reason
FROM overlapping o ANTI JOIN pieces p ON p.id = o.id AND p.s = o.s AND p.e = o.e AND NOT p.unsure
    LEFT JOIN first_of_series f ON f.place = own AND f.rank = turn AND f.s = o.s AND f.e = o.e
    LEFT JOIN (SELECT DISTINCT id FROM pieces WHERE unsure) u ON u.id = o.id;

-- Pieces of a gauge's run have its value. It may not have held in the removed time, which extends the upper bound, or
-- in a piece that is not sure.
-- The increase of a counter in a piece is unknown, because the increase in the removed time is unknown.
INSERT INTO judged BY NAME
WITH placed AS (
    SELECT p.*, j.* EXCLUDE (s, e), j.s AS whole_s, j.e AS whole_e, p.s > j.s AS later, counter,
        CASE WHEN later THEN p.s - coalesce(lag(p.e) OVER (PARTITION BY id ORDER BY p.s), j.s - j.lead_us)
            ELSE j.lead_us END AS new_lead
    FROM pieces p SEMI JOIN cut USING (id) JOIN judged j ON j.rowid = p.id JOIN streams USING (stream))
SELECT stream, s, e, w, CASE WHEN NOT counter THEN value END AS value, new_lead AS lead_us,
    CASE WHEN unsure THEN e - s ELSE greatest(0, tail_us - (whole_e - e)) END AS tail_us, wrong,
    positive AND NOT counter AS positive,
    CASE WHEN later THEN greatest(w, s - new_lead) ELSE may END AS may,
    CASE WHEN unsure THEN s ELSE greatest(s, least(sure, e)) END AS sure,
    CASE WHEN later THEN greatest(0, new_lead - (s - w)) ELSE spill END AS spill,
    positive AND NOT counter AND s = w AS opens
FROM placed;

UPDATE judged SET reason = cut.reason FROM cut WHERE judged.rowid = cut.id;
