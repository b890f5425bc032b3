"""Events: how incidents are grouped, why they happened, and whose budget they used."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest

from lakehouse.core.lake import Lake
from lakehouse.core.metrics import LEADERLESS, UNAVAILABLE, UNDER_MIN_ISR
from lakehouse.core.objective import Objective, Slices
from lakehouse.core.periods import Period, length
from lakehouse.core.subjects import Subject
from lakehouse.engines.engine import ask
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.gold import causes, event_rules, incidents
from lakehouse.gold.causes import Away, Change
from lakehouse.gold.incidents import Event, Key
from lakehouse.report.facts.events import event_uses
from lakehouse.slo.sla_statement import Statement, Times
from tests.stretches import SECOND, Row, as_rows, stretch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakehouse.gold.incidents import Incident

WEEK: Final = 7 * 24 * 3600
WITHIN: Final = (0, WEEK * SECOND)
OWN_COUNT: Final = "kafka.broker.under_min_isr_partitions"


def grouped(stretches: Sequence[Row]) -> list[tuple[Event, list[Incident]]]:
    engine = LocalEngine(Lake("."))
    joined = incidents.relation(as_rows(stretches))
    return incidents.with_incidents(engine, joined, {"c": 70 * SECOND})


def spans(found: Iterable[tuple[Event, list[Incident]]]) -> list[tuple[int, int, int]]:
    """Start, end and number of incidents of each event; seconds."""
    return [(one.start // SECOND, one.end // SECOND, len(items)) for one, items in found]


def client(start: int, end: int, source: str = "broker-1", **rest: Any) -> Row:
    names = {
        "topic": None,
        "partition_id": None,
        "user_name": "u",
        "client_id": "c",
        "level": "client",
    }
    metric = {"metric": "kafka.client.produce.throttle_time"}
    return stretch(start, end, source, **metric | names | rest)


def test_onsets_that_follow_each_other_are_one_event_and_others_are_not() -> None:
    found = grouped([
        stretch(1000, 1300, lead_us=0), stretch(1060, 1100, partition_id=1, lead_us=0),
        stretch(1130, 1140, partition_id=2, lead_us=0), stretch(1215, 1220, partition_id=3,
        lead_us=0),
        stretch(1290, 1299, partition_id=4, lead_us=5 * SECOND),
    ])  # fmt: skip
    # 1,130 is 70 s after 1,060; 1,215 is 85 s after 1,130; 1,285 is 70 s after 1,215.
    assert spans(found) == [(1000, 1300, 3), (1215, 1299, 2)]


def test_a_partition_that_is_bad_for_weeks_is_an_event_of_its_own() -> None:
    """By overlaps it would swallow all others."""
    days = [stretch(n * 86_400, n * 86_400 + 60, partition_id=n, lead_us=0) for n in range(1, 7)]
    found = grouped([stretch(0, WEEK, topic="chronic", lead_us=0), *days])
    assert len(found) == 7
    assert found[0][0].topics == ("chronic",)
    assert [one.topics for one, _ in found[1:]] == [("t",)] * 6


def test_other_incidents_of_a_kind_and_subject_are_one_event() -> None:
    found = grouped([
        client(0, 60), client(86_400, 86_460), client(500, 560, user_name="other"),
        client(0, 60) | {"metric": "kafka.client.fetch.throttle_time"},
    ])  # fmt: skip
    known = {(one.key.kind, one.key.of, one.key.user, len(items)) for one, items in found}
    assert known == {
        ("throttling", "produce", "u", 2), ("throttling", "produce", "other", 1),
        ("throttling", "fetch", "u", 1),
    }  # fmt: skip


def test_what_a_broker_counts_itself_belongs_to_the_event_that_it_overlaps() -> None:
    own = {"metric": OWN_COUNT, "level": "source", "topic": None, "partition_id": None}
    found = grouped([
        stretch(0, WEEK, topic="chronic", lead_us=0), stretch(5000, 5100, lead_us=0),
        stretch(5000, 5300, **own), stretch(4000, 4100, "broker-9", **own),
    ])  # fmt: skip
    assert spans(found) == [(0, WEEK, 2), (5000, 5100, 2)]
    (alone,) = grouped([stretch(4000, 4100, "broker-9", **own)])
    assert (alone[0].key.kind, alone[0].key.source) == ("other", "broker-9")


@pytest.mark.parametrize("seed", range(8))
def test_each_incident_is_in_one_event_and_onsets_decide(seed: int) -> None:
    chance = random.Random(seed)
    stretches = []
    for partition in range(12):
        at = 0
        for _ in range(chance.randint(0, 5)):
            start = at + chance.randint(2, 900)
            at = start + chance.choice((5, 60, 4_000))
            lead = chance.randint(0, 30) * SECOND
            stretches.append(stretch(start, at, partition_id=partition, lead_us=lead))
    found = grouped(stretches)
    own = [one for _, items in found for one in items]
    assert len(own) == len(stretches)
    assert len({(one.partition, one.start) for one in own}) == len(stretches)
    for (one, _), (other, _) in pairwise(found):
        assert other.onset > one.last_onset + 70 * SECOND
    for _, items in found:
        by_onset = sorted(items, key=lambda one: one.start - one.lead_us)
        reached = by_onset[0].start
        for one in by_onset[1:]:
            assert one.start - one.lead_us <= reached + 70 * SECOND
            reached = max(reached, one.start)


def test_kinds_in_sql_are_those_in_python() -> None:
    names = [
        UNDER_MIN_ISR, OWN_COUNT, "kafka.client.request.throttle_time", "kafka.group.lag",
        "kafka.group.non_consumed.low", "kafka.topic.remote_copy_lag.bytes", "acme.queue",
        "kafka.topic.remote_delete_lag.segments", "kafka.broker.produce.time.p99",
        "kafka.broker.produce.answers", "kafka.partition.under_replicated",
        "kafka.partition.upload_tier_lag", "kafka.topic.remote_copy.errors",
    ]  # fmt: skip
    engine = LocalEngine(Lake("."))
    kind, of = event_rules.kind_sql()
    rows = pa.table({"metric": names})
    sql = f"SELECT metric, {kind} AS kind, {of} AS of_kind FROM {{rows}} r"  # noqa: S608 - ours
    found = {metric: (kind, of) for metric, kind, of in ask(engine, sql, rows=rows)}
    assert found == {name: event_rules.kind_of(name) for name in names}


# Causes


def gone(source: str, start: int, end: int, outcome: str = "refused") -> tuple[Any, ...]:
    return source, start * SECOND, end * SECOND, outcome, outcome, 10 * SECOND


def event(start: int, end: int, *topics: str, kind: str = "availability") -> Event:
    at = start * SECOND
    return Event(at, at, at, end * SECOND, topics or ("t",), 70 * SECOND, Key(kind, None, start))


def cause(one: Event, *failures: tuple[Any, ...], restarts: Any = ()) -> causes.Cause:
    away = causes.away(failures, ((name, at * SECOND) for name, at in restarts))
    (judged,) = causes.judged([one], away)
    return judged.cause


def test_who_went_away_near_the_onset_is_the_likely_cause() -> None:
    found = cause(event(1000, 1100), gone("broker-2", 990, 1080))
    assert (found.kind, found.sources, found.error) == ("no_answer", ("broker-2",), "refused")
    restarted = cause(event(1000, 1100), gone("broker-2", 990, 1080), restarts=[("broker-2", 1075)])
    assert (restarted.kind, restarted.start, restarted.end) == (
        "restarted", 990 * SECOND, 1080 * SECOND,
    )  # fmt: skip
    assert cause(event(1000, 1100), gone("broker-2", 990, 1080, "down")).kind == "restarted"


def test_one_slow_answer_is_no_outage_and_a_long_silence_is_one() -> None:
    assert cause(event(1000, 1100), gone("broker-1", 990, 1000, "timeout")).kind == "not_known"
    silent = [gone("broker-1", 990, 1020, "timeout"), gone("broker-1", 1020, 1060, "error")]
    assert cause(event(1000, 1100), *silent).kind == "no_answer"


def test_failures_with_answers_between_them_are_no_silence() -> None:
    failures = [gone("broker-1", at, at + 10, "timeout") for at in (980, 1010, 1040)]
    assert cause(event(1000, 1100), *failures).kind == "not_known"


@pytest.mark.parametrize(("other", "is_away"), [("quotas", 0), ("topology", 1)])
def test_a_broker_that_answers_another_family_is_not_away(other: str, is_away: int) -> None:
    """A family of the Admin API is answered by any broker."""
    names = ("source", "family", "outcome", "started_at", "ended_at", "interval_us", "error")
    rows = [
        ("broker-1", "min_isr", "error", 900, 1100, 10, "beans are hidden"),
        ("broker-1", other, "ok", 0, 2000, 10, None),
        ("broker-2", "quotas", "ok", 0, 2000, 10, None),
    ]
    engine = LocalEngine(Lake("."))
    table = pa.Table.from_pylist([
        dict(zip(names, (*row[:3], *(one * SECOND for one in row[3:6]), row[6]), strict=True))
        for row in rows
    ])  # fmt: skip
    found = causes.read_away(engine, table, None, ["min_isr", "quotas"])
    assert len(found) == is_away


def test_no_cause_follows_its_effect() -> None:
    """A broker's absence is detected one scrape late, and has its effect within 45 s."""
    assert cause(event(1000, 1100), gone("broker-2", 900, 945)).kind == "no_answer"
    assert cause(event(1000, 1100), gone("broker-2", 900, 944)).kind == "not_known"
    assert cause(event(1000, 1100), gone("broker-2", 1010, 1080)).kind == "no_answer"
    assert cause(event(1000, 1100), gone("broker-2", 1011, 1080)).kind == "not_known"


