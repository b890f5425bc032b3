"""Every table of a lake, declared once and free of any engine.

delta-rs (the agents) and Spark (the rollup) both build their schemas from these declarations.
Types are written as Spark SQL spells them. Durations are whole microseconds (``_us``), so that
sums do not depend on the order of addition; instants are UTC with microseconds; a value that was
observed as idle (NaN on the bean) is NULL, never NaN.
"""

from lakehouse.tables.bronze import *
from lakehouse.tables.gold import *
from lakehouse.tables.rollup_state import *
from lakehouse.tables.table import Column as Column, Table as Table
