# Databricks notebook source
# MAGIC %md
# MAGIC # Could every topic be written to safely?
# MAGIC KIP-164: partitions under their min ISR, or without a leader. A producer that asks for
# MAGIC `acks=all` is refused meanwhile.

# COMMAND ----------

from lakehouse.notebooks import Notebook

notebook = Notebook(spark, dbutils.widgets)
displayHTML(notebook.question("min-isr"))

# COMMAND ----------

# MAGIC %md
# MAGIC The worst topics by day. The widgets fill in `:topics` (the table's name), `:cluster`,
# MAGIC `:start` and `:end`, as values and never as text. A null is shown as not known.

# COMMAND ----------

displayHTML(
    notebook.sql("""
    SELECT topic, date AS day, metric, sum(any_us) / 6e7 AS minutes,
           sum(any_low_us) / 6e7 AS at_least, sum(any_high_us) / 6e7 AS at_most,
           max(max_concurrent) AS partitions_at_once
    FROM IDENTIFIER(:topics)
    WHERE cluster = :cluster AND `window` >= :start AND `window` < :end
      AND metric IN ('kafka.partition.under_min_isr', 'kafka.partition.leaderless')
      AND any_high_us > 0
    GROUP BY topic, day, metric
    ORDER BY at_most DESC, topic, day
""")
)
