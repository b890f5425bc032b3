"""The page of fixed facts, as a golden file whose differences can be read.

The facts are those of a fixed lake, tests/golden/report.json; that a rollup really makes them is
tested in tests/integration/test_report_golden.py, which writes them anew, too.
``python -m tests.unit.test_page_golden`` writes the page anew; look at what changed.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from lakehouse.report.page.page import render

GOLDEN = Path(__file__).parents[1] / "golden"
ANEW = "if that is meant: python -m tests.unit.test_page_golden, and look at git diff"
_OURS = re.compile(r"(<(style|script)>).*?(</\2>)", re.DOTALL)
_POLICY = re.compile(r"&#39;sha256-[^&]+&#39;")
_ENDS = re.compile(r"(?=<(?:td|th|li|dt|dd|path|text|rect|g|symbol)[ >])")


def page() -> str:
    """The page without its style and script, which are files, and each element on its line."""
    html = render(json.loads((GOLDEN / "report.json").read_text(encoding="utf-8")))
    html = _POLICY.sub("'sha256-of-a-file'", _OURS.sub(r"\1\3", html))
    return re.sub(r"\n\s*\n+", "\n", _ENDS.sub("\n", html)) + "\n"


def test_the_page_is_the_golden_one() -> None:
    assert page() == (GOLDEN / "report.html").read_text(encoding="utf-8"), ANEW


def test_the_golden_page_has_something_of_everything() -> None:
    facts = json.loads((GOLDEN / "report.json").read_text(encoding="utf-8"))
    for key in ("verdicts", "objectives", "maintenance", "events", "racks", "timelines"):
        assert facts[key], key
    anchors = set(re.findall(r'<(?:section|div) id="([\w-]+)"', page()))
    assert {"events", "objectives", "week", "details", "d-coverage", "d-incidents"} <= anchors


def test_nothing_of_this_machine_is_in_the_golden_files() -> None:
    for name in ("report.json", "report.html"):
        text = (GOLDEN / name).read_text(encoding="utf-8")
        assert not re.search(r"/(tmp|home|root|work)/|file://", text), name


if __name__ == "__main__":
    (GOLDEN / "report.html").write_text(page(), encoding="utf-8")
