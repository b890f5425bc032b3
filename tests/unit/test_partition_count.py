"""What is expected of a topic's partitions, summed over them."""

from __future__ import annotations

from hypothesis import given, strategies as st

from lakehouse.slo.combined_statements import expected_us

DAY = 86_400


def test_a_topic_that_grew_had_fewer_before():
    assert expected_us(7 * DAY, {3: 4 * DAY, 12: 3 * DAY}, 12, 12) == (12 + 36) * DAY


def test_of_a_topic_made_again_unseen_time_may_have_been_of_the_many():
    """Twelve for four days of which two are seen, then three."""
    seen = {12: 2 * DAY, 3: 3 * DAY}
    unknown = expected_us(7 * DAY, seen, 12, 3) - sum(count * us for count, us in seen.items())
    assert unknown == 2 * 12 * DAY


def test_where_a_topic_was_not_wholly_seen_there_was_one_more_at_least():
    assert expected_us(7 * DAY, {3: 3 * DAY}, 6, 3) == 9 * DAY + 4 * 7 * DAY
    assert expected_us(7 * DAY, {}, 6, None) == 7 * 7 * DAY


def test_as_many_as_told_last_where_nobody_counted():
    assert expected_us(7 * DAY, {}, None, 3) == 3 * 7 * DAY
    assert expected_us(7 * DAY, {0: 7 * DAY}, None, 3) == 3 * 7 * DAY


def test_of_what_nobody_told_of_nothing_is_known():
    assert expected_us(7 * DAY, {}, None, None) is None


@given(
    st.lists(st.tuples(st.integers(1, 20), st.integers(0, DAY), st.booleans()), min_size=1),
    st.integers(0, 20),
)
def test_it_is_never_less_than_the_truth(spans: list[tuple[int, int, bool]], more: int):
    """Spans of a topic with so many partitions, wholly seen or not seen at all."""
    seen: dict[int, int] = {}
    for count, us, is_seen in spans:
        if is_seen:
            seen[count] = seen.get(count, 0) + us
    unseen = max((count for count, _, is_seen in spans if not is_seen), default=0)
    told = max(unseen, more)
    truth = sum(count * us for count, us, _ in spans)
    found = expected_us(sum(us for _, us, _ in spans), seen, max(seen, default=None), told)
    assert (found or 0) >= truth
    if not unseen:
        assert (found or 0) == truth
