"""The packages and the pages say what they mean in the field's words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
TEXTS: Final = {
    "collector": tuple(f"collector/**/*.{kind}" for kind in ("py", "yaml", "md")),
    "lakehouse": tuple(f"lakehouse/**/*.{kind}" for kind in ("py", "sql", "yaml", "j2", "md")),
    "pages": ("docs/*.md", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"),
}

_OWN: Final = re.compile(
    r"(?<![A-Za-z])(told|tells|mend(?:ed|s)?|vouch[a-z]*|bequest|bequeath[a-z]*|begun|whoever|nobody"
    r"|somebody)(?![A-Za-z])",
    re.IGNORECASE,
)
_ALLOWED: Final = re.compile(
    r'name="(?:told|bequest|begun)"'  # fields of spools that are on disk
    r"|told_by|told_until"  # keys of explain's and doctor's JSON
    r"|were begun|log\(\"begun\"|`begun`"
)
"""Names that users and files have already, and plain participles."""


@pytest.mark.parametrize("part", TEXTS)
def test_no_text_has_the_words_that_only_its_authors_used(part: str) -> None:
    paths = [path for pattern in TEXTS[part] for path in ROOT.glob(pattern)]
    assert len(paths) > 20
    found = {
        str(path.relative_to(ROOT)): words
        for path in paths
        if (words := _OWN.findall(_ALLOWED.sub("", path.read_text("utf-8"))))
    }
    assert found == {}


def test_the_words_are_found_where_they_are() -> None:
    assert _OWN.findall("As told by whoever vouches; `told_us` is mended.") == [
        "told", "whoever", "vouches", "told", "mended",
    ]  # fmt: skip
