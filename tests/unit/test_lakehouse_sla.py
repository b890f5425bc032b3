from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from lakehouse.core import periods
from lakehouse.core.objective import Objective
from lakehouse.core.subjects import Subject, expected_us, with_ends
from lakehouse.errors import ObjectiveError
from lakehouse.slo.openslo import objective_files
from lakehouse.slo.sla_statement import Statement, Sums, Times, build_all
from lakehouse.slo.sli_query import Lifetime, Query

SECOND = 1_000_000
HOUR = 3600 * SECOND
OBJECTIVE = Objective("min-isr", "t", "d", "topic", "m", 0.0, 0.9)
MINUTE = 60 * SECOND


def subject(kind: str = "topic", first: int = 0, last: int = HOUR, **rest: object) -> Subject:
    names = dict.fromkeys(("topic", "user", "client_id", "group", "source"))
    return Subject("c", kind, **{**names, "first_us": first, "last_us": last, **rest})


def end_of(subjects: list[Subject], topic: str) -> int | None:
    return {one.topic: end for one, end in with_ends(subjects)}[topic]


def statement(expected: int, good: int, bad: int, low: int, high: int) -> Statement:
    return Statement(OBJECTIVE, subject(), expected, Times(good, bad, low, high))


def stated(objective: Objective, subjects: list[Subject], period: periods.Period) -> list:
    asked = Query((objective,), period, 300 * SECOND)
    living = [Lifetime(one, [(one.first_us, HOUR)]) for one in subjects]
    return build_all([asked], living, Sums({}, {}))


def test_time_that_nobody_saw_is_neither_good_nor_bad():
    one = statement(100, 80, 5, 4, 6)
    assert one.unknown_us == 15
    assert one.attainment == 80 / 85
    assert (one.attainment_low, one.attainment_high) == (79 / 100, 96 / 100)
    assert one.verdict == "uncertain"


def test_met_needs_the_lower_bound_and_missed_the_upper():
    assert statement(100, 97, 3, 3, 3).verdict == "met"
    assert statement(100, 80, 20, 15, 25).verdict == "missed"
    assert statement(100, 90, 10, 9, 11).verdict == "uncertain"


@pytest.mark.parametrize(
    ("policy", "verdict"),
    [("interval", "uncertain"), ("exclude", "met"), ("good", "met"), ("bad", "missed")],
)
def test_an_objective_may_say_how_unknown_time_counts(policy: str, verdict: str):
    one = replace(
        statement(100, 80, 5, 4, 6), objective=replace(OBJECTIVE, unknown=policy, target=0.93)
    )
    assert one.verdict == verdict
    assert one.interval_verdict == "uncertain"
    assert one.unknown_us == 15, "it is shown, whatever counts"
    assert one.details().get("interval_verdict") == (None if policy == "interval" else "uncertain")
    assert one.scope()["unknown"] == policy


def test_a_policy_is_about_unknown_time_and_the_figure_decides():
    known = replace(statement(100, 90, 10, 9, 11), objective=replace(OBJECTIVE, unknown="bad"))
    assert (known.verdict, known.interval_verdict) == ("met", "uncertain")
    silent = replace(statement(100, 0, 0, 0, 0), objective=replace(OBJECTIVE, unknown="good"))
    assert silent.verdict == "no_data", "nothing was seen, which no policy turns into a verdict"


def test_no_data_is_a_verdict_of_its_own():
    one = statement(100, 0, 0, 0, 0)
    assert (one.verdict, one.attainment, one.attainment_low) == ("no_data", None, None)
    assert one.unknown_us == 100


def test_more_seen_than_expected_is_never_less_than_nothing_unknown():
    one = statement(50, 60, 0, 0, 0)
    assert (one.unknown_us, one.whole_us, one.verdict) == (0, 60, "met")


@given(
    st.integers(0, 1000),
    st.integers(0, 1000),
    st.integers(0, 500),
    st.integers(0, 500),
    st.integers(0, 3000),
)
def test_the_interval_holds_the_attainment(good, bad, less, more, expected):
    one = statement(expected, good, bad, max(0, bad - less), bad + more)
    if one.attainment is not None:
        assert 0 <= one.attainment_low <= one.attainment <= one.attainment_high <= 1


@pytest.mark.edge(6)
@pytest.mark.parametrize("readers", [0, HOUR, 5 * HOUR])
def test_client_ends_only_if_another_was_seen_later(readers: int) -> None:
    """Agents that stop, or read no quotas from then on, say nothing of the clients."""
    clients = [subject("client", client_id=str(n), last=HOUR + n * SECOND) for n in range(3)]
    source = subject("source", source="broker-1", last=readers)
    assert {end for _, end in with_ends([*clients, source])} == {None}
    other = subject("client", client_id="other", last=2 * HOUR)
    ends = {one.client_id: end for one, end in with_ends([*clients, other, source])}
    assert ends == {one.client_id: one.last_us for one in clients} | {"other": None, None: None}


