"""Which objectives can have rules for Prometheus, and why others cannot."""

from __future__ import annotations

import re
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import example, given, strategies as st

from lakehouse.cli.main import main
from lakehouse.core.metrics import known
from lakehouse.core.objective import Events, Objective, Slices
from lakehouse.slo import burn_rate
from lakehouse.slo.burn_rate import PAIRS
from lakehouse.slo.openslo import objective_files

if TYPE_CHECKING:
    from pathlib import Path

(USUAL,) = (one for one in objective_files.load() if one.name == "min-isr")


def objective(
    level: Any = "topic", metric: str = "kafka.partition.under_min_isr", **rest: Any
) -> Objective:
    return replace(USUAL, **({"level": level, "metric": metric} | rest))


def made(one: Objective) -> list[dict[str, Any]]:
    groups = yaml.safe_load(burn_rate.to_yaml([one], known()))["groups"]
    return [rule for group in groups for rule in group["rules"]]


@pytest.mark.parametrize("one", objective_files.load(), ids=lambda one: one.name)
def test_there_are_rules_on_all_that_ships(one: Objective) -> None:
    assert burn_rate.why_not(one, known()) is None


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (objective("cluster"), "burn rates are of time, not of level cluster"),
        (objective("partition"), "burn rates are of time, not of level partition"),
        (objective(slices=Slices(300_000_000, 0.9)), "burn rates are of time, not of slices"),
        (objective(events=Events("a", are_good=True, total="b")),
         "burn rates are of time, not of events"),
        (objective(metric="kafka.partition.at_min_isr"),
         "agents do not show kafka.partition.at_min_isr in /metrics"),
        (objective("group", "kafka.group.retention_headroom", op="gte", threshold=3600.0),
         "agents do not show kafka.group.retention_headroom.high in /metrics"),
        (objective("group", "kafka.group.lag", op="gt", threshold=0.0),
         "0 would be bad, and /metrics shows only what is above 0"),
        (objective("group", "kafka.group.non_consumed", threshold=5.0),
         "of losses only lte 0 is supported"),
        (objective(match={"source": ("broker-1",)}), "level topic has no source that could match"),
        (objective(match={"source": ("*",)}), None),
        (objective(match={"topic": ("[z-a]",)}),
         "a pattern of topic has a reversed range"),
        (objective("source", "kafka.broker.request_handler.idle", op="gte", threshold=0.3), None),
        (objective("source", "own.queue"), None),
        (objective("source", "own.queue", match={"queue": ("a",)}),
         "/metrics has the labels of a series as one text, so that queue chooses none"),
        (objective("topic", "own.queue"), "agents do not show own.queue in /metrics"),
    ],
)  # fmt: skip
def test_what_metrics_cannot_support_is_said(one: Objective, why: str | None) -> None:
    assert burn_rate.why_not(one, known()) == why


def test_the_limits_are_those_of_the_report() -> None:
    found = {
        rule["labels"]["windows"]: [float(n) for n in re.findall(r">= ([\d.]+)", rule["expr"])]
        for rule in made(USUAL)
        if rule.get("alert") == "JmxlakeBudgetBurns"
    }
    assert found == {
        f"{pair.long}/{pair.short}": [
            pytest.approx(pair.limit_us(length, 0.999) / 1e6) for length in (pair.long, pair.short)
        ]
        for pair in PAIRS
    }


def test_a_pair_that_no_bad_time_could_reach_has_no_alert() -> None:
    labels = [rule.get("labels", {}) for rule in made(objective(target=0.9))]
    windows = [one["windows"] for one in labels if "windows" in one]
    assert windows == ["6h/30m", "3d/6h"]


_PATTERNS = st.text("ab.*?[]!^-\\|(é\n", max_size=8)


@example("[?||]", "|")
@example("[+--]", ",")
@pytest.mark.filterwarnings("ignore:Possible set:FutureWarning")  # to Python, and not to RE2
@given(_PATTERNS, st.text("ab.[]!^-\\|(é\n", max_size=6))
def test_a_pattern_means_what_it_means_to_the_report(pattern: str, name: str) -> None:
    """By Python's expressions; tests/packaging asks Prometheus itself."""
    one = objective(match={"topic": (wanted := pattern.lstrip("!"),)})
    if burn_rate.why_not(one, known()) is None:
        (bad, *_) = made(one)
        text = re.search(r'topic=~("(?:[^"\\]|\\.)*")', bad["expr"], re.DOTALL)
        assert text is not None
        expected = fnmatchcase(name, wanted)
        assert (re.fullmatch(yaml.safe_load(text[1]), name) is not None) == expected


def test_a_file_that_is_none_gives_no_rules_and_exit_code_1(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_bytes((objective_files.SHIPPED / "min-isr.yaml").read_bytes())
    (tmp_path / "bad.yaml").write_text("apiVersion: openslo/v1\nkind: SLO\n")
    run = CliRunner().invoke(main, ["slo", "rules", str(tmp_path)])
    assert (run.exit_code, run.stdout) == (1, "")
    assert "bad.yaml:1:1: invalid: metadata is missing" in run.stderr


def test_a_metric_that_is_mistyped_is_named_and_the_others_have_rules(tmp_path: Path) -> None:
    shipped = (objective_files.SHIPPED / "min-isr.yaml").read_text("utf-8")
    (tmp_path / "good.yaml").write_text(shipped)
    wrong = shipped.replace("kafka.partition.unavailable", "kafka.partition.unavailible")
    (tmp_path / "wrong.yaml").write_text(wrong.replace("name: min-isr", "name: mistyped"))
    run = CliRunner().invoke(main, ["slo", "rules", str(tmp_path)])
    assert run.exit_code == 3
    assert "wrong.yaml:19:21: unsupported" in run.stderr
    assert "mistyped" not in run.stdout
    assert "objective: min-isr" in run.stdout


def test_where_nothing_can_have_rules_nothing_is_written(tmp_path: Path) -> None:
    out = tmp_path / "rules.yaml"
    file = objective_files.OPTIONAL / "fetch-availability.yaml"
    run = CliRunner().invoke(main, ["slo", "rules", str(file), "--out", str(out)])
    assert run.exit_code == 1
    assert not out.exists()
    assert "not of events" in run.stderr
