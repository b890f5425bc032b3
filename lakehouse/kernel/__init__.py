"""The rollup's SQL and what runs it: from runs of bronze to rows of gold, by any engine."""