def test_the_cause_of_events_that_are_not_chained_is_near_the_first() -> None:
    lags = event(1000, 9000, kind="tiered")._replace(last_onset=8000 * SECOND)
    assert cause(lags, gone("broker-2", 4000, 4080, "down")).kind == "not_known"
    assert cause(lags, gone("broker-2", 990, 1080, "down")).kind == "restarted"


def test_silence_of_a_broker_explains_availability_only() -> None:
    silent = gone("broker-2", 990, 1080, "timeout")
    assert cause(event(1000, 1100), silent).kind == "no_answer"
    assert cause(event(1000, 1100, kind="tiered"), silent).kind == "not_known"


def test_a_broker_that_is_away_for_weeks_explains_nothing_that_happens_meanwhile() -> None:
    hours = [gone("broker-9", n * 3600, (n + 1) * 3600) for n in range(100)]
    assert cause(event(90_000, 90_100), *hours).kind == "not_known"
    assert cause(event(3, 90_100), *hours).sources == ("broker-9",)


def test_the_nearest_is_named_and_the_others_stand_beside_it() -> None:
    found = cause(
        event(1000, 1100), gone("broker-1", 950, 951), gone("broker-2", 995, 1050),
        gone("broker-3", 955, 965, "down"),
    )  # fmt: skip
    assert (found.kind, found.sources) == ("restarted", ("broker-3",)), "a restart is evidence"
    assert found.also == ("broker-1", "broker-2")


