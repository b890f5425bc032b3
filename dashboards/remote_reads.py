# Databricks notebook source
# MAGIC %md
# MAGIC # What was read back from the remote store?
# MAGIC KIP-1002: consumers that are far behind read from the remote store, which costs round
# MAGIC trips for records and for indexes.

# COMMAND ----------

from lakehouse.notebooks import Notebook

notebook = Notebook(spark, dbutils.widgets)
displayHTML(notebook.question("remote-reads"))

# COMMAND ----------

# MAGIC %md
# MAGIC What was read by day. The widgets fill in `:topics` (the table's name), `:cluster`,
# MAGIC `:start` and `:end`, as values and never as text. A null is shown as not known.

# COMMAND ----------

displayHTML(
    notebook.sql("""
    SELECT topic, date AS day,
           sum(increase) FILTER (WHERE metric = 'kafka.topic.remote_fetch.requests') AS requests,
           sum(increase) FILTER (WHERE metric = 'kafka.topic.remote_fetch.bytes') AS bytes,
           sum(increase) FILTER (WHERE metric = 'kafka.topic.remote_fetch.errors') AS errors
    FROM IDENTIFIER(:topics)
    WHERE cluster = :cluster AND `window` >= :start AND `window` < :end
      AND metric LIKE 'kafka.topic.remote_fetch.%'
    GROUP BY topic, day
    ORDER BY bytes DESC NULLS FIRST, topic, day
""")
)
