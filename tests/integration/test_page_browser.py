"""The page in a real Chromium: at every width, in both schemes, on paper, and under attack."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import pytest

from lakehouse.report.page.page import render
from tests import sample_facts
from tests.page_reader import read
from tests.unit.test_page_corrections import whole

pytestmark = pytest.mark.browser

SAMPLES = ("quiet_week", "demo", "silent_week", "hostile")
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
        """What a script says of the page; it may only run because the policy is taken out.

        The page stands in a frame of the width, as Chromium makes no window below 500 pixels.
        """
        body, replaced = POLICY.subn("", html)
        assert replaced == 1
        answer = f"parent.document.title = JSON.stringify((() => {{ {question} }})());"
        framed = body.replace("</body>", f"<script>{answer}</script></body>")
        frame = f'<iframe width="{width}" height="900" srcdoc="{escape(framed)}"></iframe>'
        seen = self.open(f"<!doctype html><title></title>{frame}", *arguments)
        assert not seen.console
        return json.loads(read_title(seen.dom))


def read_title(dom: str) -> str:
    return read(f"<p>{dom.partition('<title>')[2].partition('</title>')[0]}</p>").raw


@pytest.fixture(scope="module")
def html() -> dict[str, str]:
    pages = {name: render(getattr(sample_facts, name)()) for name in SAMPLES}
    return pages | {"whole": render(whole())}


@pytest.fixture
def browser(tmp_path) -> Browser:
    found = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if found is None:
        pytest.skip("no browser is installed; on Debian: apt-get install chromium")
    return Browser(found, tmp_path)


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_browser_has_nothing_to_complain_of(browser, html, sample):
    seen = browser.open(html[sample])
    assert seen.console == []
    assert read_title(seen.dom).startswith("Kafka SLA report, ")
    # The one script ran under its hash.
    assert '<button type="button">' in seen.dom


def test_the_policy_keeps_out_what_gets_in(browser, html):
    intruder = (
        "<main><script>document.title = 'owned'</script><p onclick='1' style='color:red'>"
        "<img src='http://127.0.0.1:9/pixel.png' alt=''></p>"
    )
    seen = browser.open(html["demo"].replace("<main>", intruder))
    assert read_title(seen.dom).startswith("Kafka SLA report, ")
    assert len([line for line in seen.console if "Content Security Policy" in line]) == 4


@pytest.mark.parametrize("width", [390, 768, 1280, 2560])
@pytest.mark.parametrize("sample", ["demo", "hostile", "whole"])
def test_nothing_hangs_over_the_edge(browser, html, sample, width):
    answer = browser.ask(
        html[sample],
        """
        document.querySelectorAll("details").forEach((fold) => { fold.open = true; });
        const over = [...document.querySelectorAll("body *")].filter((one) =>
            !one.closest(".skip, .symbols, .chart")
            // On a phone the headings are out of sight, and each cell names its own.
            && !(innerWidth < 704 && one.closest("thead"))
            && one.getBoundingClientRect().right > innerWidth + 1);
        const drawings = [...document.querySelectorAll(".chart")]
            .filter((one) => one.getClientRects().length);
        return {
            width: innerWidth,
            page: document.documentElement.scrollWidth,
            over: over.map((one) => one.outerHTML.slice(0, 120)),
            drawings: [...new Set(drawings.map((one) => one.classList[1]))],
            smallest: Math.min(...[...document.querySelectorAll(".chart text")]
                .map((one) => one.getBoundingClientRect().height).filter(Boolean)),
        };""",
        width=width,
    )
    assert answer["width"] == width
    assert answer["page"] <= width
    assert answer["over"] == []
    assert answer["drawings"] == ["narrow" if width < 704 else "wide"]
    assert answer["smallest"] >= 10


def test_a_column_can_be_sorted_and_what_is_not_known_stays_last(browser, html):
    answer = browser.ask(
        html["demo"],
        """
        const table = [...document.querySelectorAll("#throttling table")][0];
        const heading = [...table.querySelectorAll("th")]
            .find((one) => one.textContent === "Mean wait");
        const names = () => [...table.tBodies[0].rows]
            .map((row) => row.querySelector(".name:last-child bdi").textContent);
        const orders = [];
        for (const _ of [1, 2]) {
            heading.querySelector("button").click();
            orders.push([heading.getAttribute("aria-sort"), names()]);
        }
        return orders;""",
    )
    down, up = answer
    assert down[0] == "descending"
    assert down[1] == ["bulk-loader", "reporter", "poller", "billing"]
    assert up[0] == "ascending"
    assert up[1] == ["poller", "reporter", "bulk-loader", "billing"]


def test_what_is_behind_the_fold_is_sorted_with_the_rest(browser):
    facts = sample_facts.demo()
    facts["throttling"]["clients"] = [
        sample_facts.client(f"application-{n:02}", None, "fetch", throttle_ms_mean=float(n))
        for n in range(30)
    ]
    answer = browser.ask(
        render(facts),
        """
        const tables = [...document.querySelectorAll("#throttling table")];
        [...tables[1].querySelectorAll("th")].find((one) => one.textContent === "Mean wait")
            .querySelector("button").click();
        return tables.map((table) => [table.querySelector("[aria-sort]").textContent,
            ...[...table.tBodies[0].rows].map((row) => row.cells[0].textContent.slice(-2))]);""",
    )
    expected = [f"{n:02}" for n in reversed(range(30))]
    assert answer == [["Mean wait", *expected[:8]], ["Mean wait", *expected[8:]]]


def test_on_paper_a_long_list_is_as_long_as_it_says_and_closed_again_afterwards(browser):
    facts = sample_facts.demo()
    facts["throttling"]["clients"] = [
        sample_facts.client(f"application-{n:02}", None, "fetch") for n in range(90)
    ]
    answer = browser.ask(
        render(facts),
        """
        const folds = () => [...document.querySelectorAll("details")].map((one) => one.open);
        const before = folds();
        dispatchEvent(new Event("beforeprint"));
        const fold = document.querySelector("#throttling details.more");
        const during = [fold.open, fold.classList.contains("paper")];
        dispatchEvent(new Event("afterprint"));
        return {before, during, after: fold.open};""",
    )
    assert not any(answer["before"])
    assert answer["during"] == [True, True]
    assert not answer["after"]


def test_a_long_list_can_be_searched(browser):
    facts = sample_facts.demo()
    facts["throttling"]["clients"] = [
        sample_facts.client(f"application-{n}", None, "fetch") for n in range(42)
    ]
    answer = browser.ask(
        render(facts),
        """
        const listing = document.querySelector("#throttling .listing");
        const input = listing.querySelector("input");
        input.value = "APPLICATION-4";
        input.dispatchEvent(new Event("input"));
        return {
            open: listing.querySelector("details").open,
            shown: [...listing.querySelectorAll("tbody tr")]
                .filter((row) => row.getClientRects().length)
                .map((row) => row.cells[0].textContent),
        };""",
    )
    assert answer["open"]
    assert len(answer["shown"]) == 3
    assert all("application-4" in one for one in answer["shown"])


def test_both_schemes_have_their_own_colours(browser, html):
    question = """
        const colour = (selector, property) =>
            getComputedStyle(document.querySelector(selector)).getPropertyValue(property);
        return [colour("body", "background-color"), colour("body", "color"),
            colour(".chart .fill-accent", "fill"), colour(".chart .fill-muted", "fill"),
            colour(".verdict .badge", "color"), colour(".limit", "fill")];"""
    dark, light = (
        browser.ask(html["demo"], question, f"--blink-settings=preferredColorScheme={scheme}")
        for scheme in (0, 1)
    )
    assert (light[0], dark[0]) == ("rgb(255, 255, 255)", "rgb(20, 23, 27)")
    assert all(one != other for one, other in zip(light, dark, strict=True))
    assert "rgb(0, 0, 0)" not in light + dark


def test_it_prints_on_a4(browser, html):
    page, pdf = browser.folder / "page.html", browser.folder / "page.pdf"
    page.write_text(html["demo"], encoding="utf-8")
    browser.run(f"--print-to-pdf={pdf}", "--no-pdf-header-footer", page.as_uri())
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf.read_bytes())
    assert {(round(float(width)), round(float(height))) for width, height in boxes} == {(595, 842)}
    assert 3 <= len(boxes) <= 12


def test_a_drawing_can_be_asked_by_keys_and_by_a_pointer(browser, html):
    answer = browser.ask(
        html["demo"],
        """
        const figure = [...document.querySelectorAll("#min-isr figure")][0];
        const slider = figure.querySelector("input"), seen = slider.getBoundingClientRect();
        const told = [];
        for (const key of ["PageUp", "PageUp", "PageUp", "PageUp", "PageUp", "ArrowLeft"]) {
            slider.dispatchEvent(new KeyboardEvent("keydown", {key, cancelable: true}));
            told.push(slider.getAttribute("aria-valuetext"));
        }
        const drawing = [...figure.querySelectorAll(".chart")]
            .find((one) => one.getClientRects().length);
        const lines = [...drawing.querySelectorAll("line.stroke-line[y2='5']")];
        const tick = lines[4].getBoundingClientRect();  // 06:04
        slider.dispatchEvent(new PointerEvent("pointermove", {clientX: tick.left + .5}));
        told.push(slider.getAttribute("aria-valuetext"));
        return {told, label: slider.getAttribute("aria-label"), covers: seen.height > 90,
            askable: document.querySelectorAll(".askable").length,
            drawn: document.querySelectorAll("figure[data-within]").length};""",
    )
    told = [one.replace("\u00a0", " ").replace("Sat, ", "Sat ") for one in answer["told"]]
    values = [one.partition(": ")[2] for one in told]
    assert values == [
        "0 partitions", "0 partitions", "2 partitions (2 to 3)", "not known", "0 partitions",
        "3 partitions (2 to 3)", "0 partitions",
    ]  # fmt: skip
    assert told[2].startswith("Sat 21 Nov")
    assert "06:01:48" in told[2]
    assert "06:04:0" in told[6]
    assert answer["label"].startswith("Instant of: Partitions under their minimum")
    assert answer["covers"]
    assert answer["askable"] == answer["drawn"] > 3
