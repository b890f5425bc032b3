"""What the lakehouse must not use, so that one wheel runs on every Spark."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

LAKEHOUSE = Path(__file__).parents[2] / "lakehouse"
WITHOUT_SPARK = {"delta_tables.py", "local_engine.py"}
BY_SPARK = [
    path
    for path in sorted(LAKEHOUSE.rglob("*.py"))
    if path.parent.name != "maintain" and path.name not in WITHOUT_SPARK
]

BANNED: dict[str, frozenset[str]] = {
    "not over Connect": frozenset(
        {"rdd", "sparkContext", "_jvm", "_jsc", "_jdf", "_jsparkSession", "_sc", "_jrdd"}
        | {"SparkContext", "SQLContext", "RDD", "foreachPartition", "toJSON"}
    ),
    "refused by serverless": frozenset(
        {"cache", "persist", "unpersist", "cacheTable", "checkpoint", "localCheckpoint"}
    ),
    "Python in the executors": frozenset(
        {"udf", "udtf", "pandas_udf", "arrow_udf", "arrow_udtf", "registerJavaFunction"}
        | {"mapInPandas", "mapInArrow", "applyInPandas", "applyInArrow", "foreach"}
    ),
    "needs pandas": frozenset({"toPandas", "pandas_api"}),
}
MODULES = {
    "py4j": "not over Connect",
    "pyspark.core": "not over Connect",
    "pyspark.sql.classic": "not over Connect",
    "pyspark.sql.connect": "not with classic Spark",
    "pyspark.pandas": "needs pandas",
    "delta.tables": "DeltaTable is not over Connect",
}
ONLY_IN = {"spark_jobs.py": ("mapInArrow", "sparkContext")}
"""The one place in which Python runs in the executors, the rollup's kernel. It also asks whether
the driver has a context, to name jobs and to count tasks."""

OF_DELTA = "configure_spark_with_delta_pip"  # starts a local session, nothing else
TEXTS = {
    re.compile(r"\b(UN)?CACHE\s+(LAZY\s+)?TABLE\b", re.IGNORECASE): "refused by serverless",
    re.compile(r"\bignoreMissingFiles\b"): "loses rows in silence",
    re.compile(r"\btxnAppId\b"): "loses rows in silence",
}


def findings(source: str) -> list[str]:
    """What a module uses that it must not: line, what, why."""
    tree = ast.parse(source)
    told = [found for node in ast.walk(tree) for found in _of(node)]
    return [f"line {line}: {what} ({why})" for line, what, why in sorted(told)]


def _of(node: ast.AST) -> list[tuple[int, str, str]]:
    match node:
        case ast.Attribute(value=ast.Name(id="functools"), attr="cache"):
            return []
        case ast.Attribute(attr=name, lineno=line) | ast.Name(id=name, lineno=line):
            return [(line, name, why) for why in _why(name)]
        case ast.ImportFrom(module=str(module), names=names, lineno=line):
            banned = [(line, module, why) for why in _why_module(module)]
            for alias in names:
                banned += [(line, alias.name, why) for why in _why(alias.name)]
                banned += [(line, alias.name, why) for why in _why_module(f"{module}.{alias.name}")]
                if module == "delta" and alias.name != OF_DELTA:
                    banned.append((line, alias.name, MODULES["delta.tables"]))
            return banned
        case ast.Import(names=names, lineno=line):
            return [(line, one.name, why) for one in names for why in _why_module(one.name)]
        case ast.Constant(value=str(text), lineno=line):
            return [
                (line, found[0], why) for by, why in TEXTS.items() if (found := by.search(text))
            ]
    return []


def _why(name: str) -> list[str]:
    return [why for why, names in BANNED.items() if name in names]


def _why_module(module: str) -> list[str]:
    return [why for name, why in MODULES.items() if f"{module}.".startswith(f"{name}.")]


@pytest.mark.parametrize("path", BY_SPARK, ids=lambda path: path.stem)
def test_the_lakehouse_uses_sql_and_dataframes_only(path: Path):
    allowed = ONLY_IN.get(path.name, ())
    found = findings(path.read_text(encoding="utf-8"))
    assert [one for one in found if not any(name in one for name in allowed)] == []


@pytest.mark.parametrize(
    "line",
    [
        *(f"rows.{name}" for names in BANNED.values() for name in sorted(names)),
        *(f"rows.{name}(lambda row: row)" for name in ("cache", "persist", "mapInPandas")),
        *(f"from {module} import anything" for module in MODULES),
        *(f"import {module}.deeper" for module in MODULES),
        "from pyspark.sql import connect",
        "from pyspark.sql.functions import udf",
        "@pandas_udf('long')\ndef double(rows): ...",
        "from delta import DeltaTable",
        "spark.sql('cache lazy table t')",
        "spark.sql(f'CACHE TABLE {name}')",
        "rows.write.option('txnAppId', 'rollup')",
        "spark.conf.set('spark.sql.files.ignoreMissingFiles', 'true')",
    ],
)
def test_whatever_does_not_run_everywhere_is_found(line: str):
    assert findings(line)


def test_what_runs_everywhere_is_let_through():
    assert not findings(
        "import functools\n"
        "from delta import configure_spark_with_delta_pip\n"
        "from deltalake import DeltaTable\n"
        "@functools.cache\n"
        "def told(spark): return spark.sql('SELECT 1').collect()\n"
    )
