"""What can go wrong in the lakehouse, as one tree.

LakehouseError
├── LakeNotFoundError       there is no lake at that place
├── TableNotFoundError      the lake lacks a table
├── TableSchemaError        a table there has another schema
│   └── TableLogError           a table's log names what is not in the table
├── EngineError             Spark could not start, or failed at work
├── LogExpiredError         what is new in bronze cannot be read any more; it is computed again
├── LakeReplacedError       bronze is not the one that was rolled up
├── MissingFilesError       data files that a table's log names are gone
├── LeaseHeldError          another rollup is at work
├── LeaseLostError          another rollup has taken over, or gold was changed meanwhile
├── MaintenanceError        a table of bronze could not be maintained; it is tried again
│   ├── MaintenanceConflictError   another writer was faster; the next round tries again
│   └── ForeignEngineError         another engine wrote to it: a person must look
├── ObjectiveError          an objective's file is wrong
├── MaintenanceFileError    a file of planned maintenance, or of corrections, is wrong
├── JobFailedError          a command that ran as a job ended with another code than 0
├── OwnersError             the file of owners is wrong
├── PrintError              no browser prints the page
├── SendError               a report could not be sent, or its settings are wrong
├── ConfigFileError         a file of a command's options is wrong
├── FactsError              a file is no report.json that this version can read
├── PeriodError             the period asked for makes no sense
└── SubjectError            no subject, or more than one, has the name asked for
"""

from typing import Final

from lakehouse.tables import error_text

_LONGEST: Final = 500
_RIGHTS: Final = (
    "grant USE CATALOG, USE SCHEMA and SELECT on bronze, and CREATE TABLE and MODIFY too on gold's "
    "three schemas"
)
_HINTS: Final = {
    "S3AFileSystem not found": "for a bucket a local Spark needs the jars of S3A: "
    "docs/engines.md, S3",
    "UNAUTHENTICATED": "the catalog's token has expired or is wrong: give Spark a new token",
    "PERMISSION_DENIED": _RIGHTS,
    "INSUFFICIENT_PERMISSIONS": _RIGHTS,
    "SCHEMA_NOT_FOUND": "create the schema, or name another",
    "stopped SparkContext": "is the cluster up that spark.master names? Then run it again",
    "SESSION_CHANGED": "run it again",
    "SESSION_NOT_FOUND": "the server has ended the session, or was restarted: run it again",
    "StatusCode.UNAVAILABLE": "the server that SPARK_REMOTE names does not answer: start it, then "
    "run it again",
}
"""What to do about an error of Spark's, by a word in it."""


def one_line(error: BaseException) -> str:
    """Return the text of a library's error as one line, cut off, without secrets."""
    return error_text.one_line(str(error))[:_LONGEST] or type(error).__name__


def is_of_spark(error: BaseException) -> bool:
    """Whether an error is one of Spark's own; those of classic Spark and Connect share no class."""
    return type(error).__module__.split(".")[0] in {"pyspark", "py4j", "grpc"}


def line_of_spark(error: BaseException) -> str:
    """Return the first line of Spark's text that says why, without secrets."""
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip(" :")]
    # The first line of py4j only says that a call failed.
    causes = [line for line in lines if not line.startswith("An error occurred while calling")]
    return error_text.one_line(next(iter(causes or lines), repr(error)))[:_LONGEST]


def spark_failed(error: BaseException) -> str:
    """Return one line on an error of Spark's own: why, and what to do if that is known."""
    hint = next((f"; {what}" for word, what in _HINTS.items() if word in str(error)), "")
    return f"Spark failed: {line_of_spark(error)}{hint}"


def extra(name: str) -> str:
    """What to install where a package of an extra is missing: jmxlake is on no package index."""
    return f"jmxlake[{name}] (in a checkout pip install '.[{name}]', else the wheel with [{name}])"


class LakehouseError(Exception):
    """Base of all errors; its text is one line: what, where and what to do."""


class LakeNotFoundError(LakehouseError):
    """There is no lake at that place."""


class TableNotFoundError(LakehouseError):
    """The lake lacks a table."""


class TableSchemaError(LakehouseError):
    """A table of the lake has another schema than this version reads or writes."""


class OlderGoldError(TableSchemaError):
    """An older version wrote gold; ``jmxlake upgrade`` converts it."""


class TableLogError(TableSchemaError):
    """A table's log names a file outside the table, or one that has other rows than it says."""


class EngineError(LakehouseError):
    """Spark could not start, or failed at work."""


class LogExpiredError(LakehouseError):
    """The log of bronze was expired, or files removed, before a rollup had read them."""


class LakeReplacedError(LakehouseError):
    """Bronze was restored or replaced: its versions are not those that were rolled up."""


class MissingFilesError(LakehouseError):
    """Data files that a table's log names are gone.

    Attributes:
        layer: The layer of the table, bronze or gold.
    """

    def __init__(self, text: str, layer: str) -> None:
        super().__init__(text)
        self.layer = layer


class LeaseHeldError(LakehouseError):
    """Another rollup writes to gold."""


class LeaseLostError(LakehouseError):
    """Another writer changed gold: this rollup may not go on."""


class MaintenanceError(LakehouseError):
    """A table of bronze could not be maintained; what was done so far stands."""


class MaintenanceConflictError(MaintenanceError):
    """Another writer was faster: nothing was changed, the next round tries again."""


class ForeignEngineError(MaintenanceError):
    """Another engine than delta-rs wrote to a table of bronze."""


class ObjectiveError(LakehouseError):
    """An objective's file is wrong."""


class MaintenanceFileError(LakehouseError):
    """A file of planned maintenance, or of corrections, is wrong."""


class PeriodError(LakehouseError):
    """The period asked for makes no sense."""


class SubjectError(LakehouseError):
    """No subject in the lake has the name asked for, or more than one has."""


class JobFailedError(LakehouseError):
    """A command that ran as a job has failed; what it said is on standard error."""


class OwnersError(LakehouseError):
    """The file that says who owns what is wrong, or knows no such team."""


class PrintError(LakehouseError):
    """The page could not be printed: there is no browser, or it failed."""


class SendError(LakehouseError):
    """A report could not be sent, or its settings are wrong; no secret is in it."""


class ConfigFileError(LakehouseError):
    """A file of a command's options cannot be read, or an option in it is wrong."""


class FactsError(LakehouseError):
    """A file holds no facts of a report, or those of a newer version."""