def test_restarts_one_after_the_other_are_one_rolling_restart() -> None:
    away = causes.away([gone(f"broker-{n}", n * 360, n * 360 + 90, "down") for n in (1, 2, 3)], ())
    found = causes.judged([event(n * 360 + 5, n * 360 + 95) for n in (1, 2, 3)], away)
    (one,) = found
    assert (one.cause.kind, one.cause.sources) == (
        "rolling_restart", ("broker-1", "broker-2", "broker-3"),
    )  # fmt: skip
    assert len(one.events) == 3


@pytest.mark.parametrize(
    ("pauses", "events_found"), [((600, 600), 1), ((601, 600), 2), ((601, 601), 3)]
)
def test_a_rolling_restart_has_at_most_ten_minutes_between_brokers(
    pauses: tuple[int, int], events_found: int
) -> None:
    starts = [1000, 1000 + 90 + pauses[0], 1000 + 180 + sum(pauses)]
    failures = [gone(f"broker-{n}", at, at + 90, "down") for n, at in enumerate(starts)]
    away = causes.away(failures, ())
    found = causes.judged([event(at + 5, at + 95) for at in starts], away)
    assert len(found) == events_found


def test_one_broker_that_crashes_again_and_again_is_no_rolling_restart() -> None:
    failures = [gone("broker-1", at, at + 90, "down") for at in (1000, 1400, 1800)]
    away = causes.away(failures, ())
    found = causes.judged([event(at + 5, at + 95) for at in (1000, 1400, 1800)], away)
    assert [one.cause.kind for one in found] == ["restarted"] * 3


