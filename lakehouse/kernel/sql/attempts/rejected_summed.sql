-- Rows that could not be used, summed over parts.
CREATE VIEW rejected_summed AS
SELECT w, reason, "table", source, metric, members, min("start") AS "start", max("end") AS "end",
    min(agent) AS agent, min(batch) AS batch, sum(rows) AS rows
FROM out_rejected GROUP BY ALL;
