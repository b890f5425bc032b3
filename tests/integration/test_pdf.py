"""The page printed by a real Chromium."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
from email import message_from_bytes, policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from lakehouse.cli.main import main
from lakehouse.errors import PrintError
from lakehouse.report.page import page
from lakehouse.report.page.page import render
from lakehouse.report.summary import lines
from lakehouse.report.summary.summarize import summarize
from tests import sample_facts, summary_facts

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.browser, pytest.mark.reads]


@pytest.fixture(scope="module")
def chromium() -> str:
    try:
        return page.browser()
    except PrintError as error:
        pytest.skip(str(error))


def pages(printed: bytes) -> list[tuple[int, int]]:
    """Width and height of each page, points."""
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", printed)
    return [(round(float(width)), round(float(height))) for width, height in boxes]


@pytest.mark.usefixtures("chromium")
def test_the_command_prints_on_a4_from_the_facts_alone(tmp_path: Path):
    facts, target = tmp_path / "report.json", tmp_path / "out" / "report.pdf"
    facts.write_text(json.dumps(sample_facts.demo()))
    run = CliRunner().invoke(main, ["report", str(facts), "--pdf", str(target)])
    assert run.exit_code == 0, run.stderr
    printed = target.read_bytes()
    assert set(pages(printed)) == {(595, 842)}
    assert 3 <= len(pages(printed)) <= 12
    assert b"/StructTreeRoot" in printed, "a screen reader finds its headings and tables"
    assert b"/Outlines" in printed
    assert list(target.parent.iterdir()) == [target]


def test_names_of_attackers_print_like_others(chromium: str):
    assert len(pages(page.printed(render(sample_facts.hostile()), chromium))) >= 3


def test_a_fleet_prints_within_the_size_of_a_mail(chromium: str):
    """The questions, and all the sections there may be beside them."""
    facts = sample_facts.fleet()
    printed = page.printed(render(facts), chromium)
    assert len(printed) < 3_000_000
    assert len(pages(printed)) < 35
    beside = {"business_hours", "hygiene", "owners", "restated", "trends"}
    assert beside < facts.keys()
    printed = page.printed(render({k: v for k, v in facts.items() if k not in beside}), chromium)
    assert len(printed) < 2_500_000
    assert len(pages(printed)) < 25


def words_of(printed: bytes, folder: Path) -> list[str]:
    """The words of each page, in one line."""
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext is missing; on Debian: apt-get install poppler-utils")
    file = folder / "printed.pdf"
    file.write_bytes(printed)
    told = subprocess.run(
        ["pdftotext", "-raw", str(file), "-"], capture_output=True, text=True, check=True
    ).stdout
    return [" ".join(page.split()) for page in told.split("\f")]


@pytest.mark.parametrize("state", ["facts", "running", "blind"])
def test_first_side_is_the_summary(chromium: str, tmp_path: Path, state: str) -> None:
    facts = getattr(summary_facts, state)()
    summary = summarize(facts)
    first, *others = words_of(page.printed(render(facts), chromium), tmp_path)
    said = [summary.headline.text, summary.headline.then, *map(lines.plain, summary.lead)]
    for tile in summary.tiles:
        said += [tile.label, tile.value]
    for event in summary.events:
        said += [lines.plain(event.title), event.length]
        if event.is_major:
            said += [*map(lines.plain, (event.cause, event.next_step)), event.used]
    for one in summary.objectives:
        said += [one.title, one.attained, one.used]
    said += [lines.plain(one) for one in summary.notes]
    missing = [words for words in said if " ".join(words.split()) not in first]
    assert missing == []
    assert not [page for page in others if summary.headline.text in page]
    if not summary.is_blind:
        assert others[0].startswith("The period in steps"), "details begin on the second side"


def test_table_headings_repeat_on_each_page(chromium: str, tmp_path: Path):
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext is missing; on Debian: apt-get install poppler-utils")
    file = tmp_path / "fleet.pdf"
    file.write_bytes(page.printed(render(sample_facts.fleet()), chromium))
    told = subprocess.run(
        ["pdftotext", "-layout", str(file), "-"], capture_output=True, text=True, check=True
    ).stdout
    with_rows = [page for page in told.split("\f") if page.count("User:service") > 2]
    assert with_rows, "the table is printed"
    assert all("Rate, max" in page for page in with_rows)


def test_pdf_makes_no_network_request(chromium: str):
    """Even of a page that asks for something, without the policy that forbids it."""
    asked: list[str] = []

    class Listener(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Listener) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            for host in ("127.0.0.1", "localhost"):
                place = f"http://{host}:{server.server_port}"
                html = (
                    f"<img src='{place}/img'><link rel='stylesheet' href='{place}/css'>"
                    f"<iframe src='{place}/frame'></iframe><p>text"
                    f"<script>fetch('{place}/fetch', {{mode: 'no-cors'}})</script>"
                )
                assert len(pages(page.printed(html, chromium))) == 1
        finally:
            server.shutdown()
    assert asked == []


@pytest.mark.usefixtures("chromium")
def test_a_mail_has_the_printed_page_attached(tmp_path: Path):
    facts, settings = tmp_path / "report.json", tmp_path / "send.yaml"
    facts.write_text(json.dumps(sample_facts.quiet_week()))
    settings.write_text(
        "mail: {host: mail.example.org, from: a@example.org, to: b@example.org, attach: [pdf]}"
    )
    command = ["send", str(facts), "--settings", str(settings), "--dry-run"]
    run = CliRunner().invoke(main, command)
    assert run.exit_code == 0, run.stderr
    message = message_from_bytes(run.stdout_bytes, policy=policy.default)
    (attached,) = message.iter_attachments()
    assert attached.get_filename() == "kafka-slo-2026-11-09.pdf"
    assert set(pages(attached.get_content())) == {(595, 842)}
