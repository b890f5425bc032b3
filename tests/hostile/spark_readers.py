"""Reads hostile lakes with Spark, one after the other in one session: ``places/spark.py``.

The argument is a JSON list of ``[name, lake, table]``. A line of JSON for each says what came
of it: rows, or the kind and text of the error.
"""

from __future__ import annotations

import json
import sys

from lakehouse.core import lake as lakes, spark_session
from lakehouse.engines.spark_engine import SparkEngine
from lakehouse.errors import LakehouseError, is_of_spark, one_line
from lakehouse.rollup import gold_tables
from lakehouse.tables import BRONZE


def main() -> None:
    """Read each table as the rollup and the reports do."""
    tables = {table.path: table for table in (*BRONZE, *gold_tables.EVERY)}
    session = spark_session.session()
    for name, place, path in json.loads(sys.argv[1]):
        told = {"name": name, "kind": "", "error": "", "rows": ""}
        try:
            engine = SparkEngine(session, lakes.at(place))
            told["rows"] = str(engine.collect(engine.rows(tables[path])).to_pylist())
        except LakehouseError as error:
            told |= {"kind": "refused", "error": str(error)}
        except Exception as error:  # noqa: BLE001 - what a command would show as a traceback
            kind = "refused" if is_of_spark(error) else type(error).__name__
            told |= {"kind": kind, "error": one_line(error)}
        sys.stdout.write(json.dumps(told) + "\n")
    session.stop()


if __name__ == "__main__":
    main()
