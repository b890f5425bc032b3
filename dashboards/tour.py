# Databricks notebook source
# MAGIC %md
# MAGIC # A tour of the lake
# MAGIC The tables, their rows and periods, and the subjects of the cluster. Agents write bronze;
# MAGIC the rollup computes gold from it.

# COMMAND ----------

from lakehouse.notebooks.notebook import Notebook

notebook = Notebook(globals(), "coverage")
notebook.show(notebook.tour())

# COMMAND ----------

# MAGIC %md
# MAGIC Coverage by source and family. The view `coverage` has the rows of the chosen period,
# MAGIC cluster and team, with the columns `day` (in the chosen time zone) and `team`. Gold's table
# MAGIC of that name has all rows. Null means unknown, not zero.

# COMMAND ----------

# MAGIC %sql
# MAGIC SELECT source, family, outcome, sum(outcome_us) / 3.6e9 AS hours, sum(scrapes) AS readings
# MAGIC FROM coverage
# MAGIC GROUP BY source, family, outcome
# MAGIC ORDER BY outcome = 'ok', hours DESC, source, family, outcome
