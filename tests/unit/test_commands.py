"""``jmxlake-agent`` as a program: help, documentation, completion and what needs no broker."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from collector.catalogue import load
from collector.cli.main import _row, _stacked, main
from collector.telemetry import memory
from collector.telemetry.agent_stats import AgentStats, Measured
from lakehouse.cli.main import main as lakehouse_main
from lakehouse.cli.slo import slo
from lakehouse.tables.agent_names import (
    FAMILY_KNOWN,
    LOST,
    METRIC_KNOWN,
    SHOWN,
    UNSHOWN_SERIES,
    live_name,
)
from lakehouse.tables.command_group import SectionedGroup
from tests.agent_metrics import FakeSpool

if TYPE_CHECKING:
    from lakehouse.tables.command_group import LazyGroup, SectionedGroup

DOCS = Path(__file__).parents[2] / "docs"
CONTEXT = click.Context(main)
COMMANDS = sorted(main.list_commands(CONTEXT))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_has_help_and_stands_in_the_docs(name: str) -> None:
    command = main.get_command(CONTEXT, name)
    assert command is not None
    assert command.help
    assert f"jmxlake-agent {name}" in (DOCS / "agent.md").read_text("utf-8")
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.name}"


@pytest.mark.parametrize("program", [main, lakehouse_main], ids=lambda one: one.name)
def test_each_command_is_imported_when_it_is_used(program: LazyGroup) -> None:
    context = click.Context(program)
    for name in program.list_commands(context):
        command = program.get_command(context, name)
        assert command is not None
        assert command.name == name
        assert command.get_short_help_str(limit=200) == program.summary(name)
    assert program.get_command(context, "nothing") is None


def test_completion_lists_commands_that_start_alike() -> None:
    completed = CliRunner(
        env={"_JMXLAKE_COMPLETE": "bash_complete", "COMP_WORDS": "jmxlake re", "COMP_CWORD": "1"}
    ).invoke(lakehouse_main, [], prog_name="jmxlake")
    assert completed.output == "plain,report\nplain,register\n"


@pytest.mark.parametrize("program", [main, lakehouse_main, slo], ids=lambda one: one.name)
def test_help_has_one_whole_line_per_command_in_80_columns(program: click.Group) -> None:
    lines = CliRunner().invoke(program, ["--help"], terminal_width=80).output.splitlines()
    assert max(map(len, lines)) <= 80
    for name in program.list_commands(click.Context(program)):
        (line,) = (line for line in lines if line.startswith(f"  {name} "))
        assert line.endswith(".")
        assert not line.endswith("..")


@pytest.mark.parametrize("program", [main, lakehouse_main], ids=lambda one: one.name)
def test_every_command_is_in_exactly_one_section_of_help(program: SectionedGroup) -> None:
    context = click.Context(program)
    listed = program.list_commands(context)
    assert len({*listed}) == len(listed)
    assert all(program.get_command(context, name) for name in listed)


@pytest.mark.parametrize(
    ("program", "name", "old", "new"),
    [
        (main, "jmxlake-agent", "once", "scrape"),
        (main, "jmxlake-agent", "beans", "metrics"),
        (main, "jmxlake-agent", "support", "support-bundle"),
        (main, "jmxlake-agent", "unit", "systemd-unit"),
        (lakehouse_main, "jmxlake", "objectives", "slo"),
        (lakehouse_main, "jmxlake", "sla", "slo publish"),
        (lakehouse_main, "jmxlake", "unit", "systemd-unit"),
    ],
)
def test_renamed_command_ends_with_2_and_its_new_name(
    program: click.Group, name: str, old: str, new: str
) -> None:
    ran = CliRunner().invoke(program, [old, "--json", "x"], prog_name=name)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr == f"`{name} {old}` is now `{name} {new}`.\n"


def test_completion_lists_new_names_and_the_commands_of_a_group() -> None:
    def completed(program: click.Group, name: str, words: str) -> list[str]:
        variable = f"_{name.upper().replace('-', '_')}_COMPLETE"
        environ = {
            variable: "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
        }
        return CliRunner(env=environ).invoke(program, [], prog_name=name).output.splitlines()

    assert completed(lakehouse_main, "jmxlake", "jmxlake slo p") == ["plain,publish"]
    assert completed(lakehouse_main, "jmxlake", "jmxlake sy") == ["plain,systemd-unit"]
    assert completed(main, "jmxlake-agent", "jmxlake-agent s") == [
        "plain,schema", "plain,scrape", "plain,systemd-unit", "plain,support-bundle"
    ]  # fmt: skip
    for program, name in ((main, "jmxlake-agent"), (lakehouse_main, "jmxlake")):
        assert completed(program, name, f"{name} --h") == ["plain,--help"]


def test_every_metric_of_health_stands_in_the_docs(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (DOCS / "prometheus.md").read_text("utf-8")
    monkeypatch.setattr(memory, "java", lambda: (1, 1.0))
    stats = AgentStats()
    stats.expect({("broker-1", "min_isr"): ("jmx", 1)})
    waiting = FakeSpool()
    stats.registry.register(Measured(stats, waiting, waiting, 0.0))  # type: ignore[arg-type]
    for metric in stats.registry.collect():
        suffix = {"counter": "_total", "info": "_info"}.get(metric.type, "")
        assert f"`{metric.name}{suffix}`" in page
    names = [*map(live_name, SHOWN), *(f"{live_name(one)}_total" for one in LOST)]
    assert [
        one
        for one in (*names, FAMILY_KNOWN, METRIC_KNOWN, UNSHOWN_SERIES)
        if f"`{one}`" not in page
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
    assert CliRunner().invoke(main, ["metrics", "--famly", "x"]).exit_code == 2


def test_metrics_shows_all_there_is_and_a_user_s_own(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(
        "{family: own, via: jmx, roles: [broker], metrics: {own.threads: {description: x,"
        " object: 'java.lang:type=Threading', attribute: ThreadCount, unit: '{thread}'}}}"
    )
    ran = CliRunner().invoke(main, ["metrics", "--json", "--catalogue", str(tmp_path)])
    rows = [json.loads(line) for line in ran.output.splitlines()]
    assert {row["metric"] for row in rows} == {*load().metrics, "own.threads"}
    (own,) = (row for row in rows if row["metric"] == "own.threads")
    assert (own["read_from"], own["attribute"]) == ("java.lang:type=Threading", "ThreadCount")


def test_metrics_of_one_family_are_whole_lines_in_a_pipe() -> None:
    ran = CliRunner().invoke(main, ["metrics", "--family", "min_isr"])
    lines = ran.output.splitlines()
    assert lines[0] == "min_isr: every 10 s from brokers via jmx"
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


def test_metrics_of_an_unknown_family_is_one_line() -> None:
    ran = CliRunner().invoke(main, ["metrics", "--family", "quotaz"])
    assert ran.exit_code == 1
    (line,) = ran.stderr.splitlines()
    assert line.startswith("jmxlake-agent: --family quotaz: no such family. Use one of ")
    assert all(family.name in line for family in load().families)


def test_metrics_of_the_metadata_log_have_the_names_that_tables_have() -> None:
    ran = CliRunner().invoke(main, ["metrics", "--family", "metadata_log", "--json"])
    names = {json.loads(line)["metric"] for line in ran.output.splitlines()}
    assert names == {one.replaces or one.name for one in load().family("metadata_log").metrics}


@pytest.mark.parametrize("width", [40, 80, 120])
def test_metrics_on_a_terminal_never_end_a_line_within_a_word(width: int) -> None:
    for family in load().families:
        for metric in family.metrics:
            row = _row(family, metric)
            whole = click.unstyle(_stacked(row, 10_000)).split()
            lines = click.unstyle(_stacked(row, width)).splitlines()
            assert " ".join(lines).split() == whole
            for line in lines:
                assert len(line) <= width or len(line.split()) == 1
