"""What commands say on a terminal: one line, harmless, also of what nobody thought of."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from click.testing import CliRunner, Result

from collector.cli import check
from collector.cli.command import Step, guarded
from collector.cli.main import main
from collector.errors import ConfigError, HealthError, JmxlakeError, SourceError
from lakehouse.cli.main import main as lakehouse_main
from lakehouse.core import periods
from lakehouse.errors import PeriodError

if TYPE_CHECKING:
    from collector.config.schema import Config

DEPLOY = Path(__file__).parents[2] / "deploy"

ESCAPES = "c\x1b]0;pwned\x07\x1b[2J"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # It would end the tests where there is a JVM.
    monkeypatch.setattr("collector.cli.command._leave", sys.exit)
    path = tmp_path / "agent.yaml"
    path.write_text(
        f"source: {{node: 1, jmx: {{port: 9999}}}}\nlake: {{path: {tmp_path}/lake}}\n"
        f"spool: {{path: {tmp_path}/locked/spool.db}}\n"
    )
    return path


def test_what_a_broker_says_of_itself_is_shown_and_not_sent(
    capsys: pytest.CaptureFixture[str], path: Path
) -> None:
    check._print_step(Step("jmx", f"node 1 of cluster {ESCAPES}", ok=True), as_json=False)

    def work(_: Config) -> None:
        raise JmxlakeError(f"cluster {ESCAPES} answers")

    with pytest.raises(SystemExit):
        guarded(path, work)
    said = capsys.readouterr()
    for text in (said.out, said.err):
        assert "\x1b" not in text
        assert "\\x1b]0;pwned\\x07" in text


@pytest.mark.parametrize(
    "error", [ModuleNotFoundError("jpype"), BrokenPipeError(), click.UsageError("x"), click.Abort()]
)
def test_what_others_have_words_for_is_left_to_them(error: Exception, path: Path) -> None:
    def work(_: Config) -> None:
        raise error

    with pytest.raises(type(error)):
        guarded(path, work)


def test_what_nobody_thought_of_is_one_line_that_says_where(
    capsys: pytest.CaptureFixture[str], path: Path
) -> None:
    def work(_: Config) -> None:
        raise KeyError("of\nours")

    with pytest.raises(SystemExit) as ended:
        guarded(path, work)
    said = capsys.readouterr().err
    assert ended.value.code == 1
    assert said.count("\n") == 1
    assert said.startswith("jmxlake-agent: unexpected KeyError: ")
    assert "(test_command_lines.py:" in said


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("window: is wrong"), 78),
        (HealthError("health: cannot listen"), 1),
        (SourceError("it does not answer"), 1),
    ],
)
def test_a_broken_configuration_has_an_exit_code_of_its_own(
    error: JmxlakeError, code: int, path: Path
) -> None:
    def work(_: Config) -> None:
        raise error

    with pytest.raises(SystemExit) as ended:
        guarded(path, work)
    assert ended.value.code == code


def test_a_configuration_that_cannot_be_read_ends_with_78_and_systemd_does_not_try_again(
    path: Path,
) -> None:
    path.write_text("window: [")
    with pytest.raises(SystemExit) as ended:
        guarded(path, lambda _: None)
    assert ended.value.code == 78
    unit = (DEPLOY / "systemd" / "jmxlake-agent.service").read_text("utf-8")
    assert "\nRestartPreventExitStatus=78\n" in unit


def test_elsewhere_than_on_linux_it_says_so_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    ran = CliRunner().invoke(main, ["run"])
    assert ran.exit_code == 1
    assert ran.stderr == (
        "jmxlake-agent: run: the agent requires Linux. On this system, use check --offline\n"
    )


@pytest.mark.parametrize("command", ["check", "scrape", "top", "metrics", "support-bundle"])
@pytest.mark.usefixtures("path")
def test_configuration_is_named_by_c_or_the_environment(command: str) -> None:
    by_environment = CliRunner(env={"JMXLAKE_CONFIG": "/none.yaml"}).invoke(main, [command])
    by_option = CliRunner(env={"JMXLAKE_CONFIG": "/other"}).invoke(
        main, [command, "-c", "/none.yaml"]
    )
    for ran in (by_environment, by_option):
        assert ran.exit_code == 78
        (line,) = ran.stderr.splitlines()
        assert line.startswith("jmxlake-agent: /none.yaml: No such file or directory. Set --config")


def offline(path: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "collector.cli.main",
        "check",
        "--offline",
        "--config",
        str(path),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_check_offline_looks_at_files_alone(path: Path, tmp_path: Path) -> None:
    ran = offline(path)
    assert (ran.returncode, ran.stderr) == (0, "")
    first, second = ran.stdout.splitlines()
    assert first == f"ok      configuration: {path}"
    assert second.startswith("ok      catalogue: ")
    assert [one.name for one in tmp_path.iterdir()] == ["agent.yaml"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("window: 7s", "window: must divide 5m"),
        ("families: {quotaz: {cap: 1}}", "families.quotaz: unknown family"),
        ("families: {log: {interval: 3m}}", "families.log.interval"),
        ("limits: {window_rows: 1}", "limits.window_rows: Expected `int` >= 1000"),
        ("limits: {memory: 1MiB}", "limits.memory: must be at least 256MiB"),
        ("catalogue: /none", "/none"),
        ("java: {options: '\"'}", "java.options: not valid shell syntax"),
    ],
)
def test_check_offline_ends_with_78_where_configuration_or_catalogue_is_wrong(
    path: Path, wrong: str, said: str
) -> None:
    path.write_text(f"{path.read_text()}{wrong}\n")
    ran = offline(path)
    assert ran.returncode == 78
    (line,) = ran.stderr.splitlines()
    assert said in line


class PanicException(BaseException):
    """A fake of pyo3's panic, which is not an Exception."""


