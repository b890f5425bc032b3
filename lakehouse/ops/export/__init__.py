"""Tables of gold as Parquet, CSV or OpenMetrics files, by delta-rs alone."""
