# Databricks notebook source
# MAGIC %md
# MAGIC # Tiered storage
# MAGIC KIP-963: segments on the brokers' disks that are not uploaded yet, and segments in remote
# MAGIC storage that are not deleted yet.

# COMMAND ----------

from lakehouse.notebooks.notebook import Notebook

notebook = Notebook(globals(), "topics")
notebook.show(notebook.question("tier-lag"))

# COMMAND ----------

# MAGIC %md
# MAGIC Lag by day. The view `topics` has the rows of the chosen period, cluster and team, with the
# MAGIC columns `day` (in the chosen time zone) and `team`. Gold's table of that name has all rows.
# MAGIC Null means unknown, not zero.

# COMMAND ----------

# MAGIC %sql
# MAGIC SELECT topic, day, metric,
# MAGIC        sum(affected_us) / 3.6e9 AS hours_behind, max(max_total) / 1048576 AS most_mib,
# MAGIC        bool_or(known_wrong) AS reported_wrongly_by_this_kafka
# MAGIC FROM topics
# MAGIC WHERE metric IN ('kafka.topic.remote_copy_lag.bytes', 'kafka.topic.remote_delete_lag.bytes')
# MAGIC GROUP BY topic, day, metric
# MAGIC ORDER BY most_mib DESC NULLS FIRST, topic, day