def test_brokers_that_are_down_at_once_are_named_together() -> None:
    found = cause(
        event(1000, 1100), gone("broker-1", 990, 1080, "down"), gone("broker-2", 991, 1081, "down")
    )
    assert (found.kind, found.sources) == ("restarted", ("broker-1", "broker-2"))


def test_without_a_broker_the_metadata_says_what_changed() -> None:
    (one,) = causes.judged([event(1000, 1100, "orders")], [])
    changes = [
        Change("leader_change", "orders", None, 3, 990 * SECOND),
        Change("unclean_election", "orders", None, 1, 991 * SECOND),
        Change("reassignment", "another", None, 1, 992 * SECOND),
    ]
    found = causes.by_changes(one, changes)
    assert (found.cause.kind, found.cause.also) == ("unclean_election", ("leader_change",))
    assert causes.by_changes(one, changes[2:]).cause.kind == "not_known"
    assert causes.by_changes(one, [], were_fenced=True).cause.kind == "fenced"


def test_a_known_broker_stays_the_cause_beside_changes() -> None:
    away = causes.away([gone("broker-2", 990, 1080, "down")], ())
    (one,) = causes.judged([event(1000, 1100, "orders")], away)
    changes = [Change("leader_change", "orders", None, 3, 990 * SECOND),
               Change("config_change", "orders", None, 1, 990 * SECOND)]  # fmt: skip
    found = causes.by_changes(one, changes, were_fenced=True).cause
    assert (found.kind, found.also) == ("restarted", ("config_change",))


def test_weeks_in_a_row_end_at_the_first_week_without() -> None:
    (one,) = causes.judged([event(1000, 1100, "orders")], [])
    (other,) = causes.judged([event(1000, 1100, "payments")], [])
    names = [{one.name, other.name}, {one.name}, {other.name}, {one.name}]
    assert causes.weeks_in_row(one, names) == 3
    assert causes.weeks_in_row(one, []) == 1


# Whose budget was used


def objective(metric: str, level: Any, **rest: Any) -> Objective:
    return Objective(f"{metric}-{level}", "", "", level, metric, 0.0, 0.999, **rest)


def statement(wanted: Objective, bad_us: int, **names: Any) -> Statement:
    keys = dict.fromkeys(("topic", "user", "client_id", "group", "source")) | names
    partition = keys.pop("partition", None)
    subject = Subject("c", wanted.kind, *keys.values(), 0, WITHIN[1], partition=partition)  # type: ignore[arg-type]
    times = Times(WITHIN[1] - bad_us, bad_us, bad_us, bad_us)
    return Statement(wanted, subject, WITHIN[1], times, Period.of(WITHIN))


def random_stretches(chance: random.Random) -> list[Row]:
    found = []
    for topic, partition, metric in (
        (topic, part, metric)
        for topic in "ab" for part in range(3) for metric in (UNDER_MIN_ISR, LEADERLESS)
    ):  # fmt: skip
        at = 0
        for _ in range(chance.randint(0, 5)):
            start = at + chance.randint(2, 900)
            at = start + chance.choice((5, 60, 4_000))
            found.append(stretch(start, at, topic=topic, partition_id=partition, metric=metric))
    for user in ("u", "v"):
        starts = sorted(chance.sample(range(0, 10_000, 100), 3))
        found += [client(start, start + chance.randint(1, 99), user_name=user) for start in starts]
    return found


def bad_us(stretches: Iterable[Row], metrics: Sequence[str], **names: Any) -> int:
    return length(
        (row["started_at"], row["ended_at"])
        for row in stretches
        if row["metric"] in metrics and all(row[name] == value for name, value in names.items())
    )


