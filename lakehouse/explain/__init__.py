"""The story of one topic, partition, client, group or broker in a period."""
