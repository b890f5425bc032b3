"""The page in a real Chromium: at every width, in both schemes, on paper, and under attack."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse.core import display
from lakehouse.report.page import page as page_file
from lakehouse.report.page.page import render
from lakehouse.report.summary.summarize import summarize
from lakehouse.report.tables.section import details
from tests import page_weeks, sample_facts
from tests.page_reader import read
from tests.pdf_reader import pages_of

if TYPE_CHECKING:
    from collections.abc import Iterable

pytestmark = [pytest.mark.browser, pytest.mark.reads]

LONG = "n" * 249
MIXED = "\u05d0\u05d1\u05d2 <b>bold</b> \u0627\u0644"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--enable-logging=stderr",
)
_COLLECTING = """<!doctype html><title></title><script>
    const answers = {};
    function answered(width, answer) {
        answers[width] = answer;
        document.title = JSON.stringify(answers);
    }
</script>"""
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')


@dataclass(frozen=True)
class Seen:
    dom: str
    console: list[str]


@dataclass(frozen=True)
class Browser:
    binary: str
    folder: Path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        profile = self.folder / "profile"
        try:
            return subprocess.run(
                [
                    self.binary,
                    *FLAGS,
                    # Chromium itself would call home: here no name leads anywhere.
                    "--host-resolver-rules=MAP * ~NOTFOUND",
                    f"--user-data-dir={profile}",
                    *arguments,
                ],
                capture_output=True,
                text=True,
                encoding="utf-8",
                timeout=180,
                check=True,
            )
        finally:
            shutil.rmtree(profile, ignore_errors=True)

    def open(self, html: str, *arguments: str) -> Seen:
        file = self.folder / "page.html"
        file.write_text(html, encoding="utf-8")
        done = self.run(*arguments, "--dump-dom", file.as_uri())
        console = [line for line in done.stderr.splitlines() if ":CONSOLE:" in line]
        return Seen(done.stdout, console)

    def ask(self, html: str, question: str, *arguments: str, width: int = 1280) -> Any:
        """Return the result of a script in the page, without the policy that forbids scripts."""
        return self.ask_at(html, question, (width,), *arguments)[width]

    def ask_at(
        self, html: str, question: str, widths: Iterable[int], *arguments: str
    ) -> dict[int, Any]:
        """Return the result of a script in the page at each width.

        Each page is in a frame of the width, as Chromium makes no window below 500 pixels.
        """
        body, replaced = POLICY.subn("", html)
        assert replaced == 1
        answer = f"parent.answered(frameElement.width, (() => {{ {question} }})());"
        framed = escape(body.replace("</body>", f"<script>{answer}</script></body>"))
        frames = (
            f'<iframe width="{one}" height="900" srcdoc="{framed}"></iframe>' for one in widths
        )
        seen = self.open(f"{_COLLECTING}{''.join(frames)}", *arguments)
        assert not seen.console
        return {int(width): one for width, one in json.loads(read_title(seen.dom)).items()}


def html_of(week: Any, **facts: Any) -> str:
    """The page of a week with the folds of the demo."""
    given = page_weeks.facts(**facts)
    demo = sample_facts.demo()
    with display.shown_in(display.zone_of(given)):
        return page_file.page(week, details(demo, summarize(demo)), given)


PAGES = {
    "bad": lambda: html_of(page_weeks.bad_week()),
    "running": lambda: html_of(page_weeks.running_week()),
    "uncertain": lambda: html_of(page_weeks.uncertain_week()),
    "blind": lambda: html_of(page_weeks.blind_week()),
    "many": lambda: html_of(page_weeks.fleet()),
    "long-names": lambda: html_of(page_weeks.odd_week(LONG)),
    "mixed-names": lambda: html_of(page_weeks.odd_week(MIXED)),
    "hostile": lambda: render(sample_facts.hostile()),
    "fleet": lambda: render(sample_facts.fleet(300, 300)),
}


def read_title(dom: str) -> str:
    return read(f"<p>{dom.partition('<title>')[2].partition('</title>')[0]}</p>").raw


@pytest.fixture(scope="module")
def html() -> dict[str, str]:
    return {name: make() for name, make in PAGES.items()}


@pytest.fixture
def browser(tmp_path) -> Browser:
    found = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if found is None:
        pytest.skip("no browser is installed; on Debian: apt-get install chromium")
    return Browser(found, tmp_path)


@pytest.mark.parametrize("page", ["bad", "blind", "hostile"])
def test_browser_logs_no_error(browser, html, page):
    seen = browser.open(html[page])
    assert seen.console == []
    assert "Kafka SLO report" in read_title(seen.dom)
    assert '<button type="button">' in seen.dom, "the script ran under its hash"


def test_policy_blocks_injected_content(browser, html):
    intruder = (
        "<main><script>document.title = 'owned'</script><p onclick='1' style='color:red'>"
        "<img src='http://127.0.0.1:9/pixel.png' alt=''></p>"
    )
    seen = browser.open(html["bad"].replace("<main>", intruder))
    assert read_title(seen.dom).startswith("4 of 9 objectives missed")
    assert len([line for line in seen.console if "Content Security Policy" in line]) == 4


@pytest.mark.parametrize("page", ["bad", "running", "long-names", "mixed-names", "fleet"])
def test_page_has_no_horizontal_overflow(browser, html, page):
    widths = (390, 768, 1440, 2560)
    answers = browser.ask_at(
        html[page],
        """
        document.querySelectorAll("details").forEach((fold) => { fold.open = true; });
        // Tables of folds scroll on their own, and drawings are cut at their edge.
        const over = [...document.querySelectorAll("body *")].filter((one) =>
            !one.closest(".skip, .defs, .scroll, svg")
            && !(innerWidth < 704 && one.closest("thead"))
            && one.getBoundingClientRect().right > innerWidth + 1);
        return {
            width: innerWidth,
            page: document.documentElement.scrollWidth,
            over: over.map((one) => one.outerHTML.slice(0, 120)),
            smallest: Math.min(...[...document.querySelectorAll(".lanes text, .strip text")]
                .map((one) => one.getBoundingClientRect().height).filter(Boolean)),
        };""",
        widths,
    )
    assert {width: answer["width"] for width, answer in answers.items()} == {
        width: width for width in widths
    }
    for width, answer in answers.items():
        assert answer["over"] == [], width
        assert answer["page"] <= width
        assert answer["smallest"] >= 10, width


@pytest.mark.parametrize(("page", "wide", "narrow"), [("bad", 5, 12), ("many", 6, 14)])
def test_the_page_is_short_while_its_folds_are_closed(browser, html, page, wide, narrow):
    question = "return document.documentElement.scrollHeight;"
    heights = browser.ask_at(html[page], question, (1440, 390))
    assert heights[1440] <= wide * 900
    assert heights[390] <= narrow * 844


def test_the_first_screen_has_the_worst_of_everything(browser, html):
    answer = browser.ask(
        html["bad"],
        """
        const bottom = (one) => document.querySelector(one).getBoundingClientRect().bottom;
        return [".tiles", ".strip", "#event-1", "#event-3", "#event-5"].map(bottom);""",
        width=1440,
    )
    assert max(answer[:-1]) < 900
    assert answer == sorted(answer)


def test_a_table_can_be_sorted_by_its_headings(browser, html):
    answer = browser.ask(
        html["bad"],
        """
        const table = document.querySelector("table.slo");
        const heading = [...table.querySelectorAll("th")]
            .find((one) => one.textContent.startsWith("Budget used"));
        const names = () => [...table.tBodies[0].rows].map((row) => row.id);
        const orders = [];
        for (const _ of [1, 2]) {
            heading.querySelector("button").click();
            orders.push([heading.getAttribute("aria-sort"), names()]);
        }
        return orders;""",
        width=1440,
    )
    up, down = answer
    assert (up[0], down[0]) == ("ascending", "descending")
    assert down[1][:3] == ["slo-lost-before-read", "slo-produce-throttling", "slo-leaderless"]
    assert up[1][-1] == "slo-lost-before-read"


def test_filter_opens_matching_folds_and_hides_the_rest(browser, html):
    answer = browser.ask(
        html["bad"],
        """
        const filter = document.querySelector(".filter");
        filter.value = "BULK-LOADER";
        filter.dispatchEvent(new Event("input"));
        const rows = [...document.querySelectorAll("#details tbody tr")]
            .filter((row) => row.getClientRects().length).map((row) => row.textContent);
        const folds = [...document.querySelectorAll("#details > details")]
            .filter((one) => one.getClientRects().length).map((one) => one.open);
        return {rows, folds, hidden: filter.hidden};""",
    )
    assert not answer["hidden"]
    assert answer["rows"]
    assert all("bulk-loader" in row for row in answer["rows"])
    assert all(answer["folds"])


def test_a_link_to_a_fold_opens_it_without_a_script(browser, html):
    without = re.sub(r"<script>.*?</script>", "", html["bad"], flags=re.DOTALL)
    file = browser.folder / "page.html"
    file.write_text(without, encoding="utf-8")
    seen = browser.run("--dump-dom", f"{file.as_uri()}#d-throttling").stdout
    opened = [one for one in read(seen[seen.index("<html") :]).all("details")
              if "open" in one.attributes]  # fmt: skip
    assert [one.one("div").attributes["id"] for one in opened] == ["d-throttling"]


def test_both_schemes_have_their_own_colours(browser, html):
    question = """
        const colour = (selector, property) =>
            getComputedStyle(document.querySelector(selector)).getPropertyValue(property);
        return [colour("body", "background-color"), colour("body", "color"),
            colour(".budget .over", "fill"), colour(".lanes .bad", "fill"),
            colour("h1 .state", "color"), colour(".strip .mark", "fill")];"""
    dark, light = (
        browser.ask(html["bad"], question, f"--blink-settings=preferredColorScheme={scheme}")
        for scheme in (0, 1)
    )
    assert (light[0], dark[0]) == ("rgb(255, 255, 255)", "rgb(20, 23, 27)")
    assert all(one != other for one, other in zip(light, dark, strict=True))
    assert "rgb(0, 0, 0)" not in light + dark


@pytest.mark.parametrize("page", ["bad", "running", "uncertain"])
def test_the_first_sheet_of_paper_is_the_report_in_short(browser, html, page):
    file, printed = browser.folder / "page.html", browser.folder / "page.pdf"
    file.write_text(html[page], encoding="utf-8")
    browser.run(f"--print-to-pdf={printed}", "--no-pdf-header-footer", file.as_uri())
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", printed.read_bytes())
    assert {(round(float(width)), round(float(height))) for width, height in boxes} == {(595, 842)}
    first, second, *_ = pages_of(printed)
    titles = [one.one("b").text for one in read(html[page]).all("td", class_="what")]
    assert all(title in first for title in titles)
    assert second.startswith("The week, hour by hour")
    assert "Throttled" in "".join(pages_of(printed)[1:]), "folds are open on paper"


def test_long_table_on_paper_is_cut_with_a_note(browser, html):
    file, printed = browser.folder / "page.html", browser.folder / "page.pdf"
    file.write_text(html["fleet"], encoding="utf-8")
    browser.run(f"--print-to-pdf={printed}", "--no-pdf-header-footer", file.as_uri())
    pages = pages_of(printed)
    assert "On paper: the first 15 rows." in " ".join(pages)
    assert len(pages) <= 20
