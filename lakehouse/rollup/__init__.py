"""The rollup: from bronze to gold, by Spark or without it.

``engine`` is what it asks of either; ``spark_engine`` and ``local_engine`` are the two.
"""

from lakehouse.rollup.run import KEEP_WINDOWS_DAYS, Done, Outcome, Wanted, rollup

__all__ = ["KEEP_WINDOWS_DAYS", "Done", "Outcome", "Wanted", "rollup"]
