"""Every table of a lake, declared once and free of any engine.

delta-rs (agents) and Spark (rollup) build their schemas from these declarations. Types are those of
Spark SQL. Durations are whole microseconds (``_us``), so sums do not depend on the order of
addition. Instants are UTC with microseconds. An idle value (NaN on the MBean) is NULL, never NaN.
"""

from lakehouse.tables.bronze import *
from lakehouse.tables.gold import *
from lakehouse.tables.gold_without_hours import *
from lakehouse.tables.table import Column as Column, Table as Table
