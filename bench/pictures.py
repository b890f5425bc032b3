"""The pictures of README.md and docs: the report of the sample's week, as a browser shows it.

``make pictures`` writes the sample with a fixed end and seed, makes the report of its last week,
and takes pictures of the page. The content is the same on each run; the pixels also depend on the
Chromium and the fonts of the machine.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from lakehouse.report.page import page as page_file

FOLDER: Final = Path(__file__).parents[1] / "docs" / "pictures"
UNTIL: Final = "2026-11-23"
"""End of the sample, a Monday: the report is of the week before."""
WEEK: Final = "2026-W47"
SECONDS: Final = 900
"""Timeout of a command."""

_JMXLAKE: Final = str(Path(sys.executable).with_name("jmxlake"))
_SHEET_DPI: Final = 90
_COLOURS: Final = 128
"""A palette of so many colours makes a picture a third as large; the page has few colours."""
_FLAGS: Final = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND",
    "--log-level=3",
)  # fmt: skip
_BLOCK: Final = re.compile(r"(?ms)^(```text\n).*?^(```)$")
_HEIGHT: Final = re.compile(r"<title>(\d+)</title>")
_MEASURE: Final = "<script>document.title = document.body.offsetHeight</script>"


class Picture(NamedTuple):
    """A picture of the page, or of a part of it.

    Attributes:
        name: Name of the file, without its suffix.
        width: Width of the browser window, pixels.
        height: Height of the window, pixels; 0: that of the content.
        css: Style that hides the rest of the page.
        is_dark: The reader prefers dark pages.
    """

    name: str
    width: int
    height: int = 0
    css: str = ""
    is_dark: bool = False


def _only(section: str, more: str = "") -> str:
    """Return the style that leaves one section of the page."""
    return (
        f"header,footer,section:not(#{section}){{display:none!important}}"
        f"section{{margin-top:0!important}}body{{padding:1rem!important}}{more}"
    )


PICTURES: Final = (
    Picture("report", 1440, 900),
    Picture("report-dark", 1440, 900, is_dark=True),
    Picture("report-event", 520, css=_only(
        "events", ".head,figure,.card:not(#event-4){display:none!important}"
    )),
    Picture("report-objectives", 1280, css=_only("objectives")),
    Picture("report-week", 1280, css=_only("week")),
    Picture("report-phone", 390, 1000),
)  # fmt: skip


def make(folder: Path) -> None:
    """Make all pictures, and the text of the terminal.

    Raises:
        subprocess.SubprocessError: A program failed or did not end in time.
    """
    with tempfile.TemporaryDirectory(prefix="jmxlake-pictures-", ignore_cleanup_errors=True) as at:
        lake, page, sheets = (str(Path(at, name)) for name in ("lake", "page.html", "page.pdf"))
        _run(_JMXLAKE, "sample", lake, "--until", UNTIL)
        shown = _run(
            _JMXLAKE, "weekly", "lake", "--engine", "local", "--week", WEEK,
            "--owners", f"{lake}-owners.yaml", "--maintenance", f"{lake}-maintenance.yaml",
            "--html", page, "--pdf", sheets, cwd=at,
        )  # fmt: skip
        _keep_text(shown, folder / "report.txt")
        html = Path(page).read_text("utf-8")
        for picture in PICTURES:
            _keep(_shot(html, picture, Path(at)), folder / f"{picture.name}.png")
        _run(
            "pdftoppm", "-png", "-singlefile", "-f", "1", "-r", str(_SHEET_DPI), sheets,
            f"{at}/sheet",
        )  # fmt: skip
        _keep(Path(at, "sheet.png"), folder / "report-paper.png")


def _shot(html: str, picture: Picture, folder: Path) -> Path:
    """Return the file of a picture as the browser wrote it."""
    page, target = folder / "shown.html", folder / "shot.png"
    browser = (
        page_file.browser(), *_FLAGS, f"--user-data-dir={folder}/profile",
        f"--blink-settings=preferredColorScheme={0 if picture.is_dark else 1}",
    )  # fmt: skip
    if picture.css:  # the page's policy admits no other style or script
        html = re.sub("<meta http-equiv[^>]*>", "", html)
        html = html.replace("</head>", f"<style>{picture.css}</style></head>")
    page.write_text(html, encoding="utf-8")
    height = picture.height
    if not height:
        page.write_text(html.replace("</body>", f"{_MEASURE}</body>"), encoding="utf-8")
        dumped = _run(*browser, f"--window-size={picture.width},900", "--dump-dom", page.as_uri())
        height = int(_HEIGHT.findall(dumped)[0])
    _run(
        *browser, f"--window-size={picture.width},{height}", f"--screenshot={target}",
        page.as_uri(),
    )  # fmt: skip
    return target


def _keep(picture: Path, target: Path) -> None:
    """Write a picture with a palette."""
    _run(
        "pngquant", "--force", "--strip", "--speed", "1", "--output", str(target), str(_COLOURS),
        str(picture),
    )  # fmt: skip
    print(f"{target.name}: {target.stat().st_size / 1000:.0f} kB")


def _keep_text(shown: str, target: Path) -> None:
    """Write the text of the terminal, and its lines before the events also into the page."""
    target.write_text(shown, encoding="utf-8")
    page = target.parents[1] / "report.md"
    first = shown[: shown.index("\nEvents")]
    text = page.read_text("utf-8")
    page.write_text(_BLOCK.sub(lambda block: block[1] + first + block[2], text), encoding="utf-8")


def _run(*command: str, cwd: str | None = None) -> str:
    """Return what a program wrote to standard output."""
    return subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, timeout=SECONDS, cwd=cwd
    ).stdout


if __name__ == "__main__":
    make(FOLDER)
