"""From a fixed lake to the golden facts: rollup, objectives, sections, all of it.

``pytest tests/integration/test_report_golden.py --golden`` writes tests/golden/report.json anew;
then ``python -m tests.unit.test_page_golden`` writes the page. Look at what changed.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.story_facts import facts_of
from tests.story_lake import Story
from tests.unit.test_page_golden import GOLDEN

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.reads

FILE = GOLDEN / "report.json"
ANEW = (
    "if that is meant: pytest tests/integration/test_report_golden.py --golden, then "
    "python -m tests.unit.test_page_golden, and look at git diff"
)
_LEAVES = re.compile(r"\[\s+((?:[^\[\]{}\"]|\"(?:[^\"\\]|\\.)*\")*?)\s+\]")


def text(facts: dict[str, Any]) -> str:
    """JSON with a line for each key, and one for each point of a timeline."""
    indented = json.dumps(facts, indent=1, ensure_ascii=False)
    return _LEAVES.sub(lambda found: f"[{re.sub(chr(10) + ' *', ' ', found[1])}]", indented) + "\n"


def test_the_facts_are_the_golden_ones(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    told = text(facts_of(tmp_path, Story(hours=4)))
    if pytestconfig.getoption("--golden"):
        FILE.write_text(told, encoding="utf-8")
    assert told == FILE.read_text(encoding="utf-8"), ANEW
