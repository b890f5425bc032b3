# Databricks notebook source
# MAGIC %md
# MAGIC # A tour of the lake
# MAGIC The tables, their rows and periods, and the subjects of the cluster. Agents write bronze;
# MAGIC the rollup computes gold from it.

# COMMAND ----------

from lakehouse.notebooks import Notebook

notebook = Notebook(spark, dbutils.widgets)
displayHTML(notebook.tour())

# COMMAND ----------

# MAGIC %md
# MAGIC Coverage of the week, by source and family. The widgets fill in `:coverage` (the table's
# MAGIC name), `:cluster`, `:start` and `:end`, as values and never as text. A null is shown as not
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
