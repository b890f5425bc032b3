"""The lake: table declarations, Spark rollups, service level figures and reports."""
