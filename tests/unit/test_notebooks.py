"""The notebooks' source, as far as it can be known without Spark."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from lakehouse import tables
from tests.deploy.bundle_file import ROOT, read

if TYPE_CHECKING:
    from pathlib import Path

NOTEBOOKS = sorted((ROOT / "dashboards").glob("*.py"))
CELL = "# COMMAND ----------"
WORDS = {"cluster", "start", "end"}


def name(path: Path) -> str:
    return path.stem


def sql(path: Path) -> list[str]:
    """The statements of a notebook: what ``notebook.sql`` is called with."""
    tree = ast.parse(path.read_text("utf-8"))
    calls = [one for one in ast.walk(tree) if isinstance(one, ast.Call)]
    mine = [one for one in calls if isinstance(one.func, ast.Attribute) and one.func.attr == "sql"]
    assert all(isinstance(one.args[0], ast.Constant) for one in mine), "SQL is not put together"
    return [str(one.args[0].value) for one in mine if isinstance(one.args[0], ast.Constant)]


def test_there_is_one_for_the_lake_each_question_the_week_and_a_client() -> None:
    assert [one.stem for one in NOTEBOOKS] == [
        "client_story",
        "lost_before_read",
        "min_isr",
        "remote_reads",
        "throttling",
        "tier_lag",
        "tour",
        "weekly_sla",
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name)
def test_it_is_a_notebook_of_few_cells(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.startswith("# Databricks notebook source\n# MAGIC %md\n# MAGIC # ")
    compile(text, str(path), "exec")
    cells = text.split(f"\n{CELL}\n")
    assert 2 <= len(cells) <= 5
    assert all(one.strip() for one in cells)
    assert not re.search(r"^%", text, re.MULTILINE), "a magic is a comment: # MAGIC"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name)
def test_its_sql_names_tables_and_values_by_markers(path: Path) -> None:
    (statement,) = sql(path)
    every = {table.name for table in (*tables.BRONZE, *tables.GOLD)}
    read_ = re.findall(r"(?:FROM|JOIN) (\S+)", statement)
    named = [re.fullmatch(r"IDENTIFIER\(:(\w+)\)", one) for one in read_ if one != "("]
    assert named
    assert all(one is not None and one[1] in every for one in named)
    own = {"client"} if path.stem == "client_story" else set()
    used = set(re.findall(r"(?<![:\w']):(\w+)", statement))
    assert used - every == WORDS | own


def test_databricks_gets_all_of_them() -> None:
    assert "dashboards" in read()["sync"]["paths"]
