CREATE TABLE out_subjects (u INTEGER, kind VARCHAR, topic VARCHAR, user_name VARCHAR, client_id VARCHAR,
    consumer_group VARCHAR, source VARCHAR, first_seen BIGINT, last_seen BIGINT, seen_whole_until BIGINT,
    metric VARCHAR, reported_at BIGINT, value DOUBLE, rack VARCHAR)
