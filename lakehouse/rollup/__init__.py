"""The rollup: from bronze to gold, by Spark or without it (see ``lakehouse.engines``)."""
