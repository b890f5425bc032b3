"""Gold's tables as files that other tools read: Parquet, CSV, OpenMetrics; by delta-rs alone."""
