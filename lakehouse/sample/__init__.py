"""Bronze of a cluster that is made up, for a first look without Kafka."""
