"""The pages that lead through the tree name only what is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = sorted(
    path.relative_to(ROOT)
    for top in ("collector", "lakehouse")
    for path in (ROOT / top).rglob("README.md")
)
_NAME: Final = re.compile(r"`([a-z][\w/*-]*(?:\.(?:py|yaml|csv)|/))`")


@pytest.mark.parametrize("page", [Path("ARCHITECTURE.md"), *PAGES], ids=str)
def test_every_file_and_folder_that_a_page_names_is_there(page: Path) -> None:
    below = [page.parent] if page in PAGES else [Path("collector"), Path("lakehouse")]
    names = set(_NAME.findall((ROOT / page).read_text("utf-8")))
    missing = {
        name
        for name in names
        if not any(ROOT.glob(name)) and not any(any((ROOT / top).rglob(name)) for top in below)
    }
    assert missing == set()


def test_each_folder_that_a_value_passes_has_its_page() -> None:
    assert len(PAGES) >= 12


def test_tables_are_opened_in_one_place() -> None:
    opens = re.compile(r"\bDeltaTable\(|\bis_deltatable\(|\bto_pyarrow_\w+\(")
    found = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "lakehouse").rglob("*.py")
        if opens.search(path.read_text("utf-8"))
    ]
    assert found == ["lakehouse/core/delta_rs.py"]
