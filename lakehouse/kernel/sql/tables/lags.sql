-- The last report of each source in a window for bytes of a topic that wait for upload or deletion. Idle is zero.
INSERT INTO out_lags BY NAME
WITH latest AS (
    SELECT w, metric, topic, source, max({instant: e, value: coalesce(value, 0.0)}) AS latest FROM usable
    WHERE metric IN ('kafka.topic.remote_copy_lag.bytes', 'kafka.topic.remote_delete_lag.bytes')
        AND level IN ('partition', 'topic')
    GROUP BY ALL)
SELECT w, metric, topic, source, latest.instant AS ended_at, latest.value AS value_last FROM latest;
