# Databricks notebook source
# MAGIC %md
# MAGIC # A tour of the lake
# MAGIC What each table holds, how much of it, and whom it tells of. Bronze is what the agents
# MAGIC wrote, gold what the rollup makes of it.

# COMMAND ----------

from lakehouse.notebooks import Notebook

notebook = Notebook(spark, dbutils.widgets)
displayHTML(notebook.tour())

# COMMAND ----------

# MAGIC %md
# MAGIC How much of the week was seen, and by whom. The widgets fill in `:coverage` (the table's
# MAGIC name), `:cluster`, `:start` and `:end`, as values and never as text. A null is told as not
# MAGIC known.

# COMMAND ----------

displayHTML(
    notebook.sql("""
    SELECT source, family, outcome, sum(duration_us) / 3.6e9 AS hours, sum(scrapes) AS readings
    FROM IDENTIFIER(:coverage)
    WHERE cluster = :cluster AND `window` >= :start AND `window` < :end
    GROUP BY source, family, outcome
    ORDER BY outcome = 'ok', hours DESC, source, family, outcome
""")
)
