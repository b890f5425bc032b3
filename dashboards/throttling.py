# Databricks notebook source
# MAGIC %md
# MAGIC # Which clients did quotas slow down?
# MAGIC KIP-13: how long each client was throttled, against which quota. Kafka shows a throttle
# MAGIC for up to a minute after it ended; the lower bound takes that away.

# COMMAND ----------

from lakehouse.notebooks import Notebook

notebook = Notebook(spark, dbutils.widgets)
displayHTML(notebook.question("throttling"))

# COMMAND ----------

# MAGIC %md
# MAGIC The worst hours of each client. The widgets fill in `:clients` (the table's name),
# MAGIC `:cluster`, `:start` and `:end`, as values and never as text. A null is shown as not known.

# COMMAND ----------

displayHTML(
    notebook.sql("""
    SELECT `user`, client_id, metric, `window` AS hour,
           any_us / 6e7 AS minutes, any_low_us / 6e7 AS at_least, any_high_us / 6e7 AS at_most,
           `max` AS worst_ms
    FROM IDENTIFIER(:clients)
    WHERE cluster = :cluster AND `window` >= :start AND `window` < :end
      AND metric LIKE 'kafka.client.%.throttle_time' AND any_high_us > 0
    ORDER BY any_high_us DESC, `user`, client_id, hour
""")
)
