"""The pictures of docs/report.md: a real page of an invented week, as a browser shows it.

``python -m bench.pictures`` makes the lake of tests/story_lake.py, rolls it up, writes the page and
photographs parts of it. It needs a Chromium (``make browser``).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench import palette
from lakehouse.report import pdf
from lakehouse.report.page.page import render
from tests.story_facts import facts_of
from tests.story_lake import Story

FOLDER: Final = Path(__file__).parents[1] / "docs" / "pictures"
SECONDS: Final = 120
_WEEK_HOURS: Final = 7 * 24
_MONDAY: Final = -10 * 3600.0
"""From 10:00, where the story's clock begins, back to midnight, seconds."""

_FLAGS: Final = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND",
)  # fmt: skip
_SCHEMES: Final = {"dark": 0, "light": 1}


@dataclass(frozen=True, slots=True)
class Shot:
    """A picture of a part of the page.

    Attributes:
        name: Of its file.
        width: Of the page, pixels.
        height: Of the picture, pixels.
        section: The section that stands alone in it; empty: the page from its top.
        scheme: ``dark`` or ``light``.
    """

    name: str
    width: int
    height: int
    section: str = ""
    scheme: str = "light"


SHOTS: Final = (
    Shot("report-top", 1440, 900),
    Shot("report-objectives", 1280, 700, "objectives"),
    Shot("report-week", 1280, 760, "week"),
    Shot("report-phone", 500, 1000, scheme="dark"),
)


def alone(html: str, section: str) -> str:
    """The page with nothing to be seen but one section of it."""
    rule = f"header,nav,footer,section:not(#{section}){{display:none!important}}"
    # The policy would keep the rule out: for the picture it goes.
    head, mark, rest = html.partition("<style>")
    start, end = head.index("<meta http-equiv"), head.index('<meta name="viewport"')
    return f"{head[:start]}{head[end:]}{mark}{rule}section{{margin-top:0!important}}{rest}"


def shoot(browser: str, html: str, shot: Shot) -> bytes:
    """The picture, with a palette.

    Raises:
        subprocess.SubprocessError: The browser failed, or took too long.
    """
    with tempfile.TemporaryDirectory(prefix="jmxlake-shot-", ignore_cleanup_errors=True) as folder:
        page, target = Path(folder, "page.html"), Path(folder, "shot.png")
        page.write_text(alone(html, shot.section) if shot.section else html, encoding="utf-8")
        subprocess.run(
            [browser, *_FLAGS, f"--user-data-dir={folder}/profile",
             f"--blink-settings=preferredColorScheme={_SCHEMES[shot.scheme]}",
             f"--window-size={shot.width},{shot.height}", f"--screenshot={target}", page.as_uri()],
            check=True, capture_output=True, timeout=SECONDS,
        )  # fmt: skip
        return palette.packed(palette.pixels(target.read_bytes()))


def main() -> None:
    """Make the lake, or take the facts of an earlier report, and photograph its page."""
    parser = argparse.ArgumentParser(prog="python -m bench.pictures", description=__doc__)
    parser.add_argument("--facts", type=Path, help="a report.json instead of the invented week")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the pictures")
    asked = parser.parse_args()
    html = render(_week() if asked.facts is None else json.loads(asked.facts.read_bytes()))
    asked.out.mkdir(parents=True, exist_ok=True)
    browser = pdf.browser()
    for shot in SHOTS:
        png = shoot(browser, html, shot)
        (asked.out / f"{shot.name}.png").write_bytes(png)
        print(f"{shot.name}.png: {len(png) / 1000:.0f} kB")


def _week() -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="jmxlake-week-") as folder:
        return facts_of(Path(folder), Story(_WEEK_HOURS, _MONDAY))


if __name__ == "__main__":
    main()
