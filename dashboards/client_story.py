# Databricks notebook source
# MAGIC %md
# MAGIC # One client
# MAGIC The events of one client in the week, as `jmxlake explain` prints them: time, size,
# MAGIC likely cause, and time that was not observed. Write its name in the
# MAGIC widget `client`: `alice/billing`, `user:alice` or `client:billing`.

# COMMAND ----------

from lakehouse.notebooks.cells import Notebook

notebook = Notebook(spark, dbutils.widgets, "clients", client="A client, such as alice/billing")
displayHTML(notebook.story())

# COMMAND ----------

# MAGIC %md
# MAGIC The client's hours. The view `clients` has this week's rows of this cluster; gold's table
# MAGIC of that name has all. A null is not known, and not zero.

# COMMAND ----------

# MAGIC %sql
# MAGIC SELECT `window` AS hour, metric, any_us / 6e7 AS minutes_above_0, mean, `max`,
# MAGIC        observed_us / 6e7 AS minutes_observed
# MAGIC FROM clients
# MAGIC WHERE :client IN (`user`, client_id, 'user:' || `user`, 'client:' || client_id,
# MAGIC                   `user` || '/' || client_id)
# MAGIC ORDER BY `window`, metric
