"""The table of the five KIPs: its tests exist, and docs/seeds.md is its output."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.seeds import items

ROOT = Path(__file__).parents[2]
NODES = sorted({node for one in items.ITEMS.values() for node in one.tests})


@pytest.mark.parametrize("node", NODES)
def test_item_has_an_existing_test(node: str) -> None:
    file, name = node.split("::")
    assert f"def {name}(" in (ROOT / file).read_text()


def test_every_item_has_a_test_or_is_part_of_kafka() -> None:
    assert [
        name for name, one in items.ITEMS.items() if not one.tests and one.state == "full"
    ] == []


def test_page_is_the_output_of_the_table() -> None:
    assert items.PAGE.read_text() == "\n".join(items.page()) + "\n"
