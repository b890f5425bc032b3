# Databricks notebook source
# MAGIC %md
# MAGIC # Kafka SLO report
# MAGIC The HTML report of `jmxlake report` for the selected week: objectives, events with likely
# MAGIC causes, and details.

# COMMAND ----------

from lakehouse.notebooks.notebook import Notebook

notebook = Notebook(globals(), "sla")
notebook.show(notebook.report())

# COMMAND ----------

# MAGIC %md
# MAGIC Published SLO results of the period, the latest of each. The view `sla` has the rows of the
# MAGIC chosen period, cluster and team, with the columns `day` (in the chosen time zone) and
# MAGIC `team`. Gold's table of that name has all rows. Null means unknown, not zero.

# COMMAND ----------

# MAGIC %sql
# MAGIC SELECT objective, period_start AS since, period_end AS until, verdict, count(*) AS subjects,
# MAGIC        min(attainment) AS lowest_attainment, min(attainment_low) AS if_unknown_was_bad,
# MAGIC        sum(unknown_us) / 3.6e9 AS unknown_hours
# MAGIC FROM (
# MAGIC   SELECT *, row_number() OVER (
# MAGIC     PARTITION BY objective, period_start, period_end,
# MAGIC                  topic, partition_id, user_name, client_id, consumer_group, source
# MAGIC     ORDER BY statement DESC) AS newest
# MAGIC   FROM sla)
# MAGIC WHERE newest = 1
# MAGIC GROUP BY objective, period_start, period_end, verdict
# MAGIC ORDER BY objective, since, until, verdict
