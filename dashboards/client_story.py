# Databricks notebook source
# MAGIC %md
# MAGIC # One client's story
# MAGIC All that was bad for one client in the week, as `jmxlake explain` tells it: when, how bad,
# MAGIC told by whom, and who was silent meanwhile. Name it in the widget `client`:
# MAGIC `alice/billing`, `user:alice` or `client:billing`.

# COMMAND ----------

from lakehouse.notebooks import Notebook

notebook = Notebook(spark, dbutils.widgets, client="A client, such as alice/billing")
displayHTML(notebook.story())

# COMMAND ----------

# MAGIC %md
# MAGIC The client's hours. The widgets fill in `:clients` (the table's name), `:cluster`,
# MAGIC `:start`, `:end` and `:client`, as values and never as text. A null is told as not known.

# COMMAND ----------

displayHTML(
    notebook.sql("""
    SELECT `window` AS hour, metric, any_us / 6e7 AS minutes_above_0, mean, `max`,
           observed_us / 6e7 AS minutes_observed
    FROM IDENTIFIER(:clients)
    WHERE cluster = :cluster AND `window` >= :start AND `window` < :end
      AND :client IN (`user`, client_id, 'user:' || `user`, 'client:' || client_id,
                      `user` || '/' || client_id)
    ORDER BY `window`, metric
""")
)
