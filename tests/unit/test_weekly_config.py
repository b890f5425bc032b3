"""``weekly --config``: one file with every option of the command."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import pytest
import yaml
from click.testing import CliRunner

from lakehouse.cli.main import main
from lakehouse.cli.options import named
from lakehouse.cli.weekly import settings_in, weekly
from lakehouse.errors import ConfigFileError
from lakehouse.report import owners
from lakehouse.report.send import delivery
from lakehouse.report.send.delivery import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

OPTIONS: Final = {name: one for one in weekly.params for name in one.opts if name.startswith("--")}


def context_of(folder: Path, text: str, *arguments: str) -> click.Context:
    file = folder / "weekly.yaml"
    file.write_text(text, encoding="utf-8")
    return weekly.make_context("weekly", ["--config", str(file), *arguments])


def printed() -> str:
    run = CliRunner().invoke(main, ["weekly", "--print-config"])
    assert run.exit_code == 0, run.stderr
    return run.stdout


def uncommented() -> Iterator[tuple[str, str]]:
    """Each key of the printed file with its example; of ``send`` the whole block."""
    for block in printed().split("\n\n")[1:]:
        lines = [line.removeprefix("# ") for line in block.splitlines()]
        start = next(at for at, line in enumerate(lines) if re.match(r"[a-z_]+:( |$)", line))
        yield lines[start].partition(":")[0], "\n".join(lines[start:])


EXAMPLES: Final = dict(uncommented())


def test_printed_file_is_valid_and_has_every_option(tmp_path: Path) -> None:
    params = context_of(tmp_path, printed()).params
    assert params["root"] == "s3://bucket/kafka"
    assert params["tidy"] == "daily"
    assert params["html_file"] is None, "the others are commented out"
    keys = {name.removeprefix("--").replace("-", "_") for name in OPTIONS}
    assert set(EXAMPLES) == (keys | {"lake"}) - {"config", "print_config"}


@pytest.mark.parametrize("key", EXAMPLES)
def test_each_example_is_valid(tmp_path: Path, key: str) -> None:
    text = EXAMPLES[key] + ("" if key == "lake" else "\nlake: x")
    text = text.replace("/etc/jmxlake/objectives", str(tmp_path))  # it has to exist
    found = context_of(tmp_path, text)
    if key == "send":
        sent = settings_in(found)
        assert isinstance(sent, Settings)
        assert sent.mail is not None
        assert sent.webhook is not None
        assert sent.mail.attach == ("html", "pdf")
    else:
        name = "root" if key == "lake" else OPTIONS[f"--{key.replace('_', '-')}"].name
        assert found.params[name] is not None


def test_option_of_the_command_line_wins(tmp_path: Path) -> None:
    text = "lake: a\nhtml: b.html\nmin_coverage: 30\nengine: local\nsend: one.yaml"
    params = context_of(tmp_path, text).params
    assert params["root"] == "a"
    assert params["html_file"] == Path("b.html")
    assert params["min_coverage"] == 30
    assert params["settings_file"] == Path("one.yaml")
    params = context_of(
        tmp_path, text, "other", "--html", "c.html", "--min-coverage", "70", "--send", "two.yaml"
    ).params
    assert params["root"] == "other"
    assert params["html_file"] == Path("c.html")
    assert params["min_coverage"] == 70
    assert params["settings_file"] == Path("two.yaml")
    assert params["engine"] == "local"


WRONG: Final[dict[str, Any]] = {
    "": "expected options, such as lake: /srv/lake",
    "[lake]": "expected options",
    "lake: [x]": "lake: expected a line of text",
    "lake: x\nhtlm: y": "htlm: unknown key; did you mean 'html'?",
    "lake: x\nlake: y": "duplicate key 'lake'",
    "lake: x\nevery-cluster: y": "unknown key; did you mean 'every_cluster'?",
    "lake: x\nconfig: y": "config: unknown key",
    "lake: x\nengine: duckdb": "engine: expected one of",
    "lake: x\nmin_coverage: 101": "min_coverage: expected a number from 0 to 100",
    "lake: x\nwindow: 5x": "window: ",
    "lake: x\nfrom: 2026-11-16T00:00:00Z": "from: expected a line of text",
    "lake: x\nobjectives: /nowhere/at/all": "objectives: ",
    "lake: x\nsend: {mail: {host: h}}": "send.mail: from is missing",
    "lake: x\nsend: {}": "send: set mail, webhook or both",
    "lake: x\nsend: {webhook: {url: 'https://SECRET'}}": "send.webhook.url: a secret is not",
    "lake: x\nsend: {mail: {password: SECRET}}": "send.mail.password: a secret is not allowed here",
    "lake: x\nsend: {webhook: {url_file: a}, link: 'http://x'}": "send.link: expected an address",
    "lake: [": "not YAML",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_file_is_one_line_before_anything_starts(tmp_path: Path, text: str) -> None:
    with pytest.raises((ConfigFileError, click.BadParameter)) as caught:
        context_of(tmp_path, text)
    said = str(caught.value)
    assert WRONG[text] in said
    assert "weekly.yaml" in said
    assert "\n" not in said
    assert "SECRET" not in said


def test_command_ends_with_one_line(tmp_path: Path) -> None:
    run = CliRunner().invoke(main, ["weekly", "--config", str(tmp_path / "none.yaml")])
    assert run.exit_code == 1
    (line,) = run.stderr.splitlines()
    assert "none.yaml" in line
    assert "Specify a file with options" in line
    run = CliRunner().invoke(main, ["weekly"])
    assert run.exit_code == 2
    assert "Missing argument 'LAKE'" in run.stderr


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("send: {webhook: {url_variable: X}}\njson: '-'", "cannot be combined with --send"),
        ("link: https://x.example", "--link requires --send"),
        ("every_cluster: x\nhtml: y", "cannot be combined with other outputs"),
        ("team: x", "--team requires --owners"),
    ],
)
def test_options_that_exclude_each_other_do_so_in_the_file(
    tmp_path: Path, more: str, said: str
) -> None:
    file = tmp_path / "weekly.yaml"
    file.write_text(f"lake: {tmp_path / 'lake'}\n{more}\n", encoding="utf-8")
    run = CliRunner().invoke(main, ["weekly", "--config", str(file)])
    assert run.exit_code == 2
    assert said in run.stderr


PAGE: Final = (Path(__file__).parents[2] / "docs/weekly.md").read_text("utf-8")


def test_files_of_the_page_are_valid(tmp_path: Path) -> None:
    job, chart, send, owned = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    file = tmp_path / "send.yaml"
    file.write_text(send)
    loaded = delivery.load(file)
    assert loaded.link == "https://reports.example.org/kafka/{week}.html"
    found = context_of(tmp_path, job)
    assert found.params["owners_file"] == Path("/etc/jmxlake/owners.yaml")
    sent = settings_in(found)
    assert sent is not None
    assert sent.webhook is not None
    assert sent.webhook.format == "teams"
    of_chart = yaml.safe_load(chart)["weekly"]["config"]
    assert context_of(tmp_path, yaml.safe_dump(of_chart), "lake").params["root"] == "lake"
    (tmp_path / "owners.yaml").write_text(owned)
    assert owners.load(tmp_path / "owners.yaml").prices is not None


def test_week_and_cluster_are_filled_in_and_lead_nowhere_else() -> None:
    facts = {"week": {"iso": "2026-W47"}, "from": "2026-11-16", "cluster": "../../etc"}
    made = named("/reports/{cluster}/{week}.html", facts)
    assert re.fullmatch(r"/reports/etc-[0-9a-f]{8}/2026-W47\.html", made)
    facts |= {"week": None, "from": "2026-11-21T06:00:00Z", "cluster": "{week}"}
    assert named("{week}", facts) == "2026-11-21"
    assert named("{cluster}", facts).startswith("week-"), "what is filled in is not filled in again"
    assert named("{other}", facts) == "{other}"
