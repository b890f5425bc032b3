# Databricks notebook source
# MAGIC %md
# MAGIC # Kafka SLO report
# MAGIC The HTML report of `jmxlake report` for the selected week: objectives, events with likely
# MAGIC causes, and details.

# COMMAND ----------

from lakehouse.notebooks.cells import Notebook

notebook = Notebook(spark, dbutils.widgets, "sla")
displayHTML(notebook.report())

# COMMAND ----------

# MAGIC %md
# MAGIC Published SLO results of the week, the latest of each. The view `sla` has this
# MAGIC week's rows of this cluster; gold's table of that name has all rows. Null means
# MAGIC unknown, not zero.

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
