# Databricks notebook source
# MAGIC %md
# MAGIC # Did tiered storage keep up?
# MAGIC KIP-963: what waits on the brokers' disks for its upload, and in the remote store for its
# MAGIC deletion.

# COMMAND ----------

from lakehouse.notebooks import Notebook

notebook = Notebook(spark, dbutils.widgets)
displayHTML(notebook.question("tier-lag"))

# COMMAND ----------

# MAGIC %md
# MAGIC Lag by day. The widgets fill in `:topics` (the table's name), `:cluster`, `:start` and
# MAGIC `:end`, as values and never as text. A null is shown as not known.

# COMMAND ----------

displayHTML(
    notebook.sql("""
    SELECT topic, date AS day, metric,
           sum(any_us) / 3.6e9 AS hours_behind, max(max_total) / 1048576 AS most_mib,
           bool_or(known_wrong) AS reported_wrongly_by_this_kafka
    FROM IDENTIFIER(:topics)
    WHERE cluster = :cluster AND `window` >= :start AND `window` < :end
      AND metric IN ('kafka.topic.remote_copy_lag.bytes', 'kafka.topic.remote_delete_lag.bytes')
    GROUP BY topic, day, metric
    ORDER BY most_mib DESC NULLS FIRST, topic, day
""")
)