@pytest.mark.parametrize("seed", range(10))
def test_the_events_of_a_subject_add_up_to_its_bad_time(seed: int) -> None:
    chance = random.Random(seed)
    stretches = random_stretches(chance)
    drafts = [(one.start, items) for one, items in grouped(stretches)]
    both, throttle = (UNDER_MIN_ISR, LEADERLESS), "kafka.client.produce.throttle_time"
    wanted = [
        *(statement(objective(UNAVAILABLE, "topic"), bad_us(stretches, both, topic=t), topic=t)
          for t in "ab"),
        *(statement(objective(LEADERLESS, "topic"), bad_us(stretches, (LEADERLESS,), topic=t),
                    topic=t) for t in "ab"),
        *(statement(objective(UNAVAILABLE, "partition"),
                    bad_us(stretches, both, topic="a", partition_id=part), topic="a",
                    partition=part)
          for part in range(3)),
        *(statement(objective(throttle, "client"), bad_us(stretches, (throttle,), user_name=user),
                    user=user, client_id="c") for user in "uv"),
    ]  # fmt: skip
    used, rests = event_uses.uses(wanted, drafts, WITHIN)
    assert not rests, "incidents explain all of it"
    for one in wanted:
        own = [use for use in used if use.statement is one]
        assert sum(use.bad_us for use in own) == one.times.bad_us
        assert len({use.event for use in own}) == len(own)
        assert all(use.bad_us > 0 for use in own)


@pytest.mark.parametrize("seed", range(6))
def test_so_do_those_of_slices_thresholds_longer_windows_and_clusters(seed: int) -> None:
    chance = random.Random(seed)
    drafts = [(one.start, items) for one, items in grouped(random_stretches(chance))]
    sliced = objective(UNAVAILABLE, "topic", slices=Slices(300 * SECOND, 0.9))
    above = replace(objective(LEADERLESS, "topic"), threshold=2.0)
    longer = replace(statement(objective(UNAVAILABLE, "topic"), 10**12, topic="a"),
                     period=Period.of((-3 * WITHIN[1], WITHIN[1])))  # fmt: skip
    wanted = [
        *(statement(one, chance.randint(1, 10**9), topic=topic)
          for one in (sliced, above, objective("acme.queue", "topic")) for topic in "abz"),
        statement(objective(UNAVAILABLE, "cluster"), chance.randint(1, 10**9)),
        statement(objective("kafka.broker.produce.time.p99", "source"), 17, source="broker-1"),
        longer,
    ]  # fmt: skip
    used, rests = event_uses.uses(wanted, drafts, WITHIN)
    for one in wanted:
        explained = sum(use.bad_us for use in used if use.statement is one)
        assert explained + sum(rest.bad_us for rest in rests if rest.statement is one) == (
            one.times.bad_us
        )
    kinds = {rest.statement.objective.metric: rest.key.kind for rest in rests}
    assert kinds["acme.queue"] == "other"
    assert kinds["kafka.broker.produce.time.p99"] == "latency"
    assert [rest.key.kind for rest in rests if rest.statement is longer] == ["other"]


def test_time_of_two_events_belongs_to_the_one_that_began_last() -> None:
    found = grouped([
        stretch(0, WEEK, lead_us=0), stretch(5000, 5100, partition_id=1, lead_us=0),
    ])  # fmt: skip
    drafts = [(one.start, items) for one, items in found]
    wanted = statement(objective(UNAVAILABLE, "topic"), WITHIN[1], topic="t")
    used, _ = event_uses.uses([wanted], drafts, WITHIN)
    assert {use.event: use.bad_us for use in used} == {
        0: WITHIN[1] - 100 * SECOND, 1: 100 * SECOND,
    }  # fmt: skip


def test_coverage_has_no_events() -> None:
    wanted = statement(objective("jmxlake.coverage", "source"), 5, source="broker-1")
    assert event_uses.uses([wanted], [], WITHIN) == ([], [])


@pytest.mark.parametrize("seed", range(5))
def test_parts_of_a_total_add_up_to_it(seed: int) -> None:
    chance = random.Random(seed)
    times = {n: chance.randint(1, 10**9) for n in range(chance.randint(1, 9))}
    for total in (1, 7, 10**12 + 1):
        assert sum(event_uses.proportional(times, total).values()) == total


def test_spans_of_a_broker_that_are_close_together_are_one() -> None:
    away = causes.away([gone("broker-1", 0, 10), gone("broker-1", 35, 40)], ())
    assert away == [Away("broker-1", 0, 40 * SECOND, is_restart=False, error="refused")]
