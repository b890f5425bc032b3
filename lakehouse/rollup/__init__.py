"""The rollup: from bronze to gold, by Spark or without it (see ``lakehouse.engines``)."""

from lakehouse.rollup.run import Done, Outcome, Wanted, rollup

__all__ = ["Done", "Outcome", "Wanted", "rollup"]
