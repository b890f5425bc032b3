# Databricks notebook source
# MAGIC %md
# MAGIC # Unread data loss
# MAGIC KIP-490: offsets that retention deleted before a group read them. Transaction
# MAGIC markers and aborted records also occupy offsets.

# COMMAND ----------

from lakehouse.notebooks.notebook import Notebook

notebook = Notebook(globals(), "lost_offsets")
notebook.show(notebook.question("lost"))

# COMMAND ----------

# MAGIC %md
# MAGIC Losses by day. Losses of a group in unknown time are unknown. The view `lost_offsets` has
# MAGIC the rows of the chosen period, cluster and team, with the columns `day` (in the chosen time
# MAGIC zone) and `team`. Gold's table of that name has all rows. Null means unknown, not zero.

# COMMAND ----------

# MAGIC %sql
# MAGIC SELECT consumer_group, topic, partition_id, day,
# MAGIC        sum(offsets_low) AS at_least, sum(offsets_high) AS at_most,
# MAGIC        sum(series_seen_us) / 3.6e9 AS hours_observed,
# MAGIC        sum(series_unknown_us) / 3.6e9 AS hours_unknown
# MAGIC FROM lost_offsets
# MAGIC GROUP BY consumer_group, topic, partition_id, day
# MAGIC ORDER BY at_most DESC, hours_unknown DESC, consumer_group, topic, partition_id
