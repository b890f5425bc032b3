# Databricks notebook source
# MAGIC %md
# MAGIC # Consumer lag
# MAGIC Unread records of consumer groups, and the age of the oldest of them. A group that has read
# MAGIC every record of the scrape before does not lag.

# COMMAND ----------

from lakehouse.notebooks.notebook import Notebook

notebook = Notebook(globals(), "consumer_lag")
notebook.show(notebook.question("lag"))

# COMMAND ----------

# MAGIC %md
# MAGIC Lag by day. The view `consumer_lag` has the rows of the chosen period, cluster and team,
# MAGIC with the columns `day` (in the chosen time zone) and `team`. Gold's table of that name has
# MAGIC all rows. Null means unknown, not zero.

# COMMAND ----------

# MAGIC %sql
# MAGIC SELECT consumer_group, topic, day, sum(behind_us) / 6e7 AS minutes_behind,
# MAGIC        sum(behind_low_us) / 6e7 AS at_least, sum(behind_high_us) / 6e7 AS at_most,
# MAGIC        max(records_max) AS most_unread_records,
# MAGIC        max(seconds_low_max) AS oldest_at_least_seconds,
# MAGIC        sum(seen_us) / 3.6e9 AS hours_observed
# MAGIC FROM consumer_lag
# MAGIC GROUP BY consumer_group, topic, day
# MAGIC ORDER BY at_most DESC, consumer_group, topic, day
