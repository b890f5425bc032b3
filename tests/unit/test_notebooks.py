"""The notebooks' source, as far as it can be known without Spark."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from lakehouse import tables
from tests.deploy.bundle_file import ROOT, read
from tests.notebooks import CELL, SQL, bind, sources, statement

if TYPE_CHECKING:
    from pathlib import Path

NOTEBOOKS = sorted((ROOT / "dashboards").glob("*.py"))


def name(path: Path) -> str:
    return path.stem


def test_there_is_one_for_the_lake_each_question_the_week_and_a_client() -> None:
    assert [one.stem for one in NOTEBOOKS] == [
        "capacity",
        "client_story",
        "consumer_lag",
        "events",
        "lost_before_read",
        "min_isr",
        "remote_log",
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
def test_f18_its_sql_is_the_platform_s_and_asks_the_view_that_the_page_makes(path: Path) -> None:
    first, second = (one for one in sources(str(path)) if "%md" not in one)
    assert second.startswith(SQL)
    (view,) = re.findall(r'Notebook\(globals\(\), "(\w+)"', first)
    assert {"date", "period_start"} & set({one.name: one for one in tables.GOLD}[view].column_names)
    text = statement(second)
    assert set(re.findall(r"(?:FROM|JOIN) (\w+)", text)) == {view}
    used = set(re.findall(r"(?<![:\w']):(\w+)", text))
    assert used == ({"client"} if path.stem == "client_story" else set())


def test_a_value_cannot_end_its_literal() -> None:
    hostile = bind("SELECT :x, ':x', a::x", {"x": "' OR 1 = 1 --"})
    assert hostile == "SELECT CAST(X'27204f522031203d2031202d2d' AS STRING), ':x', a::x"


def test_databricks_gets_all_of_them() -> None:
    assert "dashboards" in read()["sync"]["paths"]
