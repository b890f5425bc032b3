"""A real Kafka cluster with load and faults, for the demo, the tests and the benchmarks."""
