# Databricks notebook source
# MAGIC %md
# MAGIC # Weekly SLA report
# MAGIC The page that `jmxlake report` writes, for the lake and the week chosen above.

# COMMAND ----------

dbutils.widgets.text("lake", "", "Lake: where the agents write")
dbutils.widgets.text("gold", "", "Gold: catalog.schema, if not below the lake")
dbutils.widgets.text("week", "", "ISO week, such as 2026-W47; empty: the last one")
dbutils.widgets.text("cluster", "", "Cluster id, if the lake has several")

# COMMAND ----------

from lakehouse import lake, periods, slo
from lakehouse.report.facts import facts, last_week
from lakehouse.report.page import render

place = lake.at(dbutils.widgets.get("lake"), dbutils.widgets.get("gold") or None)
week = dbutils.widgets.get("week")
period = periods.week(week) if week else last_week(spark, place)
objectives = slo.load(slo.SHIPPED)
told = facts(spark, place, objectives, period, cluster=dbutils.widgets.get("cluster") or None)

# COMMAND ----------

displayHTML(render(told))
