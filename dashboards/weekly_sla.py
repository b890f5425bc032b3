# Databricks notebook source
# MAGIC %md
# MAGIC # Weekly SLA report
# MAGIC The page that `jmxlake report` writes, for the week chosen above.

# COMMAND ----------

from lakehouse.notebooks import Notebook

notebook = Notebook(spark, dbutils.widgets)
displayHTML(notebook.report())

# COMMAND ----------

# MAGIC %md
# MAGIC What was published of the week, the last statement of each figure. The widgets fill in
# MAGIC `:sla` (the table's name), `:cluster`, `:start` and `:end`, as values and never as text. A
# MAGIC null is shown as not known.

# COMMAND ----------

displayHTML(
    notebook.sql("""
    SELECT objective, `window` AS since, window_end AS until, verdict, count(*) AS subjects,
           min(attainment) AS lowest_attainment, min(attainment_low) AS if_unknown_was_bad,
           sum(unknown_us) / 3.6e9 AS unknown_hours
    FROM (
      SELECT *, row_number() OVER (
        PARTITION BY objective, `window`, window_end,
                     topic, partition, `user`, client_id, `group`, source
        ORDER BY statement DESC) AS newest
      FROM IDENTIFIER(:sla)
      WHERE cluster = :cluster AND window_end > :start AND window_end <= :end)
    WHERE newest = 1
    GROUP BY objective, `window`, window_end, verdict
    ORDER BY objective, since, until, verdict
""")
)
