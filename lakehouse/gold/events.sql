-- grouped_incidents: the incidents of joined_incidents, each with the columns of its event: kind, of_*, and
-- for availability place.
--
-- Incidents of availability are chained by their onsets, never by their spans: a new event starts where the start of an
-- incident, less its lead, is later than every start before it by more than slack_us. So one partition that is bad for
-- weeks is an event of its own. All other incidents of a kind and subject are one event.
--
-- {slacks} has cluster and slack_us, microseconds. {kind} and {of} are the rules of event_rules.py.
named_incidents AS (
    SELECT i.*, {kind} AS kind, {of} AS of_kind, s - lead_us AS onset FROM joined_incidents i),
onsets AS (
    SELECT n.*, slack_us, CASE WHEN onset <= slack_us + max(s) OVER (PARTITION BY n.cluster, kind
        ORDER BY onset, s ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) THEN 0 ELSE 1 END AS begins
    FROM named_incidents n LEFT JOIN {slacks} k ON k.cluster = n.cluster),
chained AS (
    SELECT o.*, kind = 'availability' AS is_chained,
        sum(begins) OVER (PARTITION BY cluster, kind ORDER BY onset, s) AS chain
    FROM onsets o),
grouped_incidents AS (
    SELECT {incident}, slack_us, onset, kind, of_kind, CASE WHEN is_chained THEN chain END AS place,
        CASE WHEN NOT is_chained AND level IN ('topic', 'partition') THEN topic END AS of_topic,
        CASE WHEN NOT is_chained AND level = 'client' THEN user_name END AS of_user,
        CASE WHEN NOT is_chained AND level = 'client' THEN client_id END AS of_client,
        CASE WHEN NOT is_chained AND level = 'group' THEN consumer_group END AS of_group,
        CASE WHEN NOT is_chained THEN own_source END AS of_source
    FROM chained)
