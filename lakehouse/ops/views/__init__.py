"""SQL views of gold: one for each question, in readable names and units, for several engines."""
