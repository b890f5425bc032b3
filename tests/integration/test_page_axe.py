"""The page under axe, the rules of accessibility that screen readers' makers agree on."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse.report.page import page
from lakehouse.report.page.page import clusters, clusters_page
from tests import axe, sample_facts
from tests.integration.test_page_browser import PAGES, POLICY, Browser, read_title

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.browser, pytest.mark.reads]

# All rules of WCAG 2.0 to 2.2 up to AA, and what is good practice beside.
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
SCHEMES = {"dark": 0, "light": 1}
LIGHT = ("running", "blind", "long-names", "hostile", "summary")
"""Pages that make test opens in one scheme: the others have all colours."""
PAGES_HERE = {
    **PAGES,
    "summary": lambda: clusters_page(
        clusters([sample_facts.demo(), sample_facts.quiet_week() | {"cluster": "b"}]),
        {"b": "b.html"},
    ),
}
_ASK = """
    axe.run(document, {runOnly: RULES, resultTypes: ["violations"]}).then((found) => {
        const told = (node) => node.html.slice(0, 160) + " | " + node.failureSummary.slice(0, 200);
        const broken = found.violations.map(
            (one) => [one.id, one.impact, one.nodes.slice(0, 3).map(told)]);
        document.title = JSON.stringify({ran: found.passes.length, broken});
    });"""


@pytest.fixture(scope="module")
def script() -> str:
    return axe.script()


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    try:
        return Browser(page.browser(), tmp_path)
    except page.PrintError as error:
        pytest.skip(str(error))


def broken(browser: Browser, script: str, html: str, *flags: str) -> list[Any]:
    """What axe finds: rule, how bad, and the first elements that break it."""
    body, replaced = POLICY.subn("", html)
    assert replaced == 1
    ask = _ASK.replace("RULES", json.dumps(list(RULES)))
    # Folds are open: what is hidden is not looked at.
    opened = 'for (const one of document.querySelectorAll("details")) one.open = true;'
    last = body.rindex("</body>")
    made = f"{body[:last]}<script>{script}</script><script>{opened}{ask}</script>{body[last:]}"
    seen = browser.open(made, "--virtual-time-budget=20000", *flags)
    told = json.loads(read_title(seen.dom))
    assert told["ran"] > 20, "axe looked at something"
    return told["broken"]


@pytest.mark.parametrize(
    ("page", "scheme"),
    [
        *itertools.product(("bad", "uncertain"), SCHEMES),
        *((page, "light") for page in LIGHT),
        *(pytest.param(page, "dark", marks=pytest.mark.nightly) for page in LIGHT),
    ],
)
def test_page_breaks_no_axe_rule(browser: Browser, script: str, page: str, scheme: str):
    flag = f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}"
    assert broken(browser, script, PAGES_HERE[page](), flag) == []


def test_phone_page_breaks_no_axe_rule(browser: Browser, script: str):
    found = broken(browser, script, PAGES["bad"](), "--window-size=500,900")
    assert found == []


def test_axe_finds_a_wrong_page(browser: Browser, script: str):
    """That it finds nothing above says something only if it finds this."""
    wrong = PAGES["bad"]().replace(
        "<main>", '<main><p style="color:#ddd;background:#fff">pale</p><img src="data:,">'
    )
    rules = {one[0] for one in broken(browser, script, wrong)}
    assert {"color-contrast", "image-alt"} <= rules
