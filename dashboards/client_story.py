# Databricks notebook source
# MAGIC %md
# MAGIC # Timeline of one client
# MAGIC The client's week as in `jmxlake explain`: related events of the report, its incidents with
# MAGIC the sources that reported them, gaps and changes. Write its name in the widget `client`:
# MAGIC `alice/billing`, `user:alice` or `client:billing`.

# COMMAND ----------

from lakehouse.notebooks.notebook import Notebook

notebook = Notebook(globals(), "clients", client="A client, such as alice/billing")
notebook.show(notebook.story())

# COMMAND ----------

# MAGIC %md
# MAGIC The client's hours. The view `clients` has the rows of the chosen period, cluster and team,
# MAGIC with the columns `day` (in the chosen time zone) and `team`. Gold's table of that name has
# MAGIC all rows. Null means unknown, not zero.

# COMMAND ----------

# MAGIC %sql
# MAGIC SELECT hour, metric, affected_us / 6e7 AS minutes_above_0, value_mean, value_max,
# MAGIC        series_seen_us / 6e7 AS broker_minutes_observed
# MAGIC FROM clients
# MAGIC WHERE :client IN (user_name, client_id, 'user:' || user_name, 'client:' || client_id,
# MAGIC                   user_name || '/' || client_id)
# MAGIC ORDER BY hour, metric
