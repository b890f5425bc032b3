"""The checker of texts finds each phrase in each kind of file."""

from __future__ import annotations

import pytest

from tests import plain_english
from tests.plain_english import Phrase, Text

_PHRASES = plain_english.phrases()


@pytest.mark.parametrize("phrase", _PHRASES, ids=lambda phrase: phrase.name)
def test_phrase_is_found_in_its_example(phrase: Phrase) -> None:
    kind = min(phrase.kinds, default="text")
    hits = plain_english.found("x.md", iter([Text(1, kind, phrase.example)]), _PHRASES)
    assert phrase.name in {one.phrase.name for one in hits}


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        (
            "x.md",
            "# One heading\n\nA text of\ntwo lines and `code`.\n\n```sh\nnot this\n```\n\n"
            "| a head | b |\n|---|---|\n| a cell | c |\n",
            [
                (1, "heading", "One heading"), (3, "text", "A text of two lines and x."),
                (10, "cell", "a head"), (12, "cell", "a cell"),
            ],
        ),
        (
            "x.py",
            '"""Of a module."""\n\nA = 1\n"""Of an attribute."""\n\n\ndef f(x: int) -> None:\n'
            '    """Of a function."""\n    # Two lines\n    # of a comment.\n    if x:\n'
            '        raise ValueError(f"a bad {x} here")\n'
            '    g(help="Help of it", y="a long text")\n',
            [
                (1, "docstring", "Of a module."), (4, "docstring", "Of an attribute."),
                (8, "function", "Of a function."), (9, "comment", "Two lines of a comment."),
                (12, "error", "a bad X here"), (13, "help", "Help of it"),
                (13, "string", "a long text"),
            ],
        ),
        (
            "x.yaml",
            "a: >-\n  a folded\n  value\nb: word\n# a long comment\n",
            [(1, "string", "a folded value"), (5, "comment", "a long comment")],
        ),
        ("x.sql", "SELECT 1 -- why it is one\n", [(1, "comment", "why it is one")]),
        ("x.j2", "<p>some words here</p>{{ x }}", [(1, "string", "some words here")]),
        ("Makefile", "test: ## Run all tests\n", [(1, "help", "Run all tests")]),
    ],
)  # fmt: skip
def test_prose_of_each_kind_of_file_is_found(
    name: str, content: str, wanted: list[tuple[int, str, str]]
) -> None:
    found = [
        (line, kind, " ".join(text.split()))
        for line, kind, text in plain_english.texts(name, content)
    ]
    assert sorted(found) == wanted


def test_code_is_not_prose() -> None:
    text = Text(1, "text", "Use `what it says` or ``nobody knows``.")
    assert list(plain_english.found("x.md", iter([text]), _PHRASES)) == []


def test_more_hits_than_recorded_are_reported() -> None:
    before = {"a.md": 2, "b.md": 1, "gone.md": 3}
    lines = plain_english.worse(before, {"a.md": 2, "b.md": 2, "c.md": 1})
    assert [line.partition(":")[0] for line in lines] == ["b.md", "c.md"]
