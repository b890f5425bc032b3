"""What CONTRIBUTING.md says of additions, done in a copy of the tree (``make test-extending``)."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest

from tests.extending import Made, Tree, not_reached
from tests.extending_texts import ADDITIONS, Addition

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.reads

CONTRACT: Final = tuple(
    f"tests/unit/test_{name}.py"
    for name in (
        "architecture", "catalogue", "config", "details", "dump", "facts_contract",
        "metric_families", "openslo", "page_golden", "plain_english", "public",
        "reference_pages", "report_csv", "shown", "source_settings", "summary", "summary_texts",
    )
)  # fmt: skip
"""The project's tests of what additions declare; ``make test-extending`` runs all fast ones."""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return Tree(tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="module")
def made(tree: Tree) -> list[Made]:
    """All additions, made in the copy."""
    every = [tree.make(addition) for addition in ADDITIONS]
    tree.write_anew()
    return every


@contextmanager
def edited(tree: Tree, name: str, old: str, new: str) -> Iterator[None]:
    """A file of the copy with another text in it, for a while."""
    file = tree.folder / name
    text = file.read_text("utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), "utf-8")
    try:
        yield
    finally:
        file.write_text(text, "utf-8")


def test_additions_are_a_few_files(made: list[Made]) -> None:
    assert [one.addition.name for one in made if not one.is_small] == []


def test_further_file_is_too_many(tree: Tree) -> None:
    one = Addition("column", 1, files=(("one.txt", ""), ("docs/other.txt", "")))
    further = tree.make(one)
    for name in further.written:
        (tree.folder / name).unlink()
    assert further.written == {"one.txt", "docs/other.txt"}
    assert not further.is_small
    assert not Made(one, frozenset()).is_small


@pytest.mark.nightly
def test_additions_reach_agent_page_json_and_csv(tree: Tree, made: list[Made]) -> None:
    assert made
    assert not_reached(tree) == []


def test_the_projects_own_tests_accept_additions(tree: Tree, made: list[Made]) -> None:
    assert made
    assert tree.tests(*CONTRACT, "-m", "not slow") == []


def test_column_without_its_key_fails_at_import(tree: Tree) -> None:
    with edited(tree, "lakehouse/report/tables/clients.py", '"quota"', '"quotas"'):
        ran = tree.run("-c", "from lakehouse.report.tables import clients")
    assert "TypeError: Client does not have the key 'quotas'" in ran.stderr


def test_the_projects_own_tests_refuse_a_figure_without_meaning(
    tree: Tree, made: list[Made]
) -> None:
    (line,) = next(one.addition.lines for one in made if one.addition.name == "figure")
    with edited(tree, line.file, line.text, re.sub(r'"[^"]+",', '"",', line.text, count=1)):
        failed = tree.tests("tests/unit/test_facts_contract.py", "-k", "meaning")
    assert failed
    assert all("test_every_field_has_a_meaning" in one for one in failed)
