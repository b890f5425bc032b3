"""``jmxlake-agent`` as a program: help, documentation, completion and what needs no broker."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from collector.catalogue import load
from collector.cli.beans import _row, _stacked
from collector.cli.main import main
from collector.telemetry import memory
from collector.telemetry.agent_stats import AgentStats, Measured
from lakehouse.cli.main import main as lakehouse_main
from lakehouse.cli.objectives import objectives
from lakehouse.tables.exposed_metrics import (
    FAMILY_KNOWN,
    LOST,
    METRIC_KNOWN,
    SHOWN,
    UNSHOWN_SERIES,
    live_name,
)
from tests.agent_metrics import FakeSpool

DOCS = (Path(__file__).parents[2] / "docs" / "agent.md").read_text()
COMMANDS = sorted(main.commands)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_has_help_and_stands_in_the_docs(name: str) -> None:
    command = main.commands[name]
    assert command.help
    assert f"jmxlake-agent {name}" in DOCS
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.name}"


def test_jmxlake_lists_each_command_and_imports_it_when_it_is_asked_for() -> None:
    context = click.Context(lakehouse_main)
    names = lakehouse_main.list_commands(context)
    assert names == sorted(names)
    for name in names:
        command = lakehouse_main.get_command(context, name)
        assert command is not None
        assert command.name == name
        assert command.help
    assert lakehouse_main.get_command(context, "nothing") is None
    completed = CliRunner(
        env={"_JMXLAKE_COMPLETE": "bash_complete", "COMP_WORDS": "jmxlake re", "COMP_CWORD": "1"}
    ).invoke(lakehouse_main, [], prog_name="jmxlake")
    assert completed.output == "plain,register\nplain,report\n"


@pytest.mark.parametrize("program", [main, lakehouse_main, objectives], ids=lambda one: one.name)
def test_the_list_of_commands_cuts_none_off_on_a_narrow_terminal(program: click.Group) -> None:
    told = CliRunner().invoke(program, ["--help"], terminal_width=80).output
    listed = told[told.index("Commands:") :].splitlines()
    assert len(listed) > len(program.list_commands(click.Context(program)))
    assert [line for line in listed if line.endswith("...")] == []


def test_every_metric_of_health_stands_in_the_docs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "java", lambda: (1, 1.0))
    stats = AgentStats()
    stats.expect({("broker-1", "min_isr"): ("jmx", 1)})
    waiting = FakeSpool()
    stats.registry.register(Measured(stats, waiting, waiting, 0.0))  # type: ignore[arg-type]
    for metric in stats.registry.collect():
        suffix = {"counter": "_total", "info": "_info"}.get(metric.type, "")
        assert f"`{metric.name}{suffix}`" in DOCS
    names = [*map(live_name, SHOWN), *(f"{live_name(one)}_total" for one in LOST)]
    assert [
        one
        for one in (*names, FAMILY_KNOWN, METRIC_KNOWN, UNSHOWN_SERIES)
        if f"`{one}`" not in DOCS
    ] == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_that_names_our_program(shell: str) -> None:
    ran = CliRunner().invoke(main, ["completion", shell])
    assert ran.exit_code == 0
    assert "_JMXLAKE_AGENT_COMPLETE" in ran.output


def test_the_completion_of_bash_is_valid_and_completes() -> None:
    script = CliRunner().invoke(main, ["completion", "bash"]).output
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    environ = {
        "_JMXLAKE_AGENT_COMPLETE": "bash_complete",
        "COMP_WORDS": "jmxlake-agent to",
        "COMP_CWORD": "1",
    }
    ran = CliRunner(env=environ).invoke(main, [], prog_name="jmxlake-agent")
    assert ran.output == "plain,top\n"


def test_a_command_that_is_called_wrongly_ends_with_2() -> None:
    assert CliRunner().invoke(main, ["sing"]).exit_code == 2
    assert CliRunner().invoke(main, ["beans", "--famly", "x"]).exit_code == 2


def test_beans_shows_all_there_is_and_a_user_s_own(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(
        "{family: own, via: jmx, roles: [broker], metrics: {own.threads: {description: x,"
        " object: 'java.lang:type=Threading', attribute: ThreadCount, unit: '{thread}'}}}"
    )
    ran = CliRunner().invoke(main, ["beans", "--json", "--catalogue", str(tmp_path)])
    rows = [json.loads(line) for line in ran.output.splitlines()]
    assert {row["metric"] for row in rows} == {*load().metrics, "own.threads"}
    (own,) = (row for row in rows if row["metric"] == "own.threads")
    assert (own["read_from"], own["attribute"]) == ("java.lang:type=Threading", "ThreadCount")


def test_beans_of_one_family_are_whole_lines_in_a_pipe() -> None:
    ran = CliRunner().invoke(main, ["beans", "--family", "min_isr"])
    lines = ran.output.splitlines()
    assert lines[0] == "min_isr: of brokers, every 10 s via jmx"
    assert lines[1].split() == [
        "Metric",
        "Unit",
        "Kind",
        "Read",
        "from",
        "Attribute",
        "KIP",
        "First",
    ]
    under = next(line for line in lines if line.startswith("kafka.partition.under_min_isr"))
    assert "kafka.cluster:type=Partition,name=UnderMinIsr,topic=*,partition=*" in under
    assert under.split()[-3:] == ["Value", "164", "1.0.0"]


def test_beans_of_a_family_that_there_is_not_is_one_line() -> None:
    ran = CliRunner().invoke(main, ["beans", "--family", "quotaz"])
    assert ran.exit_code == 1
    (line,) = ran.stderr.splitlines()
    assert line.startswith("jmxlake-agent: --family quotaz: no such family; there are ")
    assert all(family.name in line for family in load().families)


def test_beans_of_the_metadata_log_have_the_names_that_tables_have() -> None:
    ran = CliRunner().invoke(main, ["beans", "--family", "metadata_log", "--json"])
    names = {json.loads(line)["metric"] for line in ran.output.splitlines()}
    assert names == {one.replaces or one.name for one in load().family("metadata_log").metrics}


def test_help_of_the_group_says_all_of_each_command_in_80_columns() -> None:
    ran = CliRunner().invoke(main, ["--help"], terminal_width=80)
    lines = ran.output.splitlines()
    assert max(map(len, lines)) <= 80
    for name in COMMANDS:
        (line,) = (line for line in lines if line.startswith(f"  {name} "))
        assert line.endswith(".")
        assert "..." not in line


@pytest.mark.parametrize("width", [40, 80, 120])
def test_beans_on_a_terminal_never_end_a_line_within_a_word(width: int) -> None:
    for family in load().families:
        for metric in family.metrics:
            row = _row(family, metric)
            whole = click.unstyle(_stacked(row, 10_000)).split()
            lines = click.unstyle(_stacked(row, width)).splitlines()
            assert " ".join(lines).split() == whole
            for line in lines:
                assert len(line) <= width or len(line.split()) == 1
