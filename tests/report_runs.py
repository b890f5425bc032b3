"""One run of the real commands: every channel of one report, and their statements."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests import report_csv, report_figures, report_statements
from tests.pdf_reader import pages_of
from tests.report_claims import Claims, unlike
from tests.report_lakes import JMXLAKE, jmxlake
from tests.report_statements import Statement, clean

if TYPE_CHECKING:
    from collections.abc import Iterator

CHANNELS: Final = ("page", "PDF", "terminal", "mail", "Slack", "Teams", "JSON", "CSV")
_SETTINGS: Final = """\
link: https://kafka.example.org/{{week}}/{{cluster}}.html
mail:
  host: localhost
  security: none
  from: slo@example.org
  to: ops@example.org
  attach: []
webhook:
  format: {format}
  url_variable: JMXLAKE_WEBHOOK
"""
_MOST_CHANGED: Final = 200
"""Statements of a channel of which a figure is changed, to see that it is found."""
_DIGITS: Final = re.compile(r"\d{13,}")


class Run(NamedTuple):
    """All that the commands wrote of one report.

    Attributes:
        name: The lake's name.
        folder: ``page.html``, ``page.pdf``, ``csv``.
        facts: The JSON.
        page: The HTML.
        terminal: The summary in 80 columns.
        mail: The message.
        slack: The message for Slack.
        teams: The message for Teams.
        sheets: The text of each page of the PDF.
    """

    name: str
    folder: Path
    facts: dict[str, Any]
    page: str
    terminal: str
    mail: str
    slack: dict[str, Any]
    teams: dict[str, Any]
    sheets: list[str]

    @property
    def statements(self) -> list[Statement]:
        """Every statement of every channel but CSV and PDF."""
        return [
            *report_statements.of_page(self.page),
            *report_statements.of_terminal(self.terminal),
            *report_statements.of_mail(self.mail),
            *report_statements.of_slack(self.slack),
            *report_statements.of_teams(self.teams),
        ]

    @property
    def texts(self) -> dict[str, str]:
        """What a person reads, by channel; CSV and JSON are for programs."""
        return {
            "page": re.sub(r"(?s)<(style|script)>.*?</\1>| (?:data-v|datetime|content)=\"[^\"]*\"",
                           " ", self.page),
            "PDF": " ".join(self.sheets),
            "terminal": self.terminal,
            "mail": " ".join(one.text for one in report_statements.of_mail(self.mail)),
            "Slack": json.dumps(self.slack, ensure_ascii=False),
            "Teams": json.dumps(self.teams, ensure_ascii=False),
        }  # fmt: skip


def run(name: str, lake: Path, folder: Path, *options: str) -> Run:
    """Report a lake once, to every channel.

    Raises:
        RuntimeError: A command failed.
    """
    out = folder / f"report-{name}"
    out.mkdir()
    given = ("--html", str(out / "page.html"), "--pdf", str(out / "page.pdf"),
             "--json", str(out / "report.json"), "--csv", str(out / "csv"))  # fmt: skip
    terminal = jmxlake("report", str(lake), *options, *given)
    (out / "terminal.txt").write_text(terminal, encoding="utf-8")
    return read(name, out)


def read(name: str, out: Path) -> Run:
    """Send the report that a folder has, on paper, and read every channel."""
    mail, slack = report_statements.of_dry_run(_sent(out, "slack"))
    _, teams = report_statements.of_dry_run(_sent(out, "teams"))
    facts = json.loads((out / "report.json").read_text(encoding="utf-8"))
    return Run(
        name, out, facts, (out / "page.html").read_text(encoding="utf-8"),
        (out / "terminal.txt").read_text(encoding="utf-8"), mail, slack, teams,
        pages_of(out / "page.pdf"),
    )  # fmt: skip


def _sent(out: Path, kind: str) -> str:
    settings = out / f"{kind}.yaml"
    settings.write_text(_SETTINGS.format(format=kind), encoding="utf-8")
    command = [JMXLAKE, "send", str(out / "report.json"), "--settings", str(settings), "--dry-run"]
    environment = {**os.environ, "JMXLAKE_WEBHOOK": "https://hooks.example.org/x"}
    done = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", check=False, env=environment
    )
    if done.returncode:
        raise RuntimeError(f"jmxlake send: {done.stderr[-2000:]}")
    return done.stdout


class Judged(NamedTuple):
    """What came of the comparison of one run.

    Attributes:
        statements: How many statements there were, by channel.
        contradictions: Each that the facts contradict, and why.
        mutations: How many statements had a figure that was changed.
        found: How many of these were then contradicted, by channel.
    """

    statements: dict[str, int]
    contradictions: list[str]
    mutations: dict[str, int]
    found: dict[str, int]


def judge(one: Run) -> Judged:
    """Compare every statement with the JSON of the same run."""
    claims = Claims(one.facts)
    counts = dict.fromkeys(CHANNELS, 0)
    mutations, found = dict(counts), dict(counts)
    wrong: list[str] = []
    said = one.statements
    for each in said:
        counts[each.channel] += 1
        if reasons := claims.wrong(each):
            wrong.append(f"{one.name}: {_told(each)}: {'; '.join(reasons[:3])}")
        elif mutations[each.channel] < _MOST_CHANGED and (changed := mutated(each)):
            mutations[each.channel] += 1
            found[each.channel] += bool(claims.wrong(changed))
    wrong += [f"{one.name}: {text}" for text in unlike(said)]
    for place, reasons in report_csv.compared(one.folder / "csv", one.facts):
        counts["CSV"] += 1
        wrong += [f"{one.name}: {place}: {'; '.join(reasons[:3])}"] if reasons else []
    paper = _bare(" ".join(one.sheets))
    for text in on_paper(one):
        counts["PDF"] += 1
        if text not in paper:
            wrong.append(f"{one.name}: the PDF lacks {text!r}")
    counts["JSON"] = len(one.facts)
    return Judged(counts, wrong, mutations, found)


def mutated(one: Statement) -> Statement | None:
    """Return the statement with one figure changed; None: it has none."""
    shown = [each.text for each in report_figures.figures(one.text, one.names)]
    text = next((each for each in shown if each in one.text and re.search(r"[1-9]", each)), None)
    if text is None:
        return None
    first = re.search(r"[1-9]", text)
    assert first is not None
    other = str((int(first[0]) + 4) % 9 + 1)
    changed = text[: first.start()] + other + text[first.end() :]
    return one._replace(text=one.text.replace(text, changed, 1))


def on_paper(one: Run) -> Iterator[str]:
    """Yield what the page's first screen says, which the PDF has to have, too."""
    for each in report_statements.of_page(one.page):
        if each.about == "headline" or (
            (each.about, each.field) in {
                ("tile", "value"), ("event", "title"), ("event", "used"),
                ("event", "length"), ("objective", "attained"), ("objective", "used"),
                ("objective", "status"),
            }
        ):  # fmt: skip
            yield _bare(each.text)


def _bare(text: str) -> str:
    """Return a text without spaces and without what keeps names apart, as lines are broken."""
    return clean(re.sub("[\u202a-\u202e\u2066-\u2069]", "", text)).replace(" ", "")


def microseconds(one: Run) -> list[str]:
    """Return the numbers of 13 digits and more that a person would read."""
    names = {text for text in report_figures.names(one.facts) if _DIGITS.search(text)}
    shown = []
    for channel, text in one.texts.items():
        rest = functools.reduce(lambda left, name: left.replace(name, ""), names, text)
        shown += [f"{one.name}, {channel}: {found}" for found in _DIGITS.findall(rest)]
    return shown


def _told(one: Statement) -> str:
    return f"{one.channel}, {one.about} {one.key!r} {one.field}: {one.text[:160]!r}"
