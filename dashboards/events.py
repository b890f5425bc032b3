# Databricks notebook source
# MAGIC %md
# MAGIC # Events
# MAGIC Incidents that belong together, with their likely cause and the error budget that they used.

# COMMAND ----------

from lakehouse.notebooks.notebook import Notebook

notebook = Notebook(globals(), "incidents")
notebook.show(notebook.events())

# COMMAND ----------

# MAGIC %md
# MAGIC Observed bad time of each subject. An interval can continue an interval of the hour before.
# MAGIC The view `incidents` has the rows of the chosen period, cluster and team, with the columns
# MAGIC `day` (in the chosen time zone) and `team`. Gold's table of that name has all rows. Null
# MAGIC means unknown, not zero.

# COMMAND ----------

# MAGIC %sql
# MAGIC SELECT metric, topic, partition_id, user_name, client_id, consumer_group, source,
# MAGIC        min(started_at) AS first, max(ended_at) AS last,
# MAGIC        sum(unix_micros(ended_at) - unix_micros(started_at)) / 6e7 AS minutes,
# MAGIC        max(worst) AS worst
# MAGIC FROM incidents
# MAGIC GROUP BY metric, topic, partition_id, user_name, client_id, consumer_group, source
# MAGIC ORDER BY minutes DESC, metric, topic, partition_id, user_name, client_id, consumer_group,
# MAGIC          source
