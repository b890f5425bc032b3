"""Commands of docs/engines.md: Spark and jmxlake accept every option and setting of them.

Nothing is submitted. Spark's own class parses the command lines of spark-submit, and its registry
has the settings.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import pytest
from py4j.protocol import Py4JJavaError

from lakehouse.cli.main import main
from tests.docs.pages import blocks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "engines.md").read_text("utf-8")
SETTINGS: Final = ROOT / "deploy" / "spark" / "jmxlake.conf"
MAIN: Final = "job.py"
REGISTRIES: Final = (
    "internal.config.package", "deploy.k8s.Config", "deploy.yarn.config.package",
    "sql.connect.config.Connect", "sql.internal.StaticSQLConf", "sql.internal.SQLConf",
    "sql.delta.sources.DeltaSQLConf",
)  # fmt: skip
FREE: Final = re.compile(
    r"spark\.(hadoop|sql\.catalog|kubernetes\.(driver|executor)\.secretKeyRef)\."
)
"""Settings whose names are the user's."""


EXPORTED: Final = dict(re.findall(r"(?m)^export ([A-Z_]+)=(\S+)$", PAGE))
SERVER: Final = "org.apache.spark.sql.connect.service.SparkConnectServer"


def commands() -> list[list[str]]:
    """Return the words of each command of the page, without leading variables."""
    written = "".join(blocks(PAGE, titled=True)).replace("\\\n", " ")
    # A shell starts a comment at a word; shlex would also start it inside a word.
    lines = (re.sub(r"(^|\s)#.*", "", line) for line in written.splitlines())
    found = [shlex.split(line) for line in lines if line]
    return [[word for word in words if not re.match(r"[A-Z_]+=", word)] for words in found]


SUBMITTED: Final = [words[1:] for words in commands() if words and words[0] == "spark-submit"]
OURS: Final = [words[1:] for words in commands() if words and words[0] == "jmxlake"]


def parsed(spark: SparkSession, arguments: list[str]) -> Any:
    """Return the arguments as spark-submit reads them."""
    jvm = spark._jvm
    assert jvm is not None
    python = jvm.org.apache.spark.api.python.PythonUtils
    return jvm.org.apache.spark.deploy.SparkSubmitArguments(
        python.toSeq(arguments), python.toScalaMap(EXPORTED)
    )


def unknown(spark: SparkSession, names: set[str]) -> set[str]:
    """Return the settings that are in no registry of Spark."""
    jvm = spark._jvm
    assert jvm is not None
    for name in REGISTRIES:
        load = jvm.org.apache.spark.util.Utils.classForName
        load(f"org.apache.spark.{name}$", True, False)  # noqa: FBT003 - Java has no names
    find = jvm.org.apache.spark.internal.config.ConfigEntry.findEntry
    return {name for name in names if not FREE.match(name) and find(name) is None}


def names_in(conf: Path) -> set[str]:
    lines = conf.read_text("utf-8").splitlines()
    return {line.split()[0] for line in lines if line and not line.startswith("#")}


def test_parallelism_equals_cores_of_all_executors() -> None:
    lines = (line.split() for line in SETTINGS.read_text("utf-8").splitlines())
    chosen = {words[0]: words[1] for words in lines if len(words) == 2}
    names = ("dynamicAllocation.maxExecutors", "executor.cores", "default.parallelism")
    executors, cores, parallelism = (int(chosen[f"spark.{name}"]) for name in names)
    assert parallelism == executors * cores


def accepted(arguments: list[str]) -> None:
    """Raise if jmxlake rejects a command's arguments."""
    with click.Context(main) as context:
        command = main.get_command(context, arguments[0])
        assert command is not None
        command.make_context(arguments[0], arguments[1:], parent=context).close()


@pytest.mark.parametrize("arguments", SUBMITTED, ids=lambda words: words[1].split(":")[0])
def test_spark_submit_accepts_command(spark: SparkSession, arguments: list[str]) -> None:
    given = [word.replace("deploy/spark/jmxlake.conf", str(SETTINGS)) for word in arguments]
    is_server = SERVER in given
    found = parsed(
        spark, [*given, "spark-internal"] if is_server else given
    )  # as its launcher does
    names = {*found.sparkProperties().keys().mkString(" ").split()}
    assert names > names_in(SETTINGS)
    assert unknown(spark, names) == set()
    if not is_server:
        assert found.primaryResource().endswith(MAIN)
        accepted(found.childArgs().mkString("\0").split("\0"))


def test_page_has_a_command_for_each_cluster() -> None:
    places = [words[words.index("--master") + 1] for words in SUBMITTED if "--master" in words]
    assert [place.split(":")[0] for place in places] == ["spark", "yarn", "k8s"]


@pytest.mark.parametrize("arguments", OURS, ids=" ".join)
def test_jmxlake_accepts_command(arguments: list[str]) -> None:
    accepted(arguments)


def test_wrong_option_or_setting_is_rejected(spark: SparkSession) -> None:
    with pytest.raises(Py4JJavaError, match="--archive"):
        parsed(spark, ["--archive", "a.tar.gz", "job.py"])
    assert unknown(spark, {"spark.executor.memoryoverhead"})
    with pytest.raises(click.UsageError):
        accepted(["rollup", "lake", "--parts", "3"])
