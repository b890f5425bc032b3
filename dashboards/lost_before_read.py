# Databricks notebook source
# MAGIC %md
# MAGIC # Was anything deleted before it was read?
# MAGIC KIP-490: offsets that retention removed before a group had consumed them. Transaction
# MAGIC markers and aborted records occupy offsets, too.

# COMMAND ----------

from lakehouse.notebooks import Notebook

notebook = Notebook(spark, dbutils.widgets)
displayHTML(notebook.question("lost"))

# COMMAND ----------

# MAGIC %md
# MAGIC Losses by day; in unknown time a group may have lost anything. The widgets fill in
# MAGIC `:non_consumed` (the table's name), `:cluster`, `:start` and `:end`, as values and never
# MAGIC as text. A null is shown as not known.

# COMMAND ----------

displayHTML(
    notebook.sql("""
    SELECT `group`, topic, `partition`, date AS day,
           sum(offsets_low) AS at_least, sum(offsets_high) AS at_most,
           sum(observed_us) / 3.6e9 AS hours_observed, sum(unknown_us) / 3.6e9 AS hours_unknown
    FROM IDENTIFIER(:non_consumed)
    WHERE cluster = :cluster AND `window` >= :start AND `window` < :end
    GROUP BY `group`, topic, `partition`, day
    ORDER BY at_most DESC, hours_unknown DESC, `group`, topic, `partition`
""")
)
