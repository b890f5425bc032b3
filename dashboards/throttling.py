# Databricks notebook source
# MAGIC %md
# MAGIC # Client throttling
# MAGIC KIP-13: throttled time of each client, and its quota. Kafka reports a throttle for up to a
# MAGIC minute after its end; the lower bound excludes that minute.

# COMMAND ----------

from lakehouse.notebooks.notebook import Notebook

notebook = Notebook(globals(), "clients")
notebook.show(notebook.question("throttling"))

# COMMAND ----------

# MAGIC %md
# MAGIC The worst hours of each client. The view `clients` has the rows of the chosen period,
# MAGIC cluster and team, with the columns `day` (in the chosen time zone) and `team`. Gold's table
# MAGIC of that name has all rows. Null means unknown, not zero.

# COMMAND ----------

# MAGIC %sql
# MAGIC SELECT user_name, client_id, metric, hour, affected_us / 6e7 AS minutes,
# MAGIC        affected_low_us / 6e7 AS at_least, affected_high_us / 6e7 AS at_most,
# MAGIC        value_max AS worst_ms
# MAGIC FROM clients
# MAGIC WHERE metric LIKE 'kafka.client.%.throttle_time' AND affected_high_us > 0
# MAGIC ORDER BY affected_high_us DESC, user_name, client_id, hour
