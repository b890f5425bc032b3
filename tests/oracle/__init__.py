"""Gold computed once more from bronze, by code that knows nothing of the kernel.

Plain Python over decoded runs: it takes unions of intervals by merging them. It is written from the
column comments of ``lakehouse.tables`` and docs/rollup.md, and takes nothing else from
``lakehouse`` but names. Rows may come from memory (tests/unit/kernel) or from a lake.
"""
