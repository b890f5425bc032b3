-- Rejected rows, summed over parts.
CREATE VIEW rejected_summed AS
SELECT w, reason, table_name, source, metric, members, min(started_at) AS started_at, max(ended_at) AS ended_at,
    min(agent) AS agent, min(batch) AS batch, sum(row_count) AS row_count
FROM out_rejected GROUP BY ALL;