@pytest.mark.edge(6)
def test_group_ends_only_if_another_was_seen_later() -> None:
    """Check groups that a broker hides, while it still lists its topics."""
    source = subject("source", source="broker-1", whole_until_us=5 * HOUR)
    groups = [subject("group", group=str(n), last=HOUR + n * SECOND) for n in range(3)]
    assert {end for _, end in with_ends([*groups, source])} == {None}
    other = subject("group", group="other", last=2 * HOUR)
    ends = {one.group: end for one, end in with_ends([*groups, other, source])}
    assert ends == {one.group: one.last_us for one in groups} | {"other": None, None: None}
    quiet = replace(source, whole_until_us=HOUR)
    assert {end for _, end in with_ends([*groups, other, quiet])} == {None}


def test_a_silent_topic_goes_on_and_a_deleted_one_ends():
    seen_whole = {"whole_until_us": 2 * HOUR}
    broker = subject("source", source="broker-1", **seen_whole)
    gone = subject(topic="gone", last=HOUR)
    assert end_of([broker, gone], "gone") == HOUR
    quiet = subject("source", source="broker-1", whole_until_us=HOUR + MINUTE)
    assert end_of([quiet, gone], "gone") is None


def test_a_live_source_that_does_not_tell_keeps_a_topic_and_a_fenced_one_does_not():
    first = subject("source", source="broker-1", whole_until_us=2 * HOUR)
    second = subject("source", source="broker-2", whole_until_us=HOUR)
    topic = subject(topic="t", last=HOUR)
    assert end_of([first, second, topic], "t") is None
    fenced = subject(
        "source",
        source="broker-2",
        whole_until_us=HOUR,
        attributes={"kafka.cluster.node.fenced": 1.0},
    )
    assert end_of([first, fenced, topic], "t") == HOUR


def test_a_source_of_which_nobody_knows_whether_it_is_fenced_is_waited_for():
    attributes = {"kafka.cluster.node.fenced": None}
    source = subject("source", source="broker-1", whole_until_us=HOUR, attributes=attributes)
    assert end_of([source, subject(topic="t", last=HOUR)], "t") is None


def test_a_decommissioned_source_is_not_waited_for():
    stays = subject("source", source="broker-1", whole_until_us=3 * HOUR, attributes_us=3 * HOUR)
    left = subject("source", source="broker-3", whole_until_us=HOUR, attributes_us=HOUR)
    topic = subject(topic="t", last=2 * HOUR)
    assert end_of([stays, left, topic], "t") == 2 * HOUR
    still_named = replace(left, attributes_us=3 * HOUR)
    assert end_of([stays, still_named, topic], "t") is None, "it may have something to tell"


def test_a_source_that_nobody_read_is_expected_all_the_time():
    never = subject("source", first=HOUR, last=HOUR, source="broker-9", attributes_us=HOUR)
    period = periods.Period(periods.instant(0), periods.instant(3 * HOUR))
    ((one, end),) = with_ends([never])
    assert expected_us(one, end, period, 10 * HOUR) == 2 * HOUR
    assert expected_us(one, end, period, 2 * HOUR) == HOUR


def test_subjects_without_any_row_are_stated_with_no_data():
    period = periods.Period(periods.instant(0), periods.instant(HOUR))
    (one,) = stated(OBJECTIVE, [subject(topic="t")], period)
    assert (one.verdict, one.unknown_us) == ("no_data", HOUR)


def test_attributes_choose_whom_an_objective_concerns():
    tiered = Objective("lag", "t", "d", "topic", "m", 0.0, 0.9, {"kafka.tiered": 1.0})
    period = periods.Period(periods.instant(0), periods.instant(HOUR))
    yes = subject(topic="yes", attributes={"kafka.tiered": 1.0})
    found = stated(tiered, [yes, subject(topic="no")], period)
    assert [one.subject.topic for one in found] == ["yes"]


def test_the_shipped_objectives_load():
    names = [objective.name for objective in objective_files.load()]
    assert names == sorted(names)
    assert {"min-isr", "coverage", "lost-before-read"} <= set(names)


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("target: 0.999", "target: 1.5"),
        ("kind: SLO", "kind: SLI"),
        ("level: topic", "level: shelf"),
        ("value: 0", "value: -1"),
        ("value: 0", "value: .nan"),
        ("value: 0", "value: 5"),  # of what is derived of a partition
    ],
)
def test_a_wrong_objective_is_one_line_that_names_the_file(tmp_path, line, other):
    text = (objective_files.SHIPPED / "min-isr.yaml").read_text(encoding="utf-8")
    assert line in text
    (tmp_path / "mine.yaml").write_text(text.replace(line, other), encoding="utf-8")
    with pytest.raises(ObjectiveError, match=r"mine\.yaml") as caught:
        objective_files.load(tmp_path)
    assert "\n" not in str(caught.value)
