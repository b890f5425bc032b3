# Databricks notebook source
# MAGIC %md
# MAGIC # Remote reads
# MAGIC KIP-1002: consumers with a large lag read from remote storage, which costs requests for
# MAGIC records and for indexes.

# COMMAND ----------

from lakehouse.notebooks.notebook import Notebook

notebook = Notebook(globals(), "topics")
notebook.show(notebook.question("remote-reads"))

# COMMAND ----------

# MAGIC %md
# MAGIC Remote reads by day. The view `topics` has the rows of the chosen period, cluster and team,
# MAGIC with the columns `day` (in the chosen time zone) and `team`. Gold's table of that name has
# MAGIC all rows. Null means unknown, not zero.

# COMMAND ----------

# MAGIC %sql
# MAGIC SELECT topic, day,
# MAGIC     sum(increase) FILTER (WHERE metric = 'kafka.topic.remote_fetch.requests') AS requests,
# MAGIC     sum(increase) FILTER (WHERE metric = 'kafka.topic.remote_fetch.bytes') AS bytes,
# MAGIC     sum(increase) FILTER (WHERE metric = 'kafka.topic.remote_fetch.errors') AS errors
# MAGIC FROM topics
# MAGIC WHERE metric LIKE 'kafka.topic.remote_fetch.%'
# MAGIC GROUP BY topic, day
# MAGIC ORDER BY bytes DESC NULLS FIRST, topic, day
