"""On a Python's path: its Spark Connect client refuses what Databricks serverless refuses.

Other settings than these (https://docs.databricks.com/spark/conf, "Configure Spark properties for
serverless"), and rows of more than 128 MB that a driver hands over. What pyspark asks for itself
passes: the platform's own client knows what it may ask.
"""

import sys
from typing import Any

from pyspark.errors.exceptions.connect import SparkConnectGrpcException
from pyspark.sql.connect.conf import RuntimeConf
from pyspark.sql.connect.session import SparkSession

ALLOWED = {
    "spark.databricks.execution.timeout",
    "spark.sql.ansi.enabled",
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.session.timeZone",
    "spark.sql.shuffle.partitions",
}
MOST_BYTES = 128 << 20


def refused(name: str) -> None:
    """As the server says it."""
    if name not in ALLOWED:
        said = f"[CONFIG_NOT_AVAILABLE] Configuration {name} is not available. SQLSTATE: 42K0I"
        raise SparkConnectGrpcException(message=said)


def _checked(method: Any) -> Any:
    def checked(self: RuntimeConf, key: str, *others: Any) -> Any:
        if not str(sys._getframe(1).f_globals["__name__"]).startswith("pyspark."):
            refused(key)
        return method(self, key, *others)

    return checked


def _small(method: Any) -> Any:
    def checked(self: SparkSession, data: Any, *others: Any, **named: Any) -> Any:
        if getattr(data, "nbytes", 0) > MOST_BYTES:
            raise SparkConnectGrpcException(message="[CONNECT_REQUEST_TOO_LARGE] 128 MB")
        return method(self, data, *others, **named)

    return checked


for name in ("get", "set", "unset", "isModifiable"):
    setattr(RuntimeConf, name, _checked(getattr(RuntimeConf, name)))
SparkSession.createDataFrame = _small(SparkSession.createDataFrame)  # type: ignore[method-assign]
