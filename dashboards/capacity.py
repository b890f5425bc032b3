# Databricks notebook source
# MAGIC %md
# MAGIC # Capacity
# MAGIC Size of each topic on brokers' disks, and the time until its fullest partition reaches
# MAGIC `retention.bytes` at the growth of the period.

# COMMAND ----------

from lakehouse.notebooks.notebook import Notebook

notebook = Notebook(globals(), "topics")
notebook.show(notebook.question("capacity"))

# COMMAND ----------

# MAGIC %md
# MAGIC Size by day. A gibibyte-hour is a GiB on a disk for an hour. The view `topics` has the rows
# MAGIC of the chosen period, cluster and team, with the columns `day` (in the chosen time zone) and
# MAGIC `team`. Gold's table of that name has all rows. Null means unknown, not zero.

# COMMAND ----------

# MAGIC %sql
# MAGIC SELECT topic, day, sum(value_seconds) / 3600 / 1073741824 AS gib_hours,
# MAGIC        max(value_max) / 1073741824 AS largest_replica_gib,
# MAGIC        sum(series_seen_us) / 3.6e9 AS replica_hours_observed
# MAGIC FROM topics
# MAGIC WHERE metric = 'kafka.log.size'
# MAGIC GROUP BY topic, day
# MAGIC ORDER BY gib_hours DESC NULLS FIRST, topic, day
