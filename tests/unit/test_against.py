"""Benchmarks that compare two trees in one run: which figures, and what their ratios are."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from bench import against

ROOT = Path(__file__).parents[2]

TOLD = {
    "claim": "",
    "figures": {
        "runs": 24_000, "weekly_local_s": 5.0, "report_s": None,
        "tools": {"jmxlake (jmx)": {"broker_cpu_ms": 2.3}}, "levels": [{"commit_p50_seconds": 0.5}],
    },
}  # fmt: skip


def test_picked_takes_figures_by_name_and_no_null():
    assert against.picked(TOLD, ".*_s") == {"weekly_local_s": 5.0}


def test_picked_names_nested_figures_by_their_path():
    pattern = r"tools\.jmxlake \(jmx\)\..*|levels\.0\.commit_.*"
    assert against.picked(TOLD, pattern) == {
        "tools.jmxlake (jmx).broker_cpu_ms": 2.3,
        "levels.0.commit_p50_seconds": 0.5,
    }


def test_picked_reads_a_line_without_figures_key():
    assert against.picked({"maintain_seconds_3000_files": 1}, "maintain_.*") == {
        "maintain_seconds_3000_files": 1.0
    }


@pytest.mark.parametrize(
    ("figure", "ratio"),
    [
        ("weekly_local_s", "weekly_local_vs_commit_before"),
        ("read_ms", "read_vs_commit_before"),
        ("tools.jmxlake (jmx).broker_cpu_ms", "tools_jmxlake_jmx_broker_cpu_vs_commit_before"),
        ("bytes", "bytes_vs_commit_before"),
    ],
)
def test_ratio_name_has_no_unit(figure, ratio):
    assert against.ratio_name(figure) == ratio


def test_ratios_are_medians_of_pairs_not_of_sums():
    # The machine is three times slower in the second pair, for both trees.
    ours = [{"a_s": 2.0}, {"a_s": 6.6}, {"a_s": 2.1}]
    theirs = [{"a_s": 2.0}, {"a_s": 6.0}, {"a_s": 2.0}]
    assert against.ratios(ours, theirs) == {"a_vs_commit_before": 1.05}


def test_ratios_leave_out_figures_that_a_run_lacks():
    ours, theirs = [{"a_s": 1.0, "b_s": 1.0}], [{"a_s": 2.0}]
    assert against.ratios(ours, theirs) == {"a_vs_commit_before": 0.5}


def test_run_without_option_runs_the_benchmark(monkeypatch):
    monkeypatch.setattr("sys.argv", ["bench.small", "--repeats", "1"])
    assert against.run("bench.small", lambda: 7, ".*_s") == 7


def test_run_with_too_few_pairs_exits(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["bench.small", "--against", "HEAD", "--pairs", "2"])
    with pytest.raises(SystemExit):
        against.run("bench.small", lambda: 7, ".*_s")
    assert "at least 5" in capsys.readouterr().err


def test_run_of_unknown_commit_says_so(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["bench.small", "--against", "no-such-commit"])
    assert against.run("bench.small", lambda: 7, ".*_s") == 1
    told = capsys.readouterr()
    assert "no-such-commit" in told.err
    assert str(ROOT) not in told.err + told.out


def _git(folder: Path, *command: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", "-C", str(folder), *who, *command], check=True, capture_output=True)


_BENCH = """import json, lakehouse
import tests.rig
print(json.dumps({"figures": {"made_s": lakehouse.SECONDS}}))
"""


@pytest.fixture
def repository(tmp_path):
    """A commit in which the product takes 4 s, and a tree in which it takes 2 s."""
    root = tmp_path / "root"
    for name in ("bench", "lakehouse"):
        (root / name).mkdir(parents=True)
        (root / name / "__init__.py").write_text("SECONDS = 4.0\n")
    (root / "bench" / "made.py").write_text("raise SystemExit(3)\n")
    _git(tmp_path, "init", "-q", str(root))
    _git(root, "add", "-A")
    _git(root, "commit", "-qm", "before")
    (root / "lakehouse" / "__init__.py").write_text("SECONDS = 2.0\n")
    (root / "bench" / "made.py").write_text(_BENCH)
    (root / "tests" / "rig").mkdir(parents=True)
    (root / "tests" / "rig" / "__init__.py").touch()
    return root


def test_compare_runs_this_bench_on_both_products(repository, monkeypatch):
    monkeypatch.setattr(against, "_ROOT", repository)
    told = against.compare("bench.made", [], "HEAD", 2, ".*_s")
    assert told["ratios"] == {"made_vs_commit_before": 0.5}
    assert told["figures"] == {"made_s": 2.0, "made_s_before": 4.0, "pairs": 2}
    assert str(repository) not in json.dumps(told)


def test_a_comparison_keeps_the_ratios_of_this_tree():
    runs = [{**TOLD, "ratios": {"spark_vs_local_clock": value}} for value in (2.0, 4.0, 3.0)]
    assert against.medians(against.own_ratios(runs)) == {"spark_vs_local_clock": 3.0}
    assert against.medians(against.own_ratios([TOLD])) == {}
