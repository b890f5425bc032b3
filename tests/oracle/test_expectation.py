"""What should have been seen against what was: statements on the stories' week."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakehouse.core import lake as lakes, periods
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.slo import attainment
from lakehouse.slo.openslo import objective_files
from tests.oracle import stories

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse.slo.attainment import Statement

pytestmark = pytest.mark.reads

SECOND = 1_000_000
WEEK = 7 * 86_400 * SECOND


@pytest.fixture(scope="module")
def statements(lake: Path) -> list[Statement]:
    """All that is said of the week after its end."""
    week = periods.week_of(stories.MONDAY)
    after = periods.micros(week.end) + WEEK
    return attainment.read(LocalEngine(lakes.at(str(lake))), objective_files.load(), week, after)


def stated(found: list[Statement], cluster: str, objective: str, name: str) -> Statement:
    (one,) = [
        one
        for one in found
        if one.subject.cluster == cluster
        and one.objective.name == objective
        and name in one.subject.key
    ]
    return one


def test_unknown_time_is_bad_for_the_low_and_good_for_the_high_bound(statements: list[Statement]):
    one = stated(statements, "unknown_time", "min-isr", "t")
    assert one.whole_us == WEEK, "a topic that falls silent goes on existing"
    assert one.unknown_us == WEEK - 240 * SECOND
    assert (one.attainment, one.attainment_high) == (1.0, 1.0)
    assert one.attainment_low == pytest.approx(240 * SECOND / WEEK)
    assert one.verdict == "uncertain"


def test_an_agent_that_was_never_installed_is_a_hole(statements: list[Statement]):
    one = stated(statements, "agent_never_installed", "coverage", "broker-9")
    assert (one.verdict, one.attainment) == ("no_data", None)
    assert one.unknown_us == one.whole_us == WEEK


def test_a_decommissioned_broker_is_expected_until_the_cluster_names_it_no_more(
    statements: list[Statement],
):
    gone = stated(statements, "decommissioned", "coverage", "broker-3")
    assert (gone.whole_us, gone.unknown_us, gone.verdict) == (300 * SECOND, 0, "met")
    stays = stated(statements, "decommissioned", "coverage", "broker-1")
    assert stays.whole_us == WEEK


@pytest.mark.parametrize(("objective", "name"), [("min-isr", "t"), ("coverage", "broker-1")])
def test_a_cluster_that_was_down_all_week_is_unknown_all_week(
    statements: list[Statement], objective: str, name: str
):
    one = stated(statements, "silent_week", objective, name)
    assert (one.verdict, one.unknown_us) == ("no_data", WEEK)


def test_a_client_is_expected_as_long_as_it_is_there(statements: list[Statement]):
    gone = stated(statements, "clients_come_and_go", "produce-throttling", "gone")
    assert (gone.whole_us, gone.unknown_us, gone.verdict) == (300 * SECOND, 0, "met")
    comes = stated(statements, "clients_come_and_go", "produce-throttling", "comes")
    # No client was seen later, so it may go on: nobody looked.
    assert (comes.whole_us, comes.times.bad_us) == (WEEK - 300 * SECOND, 150 * SECOND)
    assert comes.verdict == "uncertain"


def test_a_deleted_topic_is_expected_no_longer(statements: list[Statement]):
    one = stated(statements, "topic_deleted", "min-isr", "t")
    assert (one.whole_us, one.unknown_us, one.verdict) == (300 * SECOND, 0, "met")
    other = stated(statements, "topic_deleted", "min-isr", "other")
    assert other.whole_us == WEEK


def test_a_topic_can_be_deleted_after_a_broker_was_decommissioned(statements: list[Statement]):
    one = stated(statements, "topic_deleted_after_a_broker_left", "min-isr", "t")
    assert (one.whole_us, one.unknown_us) == (600 * SECOND, 0)


def test_time_in_which_offsets_may_have_been_lost_is_within_the_bounds(
    statements: list[Statement],
):
    one = stated(statements, "offsets_lost", "lost-before-read", "g")
    assert (one.times.bad_low_us, one.times.bad_high_us) == (300 * SECOND, 600 * SECOND)
    assert one.unknown_us == WEEK - 600 * SECOND, "a rewind, and then nobody looked at the group"


def test_a_topic_deleted_and_made_again_is_one_and_the_time_between_is_unknown(
    statements: list[Statement],
):
    one = stated(statements, "topic_made_again", "min-isr", "t")
    assert (one.whole_us, one.times.good_us) == (WEEK, (300 + 1500) * SECOND)
    assert one.unknown_us == WEEK - one.times.good_us
