"""What commands say on a terminal: one line, harmless, also of what nobody thought of."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
import pytest

from collector.commands import check, common
from collector.commands.common import Step
from collector.errors import JmxlakeError

if TYPE_CHECKING:
    from pathlib import Path

    from collector.sections import Config

ESCAPES = "c\x1b]0;pwned\x07\x1b[2J"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(common, "_leave", sys.exit)  # it would end the tests where there is a JVM
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
        common.guarded(path, work)
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
        common.guarded(path, work)


def test_what_nobody_thought_of_is_one_line_that_says_where(
    capsys: pytest.CaptureFixture[str], path: Path
) -> None:
    def work(_: Config) -> None:
        raise KeyError("of\nours")

    with pytest.raises(SystemExit) as ended:
        common.guarded(path, work)
    said = capsys.readouterr().err
    assert ended.value.code == 1
    assert said.count("\n") == 1
    assert said.startswith("jmxlake-agent: unexpected KeyError: ")
    assert "(test_command_lines.py:" in said
