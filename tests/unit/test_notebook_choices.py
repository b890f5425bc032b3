"""Choices of a notebook, and notebooks outside Databricks."""

from __future__ import annotations

import datetime as dt
import html
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from lakehouse.errors import LakehouseError
from lakehouse.notebooks.choices import LABELS, Choices, Environment
from lakehouse.notebooks.notebook import Platform
from tests.notebooks import FakeWidgets

if TYPE_CHECKING:
    from pathlib import Path

PAGE = "<p>it's a page</p>"


def chosen(**texts: str) -> Choices:
    return Choices.read(FakeWidgets({name.rstrip("_"): one for name, one in texts.items()}), {})


def test_empty_widgets_choose_last_week_and_all_teams() -> None:
    choices = chosen()
    assert choices.period is None
    assert choices.owners is None
    assert choices["team"] == ""
    assert choices.calendar.time_zone == "UTC"


def test_week_and_date_range_start_at_midnight_of_the_zone() -> None:
    week = chosen(week="2026-W47", time_zone="Europe/Berlin").period
    days = chosen(from_="2026-11-16", to="2026-11-23", time_zone="Europe/Berlin").period
    assert week is not None
    assert days is not None
    assert (week.start, week.end) == (days.start, days.end)
    assert days.start == dt.datetime(2026, 11, 15, 23, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        ({"week": "2026-W47", "from_": "2026-11-16", "to": "2026-11-17"}, "either the widget week"),
        ({"from_": "2026-11-16"}, "both widgets from and to"),
        ({"from_": "2026-11-16", "to": "2026-11-16"}, "is not after the start 2026-11-16"),
        ({"from_": "yesterday", "to": "today"}, "not an instant"),
        ({"week": "2026-W47", "time_zone": "Mars/Olympus"}, "is unknown on this machine"),
    ],
)
def test_wrong_period_is_one_line(texts: dict[str, str], problem: str) -> None:
    with pytest.raises(LakehouseError, match=problem):
        _ = chosen(**texts).period


def test_team_requires_a_file_of_owners(tmp_path: Path) -> None:
    with pytest.raises(LakehouseError, match="set the widget owners"):
        _ = chosen(team="payments").owners
    file = tmp_path / "owners.yaml"
    file.write_text("owners:\n- {team: payments, topics: ledger}\n", "utf-8")
    owners = chosen(team="payments", owners=str(file)).owners
    assert owners is not None
    assert owners.of({"topic": "ledger"}).team == "payments"


def test_environment_replaces_widgets() -> None:
    choices = Choices.read(
        Environment({"JMXLAKE_WEEK": "2026-W47", "JMXLAKE_CLIENT": " app ", "WEEK": "other"}),
        {"client": "A client"},
    )
    assert choices["week"] == "2026-W47"
    assert choices["client"] == "app"
    others = choices.texts.keys() - {"week", "client"}
    assert all(choices[name] == LABELS[name][0] for name in others)


def test_page_outside_databricks_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    spark = object()
    platform = Platform.of({"spark": spark, "__file__": "dashboards/capacity.py"})
    assert platform.spark is spark
    platform.show(PAGE)
    assert (tmp_path / "capacity.html").read_text("utf-8") == PAGE
    assert capsys.readouterr().out == f"{tmp_path / 'capacity.html'}\n"


def test_page_in_jupyter_is_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    fake_ipython = SimpleNamespace(
        get_ipython=lambda: True, display=SimpleNamespace(HTML=str, display=shown.append)
    )
    monkeypatch.setitem(sys.modules, "IPython", fake_ipython)
    Platform.of({"spark": object()}).show(PAGE)
    (frame,) = shown
    assert html.escape(PAGE) in frame


def test_databricks_names_are_used() -> None:
    shown: list[str] = []
    widgets = FakeWidgets({})
    names = {
        "spark": object(), "dbutils": SimpleNamespace(widgets=widgets), "displayHTML": shown.append,
    }  # fmt: skip
    platform = Platform.of(names)
    platform.show(PAGE)
    assert (platform.widgets, shown) == (widgets, [PAGE])
