# Databricks notebook source
# MAGIC %md
# MAGIC # Availability and min ISR
# MAGIC KIP-164: partitions under min ISR or without a leader. During this time brokers reject
# MAGIC `acks=all` writes.

# COMMAND ----------

from lakehouse.notebooks.notebook import Notebook

notebook = Notebook(globals(), "topics")
notebook.show(notebook.question("min-isr"))

# COMMAND ----------

# MAGIC %md
# MAGIC The worst topics by day. The view `topics` has the rows of the chosen period, cluster and
# MAGIC team, with the columns `day` (in the chosen time zone) and `team`. Gold's table of that name
# MAGIC has all rows. Null means unknown, not zero.

# COMMAND ----------

# MAGIC %sql
# MAGIC SELECT topic, day, metric, sum(affected_us) / 6e7 AS minutes,
# MAGIC        sum(affected_low_us) / 6e7 AS at_least, sum(affected_high_us) / 6e7 AS at_most,
# MAGIC        max(max_concurrent) AS partitions_at_once
# MAGIC FROM topics
# MAGIC WHERE metric IN ('kafka.partition.under_min_isr', 'kafka.partition.leaderless')
# MAGIC   AND affected_high_us > 0
# MAGIC GROUP BY topic, day, metric
# MAGIC ORDER BY at_most DESC, topic, day
