"""The rollup's SQL and its execution: from runs of bronze to rows of gold, in any engine."""
