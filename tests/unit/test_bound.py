"""Values in SQL: none of them can end its literal."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from hypothesis import given, strategies as st

from lakehouse.notebooks.notebook import bind, literal

HEX = re.compile(r"CAST\(X'([0-9a-f]*)' AS STRING\)")


@given(st.text())
def test_a_literal_says_the_text_and_has_no_other_quote(text: str) -> None:
    said = literal(text)
    if found := HEX.fullmatch(said):
        assert bytes.fromhex(found[1]).decode("utf-8", "surrogatepass") == text
    else:
        assert said == f"'{text}'"
        assert not set(text) & set("'\"\\\n\r\0")


@given(st.text())
def test_a_statement_keeps_its_shape_whatever_the_value(text: str) -> None:
    said = bind("a = :x AND b = 1", {"x": text})
    assert said == f"a = {literal(text)} AND b = 1"
    assert bind(said, {"x": "other", "y": "other"}) == said  # no marker came with the value


@pytest.mark.parametrize(
    "kept",
    [
        "SELECT ':x'",
        'SELECT ":x"',
        "SELECT `:x`",
        "SELECT 'it''s :x'",
        r"SELECT 'a\' :x'",
        "SELECT 1 -- :x",
        "SELECT a::x",
        "SELECT :other",
        "SELECT 'user:' || y",
    ],
)
def test_what_is_no_marker_stays(kept: str) -> None:
    assert bind(kept, {"x": "1"}) == kept


def test_an_instant_is_told_to_the_microsecond() -> None:
    at = dt.datetime(2026, 11, 16, 10, 0, 0, 1, tzinfo=dt.UTC)
    assert literal(at) == "timestamp_micros(1794823200000001)"
    berlin = at.astimezone(dt.timezone(dt.timedelta(hours=1)))
    assert literal(berlin) == literal(at)
