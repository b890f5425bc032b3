"""SQL views of gold with readable names and units, for several engines."""
