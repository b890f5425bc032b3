# Databricks notebook source
# MAGIC %md
# MAGIC # Remote reads
# MAGIC KIP-1002: consumers with a large lag read from remote storage, which costs requests for
# MAGIC records and for indexes.

# COMMAND ----------

from lakehouse.notebooks.cells import Notebook

notebook = Notebook(spark, dbutils.widgets, "topics")
displayHTML(notebook.question("remote-reads"))

# COMMAND ----------

# MAGIC %md
# MAGIC Remote reads by day. The view `topics` has this week's rows of this cluster; gold's table
# MAGIC of that name has all rows. Null means unknown, not zero.

# COMMAND ----------

# MAGIC %sql
# MAGIC SELECT topic, date AS day,
# MAGIC     sum(increase) FILTER (WHERE metric = 'kafka.topic.remote_fetch.requests') AS requests,
# MAGIC     sum(increase) FILTER (WHERE metric = 'kafka.topic.remote_fetch.bytes') AS bytes,
# MAGIC     sum(increase) FILTER (WHERE metric = 'kafka.topic.remote_fetch.errors') AS errors
# MAGIC FROM topics
# MAGIC WHERE metric LIKE 'kafka.topic.remote_fetch.%'
# MAGIC GROUP BY topic, day
# MAGIC ORDER BY bytes DESC NULLS FIRST, topic, day
