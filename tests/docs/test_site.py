"""The documentation site: it builds without a warning and sends no request to another host."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytestmark = pytest.mark.reads

ROOT = Path(__file__).parents[2]
LOADS = {
    "script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src",
    "audio": "src", "embed": "src", "object": "data", "link": "href", "form": "action",
}  # fmt: skip
"""Attributes whose URL a browser requests without a click."""
ELSEWHERE = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
FROM_CSS = re.compile(r"(?:url\(|@import)\s*[\"']?\s*((?:https?:)?//[^\"')\s]+)", re.IGNORECASE)


class _Loaded(HTMLParser):
    """Collector of a page's requests to other hosts."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "link" and values.get("rel") in ("canonical", "next", "prev", "edit"):
            return
        for name in (LOADS.get(tag), "srcset"):
            value = values.get(name) if name else None
            if value and ELSEWHERE.match(value.strip()):
                self.found.append(f"{tag} {value}")
        if "mermaid" in (values.get("class") or ""):
            self.found.append(f"{tag} class=mermaid: the theme loads a script for it")


def loaded(html: str) -> list[str]:
    parser = _Loaded()
    parser.feed(html)
    return parser.found


def test_site_has_every_page(site: Path) -> None:
    written = {path.stem for path in (ROOT / "docs").glob("*.md")}
    generated = {
        "architecture", "changelog", "configuration", "metrics", "tables", "commands",
        "report-json", "report-csv",
    }  # fmt: skip
    assert {path.stem for path in site.rglob("*.html")} == written | generated | {"404"}
    assert "under_min_isr" in (site / "reference" / "metrics.html").read_text("utf-8")
    assert not list(site.rglob("*.py"))


def test_site_requests_no_other_host(site: Path) -> None:
    pages = {path: loaded(path.read_text("utf-8")) for path in site.rglob("*.html")}
    assert len(pages) > 30
    assert {path.name: found for path, found in pages.items() if found} == {}
    styles = {path.name: FROM_CSS.findall(path.read_text("utf-8")) for path in site.rglob("*.css")}
    assert styles
    assert {name: found for name, found in styles.items() if found} == {}


@pytest.mark.parametrize(
    "html",
    [
        '<link rel="stylesheet" href="https://fonts.example/css">',
        '<script src="//cdn.example/x.js"></script>',
        '<img src="a.png" srcset="https://x.example/a.png 2x">',
        '<pre class="mermaid">graph</pre>',
    ],
)
def test_request_to_other_host_is_detected(html: str) -> None:
    assert loaded(html)


def test_readme_links_exist() -> None:
    found = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", (ROOT / "README.md").read_text("utf-8"))
    files = [target for target in found if not ELSEWHERE.match(target)]
    assert len(files) > 20
    assert [target for target in files if not (ROOT / target).exists()] == []


def test_make_targets_of_pages_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"(?m)^([a-z0-9-]+):", makefile))
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    named = {
        target for page in pages
        for target in re.findall(r"`make ([a-z0-9-]+)", page.read_text("utf-8"))
    }  # fmt: skip
    assert len(named) > 5
    assert named - targets == set()


def test_pictures_are_small_and_used() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    shown = "".join(page.read_text("utf-8") for page in pages)
    pictures = list((ROOT / "docs" / "pictures").iterdir())
    assert len(pictures) > 8
    assert [path.name for path in pictures if f"pictures/{path.name}" not in shown] == []
    assert [path.name for path in pictures if path.stat().st_size > 150_000] == []


def test_terminal_report_matches_picture() -> None:
    page = (ROOT / "docs" / "report.md").read_text("utf-8")
    (block,) = re.findall(r"(?ms)^```text\n(.*?)^```$", page)
    assert (ROOT / "docs" / "pictures" / "report.txt").read_text("utf-8").startswith(block)
