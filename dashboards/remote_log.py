# Databricks notebook source
# MAGIC %md
# MAGIC # Tiered storage by partition
# MAGIC Segments of each partition that wait for upload or deletion, running uploads and segments
# MAGIC without a topic. It requires agents that read the log of tiered storage (section
# MAGIC `remote_log`).

# COMMAND ----------

from lakehouse.notebooks.notebook import Notebook

notebook = Notebook(globals(), "partitions")
notebook.show(notebook.question("remote-log"))

# COMMAND ----------

# MAGIC %md
# MAGIC Lag of each partition by day. The view `partitions` has the rows of the chosen period,
# MAGIC cluster and team, with the columns `day` (in the chosen time zone) and `team`. Gold's table
# MAGIC of that name has all rows. Null means unknown, not zero.

# COMMAND ----------

# MAGIC %sql
# MAGIC SELECT topic, partition_id, day, metric, max(value_max) AS highest,
# MAGIC        sum(series_affected_us) / 3.6e9 AS hours_above_0,
# MAGIC        sum(series_seen_us) / 3.6e9 AS hours_observed
# MAGIC FROM partitions
# MAGIC WHERE metric LIKE 'kafka.partition.upload%' OR metric LIKE 'kafka.partition.delete%'
# MAGIC    OR metric LIKE 'kafka.partition.remote%' OR metric LIKE 'kafka.cluster.remote_orphans%'
# MAGIC GROUP BY topic, partition_id, day, metric
# MAGIC ORDER BY topic, partition_id, metric, day
