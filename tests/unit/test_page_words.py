from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given, strategies as st

from lakehouse.core import display
from tests.sample_facts import EVIL

UNITS = {"ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}


def plain(text: str) -> str:
    return text.replace("\u00a0", " ")


def microseconds(text: str) -> int:
    pairs = re.findall(r"([\d.]+)\s(ms|s|min|h|d)", plain(text))
    assert pairs, text
    return round(sum(float(number) * UNITS[unit] for number, unit in pairs))


@pytest.mark.parametrize(
    ("us", "said"),
    [
        (None, "not known"),
        (0, "0 s"),
        (1, "1 ms"),
        (350_000, "350 ms"),
        (2_000_000, "2 s"),
        (4_240_000, "4.2 s"),
        (59_400_000, "59 s"),
        (59_960_000, "1 min"),
        (2_472_000_000, "41 min 12 s"),
        (3_599_700_000, "1 h"),
        (11_100_000_000, "3 h 5 min"),
        (273_600_000_000, "3 d 4 h"),
        (-4_200_000, "-4.2 s"),
    ],
)
def test_length_is_in_its_two_largest_units(us, said):
    assert plain(display.length(us)) == said


@given(st.integers(min_value=0, max_value=10**13))
def test_rounded_bounds_still_hold_the_truth(us):
    low, high = display.length(us, "down"), display.length(us, "up")
    assert microseconds(low) <= us <= microseconds(high)
    assert microseconds(low) <= microseconds(display.length(us)) <= microseconds(high)


@given(st.integers(min_value=1, max_value=10**13))
def test_what_happened_is_never_shown_as_nothing(us):
    assert microseconds(display.length(us)) > 0


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (None, "not known"),
        (1, "100 %"),
        (0, "0 %"),
        (0.999, "99.9 %"),
        (0.9987, "99.87 %"),
        (0.99999, "99.999 %"),
        (0.999999, "99.9999 %"),
        (0.00002, "0.002 %"),
        (1 - 1.7e-12, "99.999999 %"),
        (1.7e-12, "0.000001 %"),
        (1 - 2e-16, "100 %"),
    ],
)
def test_a_share_has_as_many_digits_as_it_needs(share, said):
    assert plain(display.percent(share)) == said


@pytest.mark.edge(6)
@given(st.floats(min_value=0, max_value=1 - 1e-12))
def test_only_all_is_shown_as_all(share):
    assert not plain(display.percent(share)).startswith("100")
    assert not plain(display.share(share)).startswith("100")
    assert float(plain(display.percent(share, "down")).split()[0]) / 100 <= share + 1e-12
    assert float(plain(display.percent(share, "up")).split()[0]) / 100 >= share - 1e-12


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (None, "By", "not known"),
        (0, "By", "0 B"),
        (1536, "By/s", "1.5 KiB/s"),
        (47_185_920, "By", "45.0 MiB"),
        (1, "partitions", "1 partition"),
        (3, "partitions", "3 partitions"),
        (12_400, "{offset}", "12,400 offsets"),
        (2, "{entry}", "2 entries"),
        (1, "{miss}", "1 miss"),
        (0.0, "{miss}", "0 misses"),
        (1, "ms", "1 ms"),
        (0.0321, "1", "0.0321"),
        (6.25, "%", "6.2 %"),
    ],
)
def test_a_quantity_is_said_with_its_unit(value, unit, said):
    assert plain(display.quantity(value, unit)) == said


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("cluster-a ", "cluster-a\\u0020"),
        ("\u00a0a b\u3000", "\\u00a0a b\\u3000"),
        ("  ", "\\u0020\\u0020"),
    ],
)
def test_outer_spaces_of_a_name_are_visible(name, shown):
    assert display.line(name) == shown


@given(st.text() | st.sampled_from(EVIL))
def test_nothing_in_a_name_is_invisible(text):
    shown = display.visible(text)
    shown.encode()
    assert {unicodedata.category(one) for one in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"} == set()


@given(st.text(alphabet="abc", min_size=1), st.integers(min_value=5, max_value=60))
def test_a_long_name_keeps_its_beginning_and_its_end(text, limit):
    short = display.shorten(text, limit)
    assert len(short) <= limit
    assert short == text or ("…" in short and text[0] == short[0] and text[-1] == short[-1])


def test_an_instant_elsewhere_is_told_in_utc():
    assert plain(display.day_and_time("2026-11-21T08:00:00+02:00")) == "Sat 21 Nov 06:00:00"
