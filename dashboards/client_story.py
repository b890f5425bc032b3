# Databricks notebook source
# MAGIC %md
# MAGIC # One client's story
# MAGIC Everything that was bad for one client in the week, as `jmxlake explain` prints it: when,
# MAGIC how bad, which source reported it, and which sources were silent. Write its name in the
# MAGIC widget `client`: `alice/billing`, `user:alice` or `client:billing`.

# COMMAND ----------

from lakehouse.notebooks import Notebook

notebook = Notebook(spark, dbutils.widgets, client="A client, such as alice/billing")
displayHTML(notebook.story())

# COMMAND ----------

# MAGIC %md
# MAGIC The client's hours. The widgets fill in `:clients` (the table's name), `:cluster`,
# MAGIC `:start`, `:end` and `:client`, as values and never as text. A null is shown as not known.

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
