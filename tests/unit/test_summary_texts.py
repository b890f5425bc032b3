"""Templates of the short report: parts, numbers with nouns, and that each text has a use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from lakehouse.report import figures
from lakehouse.report.figures import Name
from lakehouse.report.summary import texts
from lakehouse.report.summary.texts import Strong, Text

FOLDER: Final = Path(texts.__file__).parent
FIELD: Final = re.compile(r"\{\w+(?:!b)?(?::[a-z -]+(?:/[a-z -]+)?)?\}")


def leaves(content: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


TEXTS: Final = dict(leaves(figures.declared("summary/words.yaml")))


@pytest.fixture
def template(monkeypatch: pytest.MonkeyPatch) -> Any:
    def fill(text: str, **values: Any) -> Text:
        monkeypatch.setattr(texts, "words", lambda _: text)
        return texts.text("x", **values)

    return fill


@pytest.mark.parametrize(
    ("text", "values", "filled"),
    [
        ("{n:topic}", {"n": 1}, "1 topic"),
        ("{n:topic}", {"n": 12_000}, "12,000 topics"),
        ("{n:was/were} bad", {"n": 1}, "was bad"),
        ("{n:was/were} bad", {"n": 0}, "were bad"),
        ("a[ ({b})]", {"b": ""}, "a"),
        ("a[ ({b})]", {"b": 0}, "a (0)"),
        ("a[ {b} {c}]", {"b": "x", "c": None}, "a"),
        ("a[ {b}][, {c}].", {"b": "x", "c": "y"}, "a x, y."),
    ],
)
def test_template_is_filled(template: Any, text: str, values: Any, filled: str) -> None:
    assert texts.plain(template(text, **values)).replace("\u00a0", " ") == filled


def test_names_and_figures_keep_their_marks(template: Any) -> None:
    name = Name("orders")
    assert template("{a} lost {b!b}.", a=name, b="20 min") == (
        name, " lost ", Strong("20 min"), "."
    )  # fmt: skip


def test_name_that_stands_out_stays_a_name(template: Any) -> None:
    name = Name("orders")
    assert template("{a!b}", a=(name, " lost")) == (name, Strong(" lost"))


def test_name_with_braces_is_no_template(template: Any) -> None:
    assert texts.plain(template("{a} [{a}]", a=Name("{b} [c]"))) == "{b} [c] {b} [c]"


@pytest.mark.parametrize(
    ("items", "written"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a and b"),
        (["a", "b", "c"], "a, b and c"),
        (["a", "b", "c", "d", "e"], "a, b, c and 2 more"),
    ],
)
def test_list_in_words(items: list[str], written: str) -> None:
    assert texts.plain(texts.listed(items)) == written


@pytest.mark.parametrize("path", TEXTS)
def test_every_text_is_well_formed(path: str) -> None:
    text = TEXTS[path]
    assert isinstance(text, str)
    assert text
    assert text == text.strip() or path == "events.not_known"
    rest = FIELD.sub("", text)
    assert not re.search(r"[{}]|\[[^\]]*\[|\][^\[]*\]", rest)
    assert "  " not in re.sub(r"[\[\]]", "", text)


def test_every_text_has_a_use() -> None:
    code = "".join(path.read_text("utf-8") for path in FOLDER.parent.rglob("*.py"))
    groups = set(re.findall(r"f\"([a-z_]+)\.\{", code))
    unused = {
        path for path in TEXTS if path.partition(".")[0] not in groups and f'"{path}"' not in code
    }
    assert unused == set()
