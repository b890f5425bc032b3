"""How long a budget burnt, against looking at every edge of a window."""

from __future__ import annotations

from hypothesis import given, strategies as st

from lakehouse.slo.burn_rate import LENGTHS_US, PAIRS, BadWindow, Pair, burnt_us, least_us

MINUTE = 60_000_000
WINDOW = 5 * MINUTE
HOUR = 60 * MINUTE
DAY = 24 * HOUR
FAST, MIDDLE, SLOW = PAIRS


def naive(
    bad: list[BadWindow], size: int, within: tuple[int, int], pair: Pair, target: float
) -> int:
    found = 0
    for at in range(within[0] + size, within[1] + 1, size):
        burns = []
        for name in (pair.long, pair.short):
            length = LENGTHS_US[name]
            own = sum(one.low_us for one in bad if at - length <= one.at and one.at + size <= at)
            burns.append(own >= pair.rate * (1 - target) * length)
        found += size * all(burns)
    return found


_BAD = st.dictionaries(
    st.integers(-24, 60), st.integers(1, 300).map(lambda seconds: seconds * 1_000_000), max_size=30
).map(lambda found: [BadWindow(at * WINDOW, low) for at, low in sorted(found.items())])


@given(_BAD, st.sampled_from((FAST, MIDDLE)), st.sampled_from((0.9, 0.99, 0.999)))
def test_it_is_what_a_look_at_every_edge_gives(bad: list[BadWindow], pair: Pair, target: float):
    within = (0, 48 * WINDOW)
    wanted = naive(bad, WINDOW, within, pair, target)
    assert burnt_us(bad, WINDOW, within, pair, target) == wanted
    if sum(one.low_us for one in bad) < least_us([pair], target):
        assert wanted == 0


def test_an_outage_of_an_hour_burns_fast_while_it_lasts():
    bad = [BadWindow(at * WINDOW, WINDOW) for at in range(12)]
    # 14.4 times 1 % of an hour are 8.64 minutes: two windows.
    assert burnt_us(bad, WINDOW, (0, DAY), FAST, 0.99) == 11 * WINDOW
    # 6 times 1 % of 6 hours are 21.6 minutes, and half an hour has 1.8 of them bad for long.
    assert burnt_us(bad, WINDOW, (0, DAY), MIDDLE, 0.99) == 13 * WINDOW


def test_slices_as_long_as_the_short_length_will_do():
    bad = [BadWindow(0, 6 * HOUR)]
    assert burnt_us(bad, 6 * HOUR, (0, DAY), SLOW, 0.99) == 6 * HOUR


def test_what_burns_least_is_known():
    assert least_us(PAIRS, 0.99) == FAST.rate * (1 - 0.99) * HOUR
