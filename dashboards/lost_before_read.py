# Databricks notebook source
# MAGIC %md
# MAGIC # Unread data loss
# MAGIC KIP-490: offsets that retention deleted before a group read them. Transaction
# MAGIC markers and aborted records occupy offsets, too.

# COMMAND ----------

from lakehouse.notebooks.cells import Notebook

notebook = Notebook(spark, dbutils.widgets, "non_consumed")
displayHTML(notebook.question("lost"))

# COMMAND ----------

# MAGIC %md
# MAGIC Losses by day. How much a group lost in unknown time is not known. The view `non_consumed`
# MAGIC has this week's rows of this cluster; gold's table of that name has all. A null is not
# MAGIC known, and not zero.

# COMMAND ----------

# MAGIC %sql
# MAGIC SELECT `group`, topic, `partition`, date AS day,
# MAGIC        sum(offsets_low) AS at_least, sum(offsets_high) AS at_most,
# MAGIC        sum(observed_us) / 3.6e9 AS hours_observed, sum(unknown_us) / 3.6e9 AS hours_unknown
# MAGIC FROM non_consumed
# MAGIC GROUP BY `group`, topic, `partition`, day
# MAGIC ORDER BY at_most DESC, hours_unknown DESC, `group`, topic, `partition`
