"""What a real Chromium measures of a page: its height, and what axe finds."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any, Final

from lakehouse.report.page import page
from tests import axe
from tests.integration.test_page_axe import _ASK, RULES
from tests.integration.test_page_browser import POLICY, Browser, read_title

if TYPE_CHECKING:
    from pathlib import Path

WIDE: Final = (1440, 900)
NARROW: Final = (390, 844)
_SCHEMES: Final = {"dark": 0, "light": 1}
_TOP: Final = """
    return document.querySelector("#details").getBoundingClientRect().top + scrollY;"""
_OPEN: Final = 'for (const one of document.querySelectorAll("details")) one.open = true;'


def browser(folder: Path) -> Browser:
    """Return the Chromium of this machine.

    Raises:
        pdf.PrintError: There is none.
    """
    return Browser(page.browser(), folder)


def screens_to_details(seen_by: Browser, html: str, size: tuple[int, int]) -> float:
    """Return how many screens are above the details."""
    top = seen_by.ask(html, _TOP, width=size[0])
    return round(float(top) / size[1], 2)


def violations(seen_by: Browser, html: str) -> list[str]:
    """Return what axe finds on a page: wide and narrow, light and dark, its folds open."""
    found = []
    for scheme, flag in _SCHEMES.items():
        for width, _ in (WIDE, NARROW):
            broken = _broken(seen_by, html, width, f"--blink-settings=preferredColorScheme={flag}")
            found += [f"{scheme}, {width} px: {one}" for one in broken]
    return found


def _broken(seen_by: Browser, html: str, width: int, flag: str) -> list[Any]:
    """Return the broken rules; the page is in a frame, as no window is below 500 pixels."""
    body, replaced = POLICY.subn("", html)
    assert replaced == 1
    ask = _ASK.replace("RULES", json.dumps(list(RULES)))
    ask = ask.replace("document.title =", "parent.document.title =")
    last = body.rindex("</body>")
    scripts = f"<script>{axe.script()}</script><script>{_OPEN}{ask}</script>"
    framed = escape(f"{body[:last]}{scripts}{body[last:]}")
    page = (
        "<!doctype html><title></title>"
        f'<iframe width="{width}" height="900" srcdoc="{framed}"></iframe>'
    )
    seen = seen_by.open(page, "--virtual-time-budget=30000", flag)
    told = json.loads(read_title(seen.dom))
    assert told["ran"] > 20, "axe looked at something"
    return list(told["broken"])
