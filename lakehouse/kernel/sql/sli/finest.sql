-- Windows of a completely good hour are omitted, because the hour's row implies them.
CREATE VIEW sli_finest AS
SELECT *, sum(good_us) OVER of_hour = hour_us() AND sum(bad_high_us) OVER of_hour = 0 AS good_throughout
FROM out_sli WINDOW of_hour AS (PARTITION BY hour_of(w), objective, topic, user_name, client_id, consumer_group,
    source);
