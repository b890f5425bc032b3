"""The agent beside a Kafka broker: reads JMX beans, keeps runs, delivers them exactly once."""
