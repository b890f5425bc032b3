"""The agent beside a Kafka broker: reads JMX beans, keeps runs, delivers them to Delta exactly once."""
