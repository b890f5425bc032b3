"""Errors of the lakehouse: one tree below ``LakehouseError``."""

from typing import Final

from lakehouse.tables import error_text

_LONGEST: Final = 500
_RIGHTS: Final = (
    "grant USE CATALOG, USE SCHEMA and SELECT on bronze, and also CREATE TABLE and MODIFY on the "
    "three schemas of gold"
)
_HINTS: Final = {
    "S3AFileSystem not found": "a local Spark needs the jars of S3A for a bucket (docs/engines.md)",
    "UNAUTHENTICATED": "the token of the catalog is expired or wrong. Set a new token for Spark",
    "PERMISSION_DENIED": _RIGHTS,
    "INSUFFICIENT_PERMISSIONS": _RIGHTS,
    "SCHEMA_NOT_FOUND": "create the schema, or use another schema",
    "stopped SparkContext": "check the cluster in spark.master, then run the command again",
    "SESSION_CHANGED": "run the command again",
    "SESSION_NOT_FOUND": "the server ended the session or was restarted. Run the command again",
    "StatusCode.UNAVAILABLE": "the server in SPARK_REMOTE does not respond. Start it, then run the "
    "command again",
}
"""Advice for errors of Spark, by a word in them."""


_NO_CAUSE: Final = ("An error occurred while calling", "<_")
"""Start of the first line in errors of py4j and gRPC."""


def one_line(error: BaseException) -> str:
    """Return the text of a library's error as one line, truncated, without secrets."""
    return error_text.one_line(str(error))[:_LONGEST] or type(error).__name__


def is_of_spark(error: BaseException) -> bool:
    """Return True for an error of Spark; classic Spark and Connect have no common class."""
    return type(error).__module__.split(".")[0] in {"pyspark", "py4j", "grpc"}


def line_of_spark(error: BaseException) -> str:
    """Return the first line with the cause in Spark's text, without secrets."""
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip(" :")]
    causes = [line for line in lines if not line.startswith(_NO_CAUSE)]
    return error_text.one_line(next(iter(causes or lines), repr(error)))[:_LONGEST]


def spark_failed(error: BaseException) -> str:
    """Return one line about an error of Spark: cause, and advice if there is any."""
    hint = next((f"; {advice}" for word, advice in _HINTS.items() if word in str(error)), "")
    return f"Spark failed: {line_of_spark(error)}{hint}"


def extra(name: str) -> str:
    """Return the installation of an extra; jmxlake is not on a package index."""
    return f"jmxlake[{name}] (in a checkout pip install '.[{name}]', otherwise use the wheel)"


class LakehouseError(Exception):
    """Base of all errors. Its text is one line: place, problem and fix."""


class LakeNotFoundError(LakehouseError):
    """The place has no lake."""


class TableNotFoundError(LakehouseError):
    """The lake lacks a table."""


class TableSchemaError(LakehouseError):
    """The schema of a table is not supported by this version."""


class OlderGoldError(TableSchemaError):
    """An older version wrote gold; ``jmxlake upgrade`` converts it."""


class TableLogError(TableSchemaError):
    """A table's log refers to a file outside the table, or has a wrong number of rows."""


class EngineError(LakehouseError):
    """The engine could not start, or failed."""


class LogExpiredError(LakehouseError):
    """The log of bronze expired, or files were removed, before a rollup read them."""


class LakeReplacedError(LakehouseError):
    """Bronze was restored or replaced after the last rollup."""


class MissingFilesError(LakehouseError):
    """Data files in a table's log do not exist.

    Attributes:
        layer: Layer of the table, bronze or gold.
    """

    def __init__(self, text: str, layer: str) -> None:
        super().__init__(text)
        self.layer = layer


class LeaseHeldError(LakehouseError):
    """Another rollup writes to gold."""


class LeaseLostError(LakehouseError):
    """Another writer changed gold, so this rollup must stop."""


class MaintenanceError(LakehouseError):
    """Maintenance of a table of bronze failed. Completed steps are kept."""


class MaintenanceConflictError(MaintenanceError):
    """Another writer committed first. The next round tries again."""


class ForeignEngineError(MaintenanceError):
    """An engine other than delta-rs wrote to a table of bronze."""


class ObjectiveError(LakehouseError):
    """The file of an objective is invalid."""


class MaintenanceFileError(LakehouseError):
    """A file of planned maintenance or of corrections is invalid."""


class PeriodError(LakehouseError):
    """The requested period is invalid or has no data."""


class SubjectError(LakehouseError):
    """The requested name matches zero or several subjects."""


class JobFailedError(LakehouseError):
    """A command that ran as a job failed; its output is on standard error."""


class OwnersError(LakehouseError):
    """The owners file is invalid, or does not contain the team."""


class PrintError(LakehouseError):
    """The page could not be printed: the browser is missing or failed."""


class SendError(LakehouseError):
    """A report could not be sent, or its settings are invalid. The text has no secrets."""


class ConfigFileError(LakehouseError):
    """A file of options cannot be read, or has an invalid option."""


class FactsError(LakehouseError):
    """A file is not a report.json that this version can read."""
