"""Gold computed twice more from bronze, by code that knows nothing of the engine.

``plain`` is Python over decoded runs: it takes unions of intervals by merging them. ``duck`` is SQL
over the same files: it cuts time at every edge and asks each slice what held in it. Both are
written from the column comments of ``lakehouse.tables`` and docs/rollup.md, go from the finest rows
straight to every grain, and take nothing from ``lakehouse`` but names.
"""