PROGRAMS = {"jmxlake-agent": main, "jmxlake": lakehouse_main}


@pytest.fixture(params=PROGRAMS)
def broken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Any]:
    """A program whose command ``completion`` raises an error, which the returned call takes."""
    group = PROGRAMS[request.param]

    def run(error: BaseException) -> Result:
        @click.command
        def fails() -> None:
            raise error

        monkeypatch.setattr(type(group), "get_command", lambda *_: fails)
        return CliRunner().invoke(group, ["completion"], prog_name=request.param)

    return request.param, run


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyError("of\nours"), "unexpected KeyError: 'of\\nours' (test_command_lines.py:"),
        (RecursionError("too deep"), "unexpected RecursionError: too deep ("),
        (PanicException("bad\n   0: <unknown>\n   1: f\n"), "unexpected PanicException: bad ("),
        (OSError("http://u:HIDDEN@h:99/x?sig=HIDDEN"), "OSError: http://***@h:99/x?*** ("),
        (ValueError("a\x1b[2Jb\u202ec"), "a\\x1b[2Jb\\u202ec"),
    ],
)
def test_unexpected_error_is_one_line(
    broken: tuple[str, Any], error: BaseException, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, run = broken
    ended = run(error)
    assert ended.exit_code == 1
    assert ended.stderr.startswith(f"{program}: unexpected ")
    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert ended.stderr.endswith("please report it; set JMXLAKE_TRACEBACK=1 for the traceback\n")
    monkeypatch.setenv("JMXLAKE_TRACEBACK", "1")
    assert "Traceback (most recent call last)" in run(error).stderr


class FakeSparkError(Exception):
    """A fake of an error of classic Spark, known by its module."""

    __module__ = "py4j.protocol"


def test_error_of_spark_is_one_line_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "An error occurred while calling o84.sql.\n: org.x.SparkException: [UDF] "
        "sc://h:1/;token=HIDDEN has x\x1b[2J\n\tat org.x.Y.z(Y.scala:5)\nCaused by: more\n"
    )

    @click.command
    def fails() -> None:
        raise FakeSparkError(text)

    monkeypatch.setattr(type(lakehouse_main), "get_command", lambda *_: fails)
    ended = CliRunner().invoke(lakehouse_main, ["completion"], prog_name="jmxlake")
    assert ended.exit_code == 1
    assert ended.stderr == (
        "jmxlake: Spark failed: org.x.SparkException: [UDF] sc://h:1/;token=*** has x\\x1b[2J\n"
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [(KeyboardInterrupt(), 1), (SystemExit(5), 5), (BrokenPipeError(errno.EPIPE, "x"), 1)],
)
def test_exit_has_no_line_of_a_fault(
    broken: tuple[str, Any], error: BaseException, code: int
) -> None:
    ended = broken[1](error)
    assert ended.exit_code == code
    assert "unexpected" not in ended.output


@pytest.mark.parametrize("program", PROGRAMS)
def test_rust_logs_nothing_unless_it_is_asked_to(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RUST_LOG", raising=False)
    CliRunner().invoke(PROGRAMS[program], ["completion", "bash"], prog_name=program)
    assert os.environ["RUST_LOG"] == "off"


_HUGE = "9" * 25
ODD_VALUES = [
    ("maintain", "--keep", f"{_HUGE}d"), ("maintain", "--keep", "36501d"),
    ("maintain", "--every", f"{_HUGE}d"), ("maintain", "--keep", "0d"),
    ("maintain", "--read-until", f"{_HUGE}d"), ("maintain", "--read-until", "999999d"),
    ("maintain", "--read-until", "0001-01-01"), ("maintain", "--accept", f"runs@{_HUGE}"),
    ("maintain", "--accept", "runs@\u0661"), ("doctor", "--late", _HUGE),
    ("doctor", "--days", _HUGE), ("rollup", "--since", "0001-01-01"),
    ("rollup", "--since", "9999-12-31"), ("rollup", "--window", f"{_HUGE}m"),
    ("rollup", "--rows", "0"), ("verify", "--windows", "0"), ("sample", "--until", "0001-01-01"),
    ("sample", "--until", "1970-01-02"), ("report", "--min-coverage", "nan"),
    ("report", "--min-coverage", "-inf"), ("report", "--min-coverage", "1e400"),
    ("report", "--week", "0001-W01"), ("report", "--week", "9999-W52"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "option", "value"), ODD_VALUES)
def test_odd_value_of_an_option_is_refused_in_one_line(
    command: str, option: str, value: str, tmp_path: Path
) -> None:
    (tmp_path / "bronze/runs/_delta_log").mkdir(parents=True)
    arguments = [command, str(tmp_path), option, value]
    arguments += ["--gold", "none"] if option == "--read-until" else []
    ended = CliRunner().invoke(lakehouse_main, arguments, prog_name="jmxlake")
    assert ended.exit_code in {1, 2}
    assert "unexpected" not in ended.stderr
    last = ended.stderr.splitlines()[-1]
    assert option in last or value[:40] in last
    assert len(last) < 250


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("0001-01-01T00:00:00+14:00", "2026-01-01"), ("2026-01-01", "9999-12-31T23:00:00-12:00"),
        ("0001-01-01", "9999-12-31"), ("1969-12-31", "1970-01-02"),
    ],
)  # fmt: skip
def test_instant_outside_the_calendar_is_refused(start: str, end: str) -> None:
    with pytest.raises(PeriodError, match="use a time between 1970 and 9998"):
        periods.span(start, end)
