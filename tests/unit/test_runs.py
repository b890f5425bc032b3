"""The encoder: runs give back the samples they were made of, and bound what happened between."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from collector.catalogue.entries import Delays
from collector.encoding.bronze_rows import SealedRows
from collector.encoding.encoder import Encoder
from collector.model import Answer, Identity, Reading, Scrape, Series
from collector.sources.base.error_mapping import NOTHING_LISTENS
from collector.spool import source_states
from lakehouse.report.figures import floor_us
from lakehouse.tables import FLAG_GAP, FLAG_INCREASE

if TYPE_CHECKING:
    from collector.encoding.bronze_rows import Run

pytestmark = pytest.mark.slow

S = 1_000_000
INTERVAL = 10 * S
MAX_GAP = 25 * S
WINDOW = 60 * S
T0 = 1_700_000_040 * S
BROKER = Identity("cluster", "1", "4.3.1", 1)
METRIC = "kafka.partition.under_min_isr"
P = [Series(METRIC, "t", number) for number in range(4)]


def ok(asked: int, values: dict[Series, float | None], latency: int = 0, kind: str = "gauge",
       identity: Identity = BROKER) -> Scrape:  # fmt: skip
    zeros = frozenset(series for series, value in values.items() if value == 0)
    rest = {series: value for series, value in values.items() if value != 0}
    reading = Reading(METRIC, kind, zeros, rest)  # type: ignore[arg-type]
    answer = Answer((reading,), len(values))
    return Scrape("f", asked, asked, asked + latency, INTERVAL, "ok", identity, answer)


def failed(asked: int, latency: int = 0) -> Scrape:
    return Scrape("f", asked, asked, asked + latency, INTERVAL, "refused", error="no")


def encode(scrapes: list[Scrape], until: int, window: int = WINDOW, **late: int) -> SealedRows:
    encoder = Encoder(window, {METRIC: Delays(**late)})
    sealed = SealedRows([], [], [])
    for scrape in scrapes:
        encoder.record(scrape)
        for kept, new in zip(sealed, encoder.seal(scrape.answered_us), strict=True):
            kept.extend(new)
    for kept, new in zip(sealed, encoder.flush(until), strict=True):
        kept.extend(new)
    return sealed


def unfold(runs: list[Run]) -> dict[Series, list[Run]]:
    """Every series' own runs, from folded rows and their members."""
    unfolded: dict[Series, list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.start):
        members = [run.series]
        if run.members is not None and run.members.partitions is not None:
            members = [run.series._replace(partition=number) for number in run.members.partitions]
        assert len(members) == run.stands_for
        for series in members:
            unfolded.setdefault(series, []).append(run)
    return unfolded


def spans(runs: list[Run]) -> list[tuple[int, int, float | None]]:
    return [(run.start // S, run.end // S, run.value) for run in runs]


class Attempt(NamedTuple):
    delay: int  # after the tick that was due, in microseconds
    latency: int
    values: dict[Series, float | None] | None  # None: it failed


attempts = st.lists(
    st.builds(
        Attempt,
        st.one_of(st.just(0), st.integers(0, 40 * S)),
        st.integers(1, 9 * S),
        st.one_of(
            st.none(),
            st.dictionaries(st.sampled_from(P), st.sampled_from([0.0, 0.0, 1.0, 2.0, None])),
        ),
    ),
    min_size=1,
    max_size=40,
)


def played(plan: list[Attempt]) -> list[Scrape]:
    scrapes, now = [], 1_700_000_000 * S
    for attempt in plan:
        now += attempt.delay
        scrapes.append(
            failed(now, attempt.latency)
            if attempt.values is None
            else ok(now, attempt.values, attempt.latency)
        )
        now = max(now + attempt.latency + 1, now - now % INTERVAL + INTERVAL)
    return scrapes


@given(attempts)
@settings(max_examples=150)
def test_runs_and_members_restore_every_sample(plan: list[Attempt]) -> None:
    scrapes = played(plan)
    runs = unfold(encode(scrapes, scrapes[-1].answered_us + 1).runs)
    for scrape in scrapes:
        if scrape.answer is None:
            continue
        reading = scrape.answer.readings[0]
        for series in P:
            at = [r.value for r in runs.get(series, []) if r.start <= scrape.answered_us < r.end]
            if series in reading.zeros:
                assert at == [0.0]
            elif series in reading.values:
                assert at == [reading.values[series]]
            else:
                assert at == []


@given(attempts)
@settings(max_examples=150)
def test_sealing_checks_without_unknown_time_keep_interval(
    plan: list[Attempt],
) -> None:
    scrapes = played(plan)
    own = unfold(encode(scrapes, scrapes[-1].answered_us + 1).runs).get(P[0], [])
    for before, after in pairwise(scrapes):
        first, last = before.answered_us, after.answered_us
        covered = sum(max(0, min(run.end, last) - max(run.start, first)) for run in own)
        if before.answer and after.answer and covered == last - first:
            slowest = max(one.answered_us - one.asked_us for one in (before, after))
            assert last - before.asked_us <= floor_us(INTERVAL, slowest)


def test_killed_agent_leaves_no_unknown_time() -> None:
    scrapes = [ok(T0, {P[0]: 0.0}, latency=S), ok(T0 + 26 * S, {P[0]: 0.0}, latency=S)]
    (whole,) = encode(scrapes, T0 + 27 * S, window=600 * S).runs
    assert (whole.start, whole.end) == (T0 + S, T0 + 27 * S)
    assert scrapes[1].answered_us - scrapes[0].asked_us == floor_us(INTERVAL, S)


@given(attempts)
@settings(max_examples=150)
def test_runs_cover_exactly_scraped_time(plan: list[Attempt]) -> None:
    scrapes = played(plan)
    end = scrapes[-1].answered_us + 1
    vouched = dict.fromkeys(P, 0)
    for scrape, after in zip(scrapes, [*scrapes[1:], None], strict=True):
        if scrape.answer is None:
            continue
        limit = scrape.answered_us + MAX_GAP
        if after is None:
            until = end
        elif after.asked_us > limit:
            until = limit
        else:
            until = after.answered_us if after.answer else after.asked_us
        for series in [*scrape.answer.readings[0].zeros, *scrape.answer.readings[0].values]:
            vouched[series] += until - scrape.answered_us
    runs = unfold(encode(scrapes, end).runs)
    for series in P:
        own = runs.get(series, [])
        assert sum(run.end - run.start for run in own) == vouched[series]
        for run in own:
            assert run.start < run.end
            assert run.start // WINDOW == (run.end - 1) // WINDOW, "a run crosses a window"
            assert 0 <= run.tail <= run.end - run.start
        for run, after_run in pairwise(own):
            assert run.end <= after_run.start


@given(attempts)
@settings(max_examples=100)
def test_scrape_log_covers_same_time_as_runs(plan: list[Attempt]) -> None:
    scrapes = played(
        [a if a.values is None else a._replace(values={P[0]: 0.0}) for a in plan],
    )
    sealed = encode(scrapes, scrapes[-1].answered_us + 1)
    observed = sum(run.end - run.start for run in sealed.runs)
    assert observed == sum(a.end - a.start for a in sealed.accounts if a.outcome == "ok")
    assert sum(account.scrapes for account in sealed.accounts) <= len(scrapes)


@given(attempts, st.integers(0, 40))
@settings(max_examples=100)
def test_replayed_journal_gives_same_runs(plan: list[Attempt], killed_after: int) -> None:
    scrapes = played(plan)
    whole, state = Encoder(WINDOW), msgspec.msgpack.encode(Encoder(WINDOW))
    entries = []
    for scrape in scrapes[:killed_after]:
        entries.append(source_states.entry_of(scrape, whole))
        whole.record(scrape)
    encoders, unreadable = source_states.replay(state, entries, WINDOW)
    assert unreadable is None
    revived = encoders[""]
    for scrape in scrapes[killed_after:]:
        whole.record(scrape)
        revived.record(scrape)
    end = scrapes[-1].answered_us + 1
    assert revived.flush(end) == whole.flush(end)


@given(
    st.lists(st.integers(21 * S, 200 * S), min_size=1, max_size=12),
    st.integers(0, INTERVAL - 1),
    st.lists(st.integers(1, 3 * S), min_size=60, max_size=60),
)
@settings(max_examples=150)
def test_true_duration_is_within_bounds(
    durations: list[int], phase: int, latencies: list[int]
) -> None:
    """States alternate, each longer than two intervals, so that every incident is observed."""
    start = 1_700_000_000 * S
    changes = [start + phase + INTERVAL]
    for duration in durations:
        changes.append(changes[-1] + duration)
    end = changes[-1] + 3 * INTERVAL

    def bad(at: int) -> float:
        return float(sum(change <= at for change in changes) % 2)

    scrapes = []
    for number, asked in enumerate(range(start, end, INTERVAL)):
        latency = latencies[number % len(latencies)]
        evaluated = asked + latency // 2  # the broker looks at some instant between both
        scrapes.append(ok(asked, {P[0]: bad(evaluated)}, latency))
    last = scrapes[-1].asked_us + latencies[(len(scrapes) - 1) % len(latencies)] // 2
    truth = sum(
        min(stop, last) - min(begin, last)
        for begin, stop in zip(changes[::2], [*changes[1::2], last], strict=False)
    )
    runs = [run for run in encode(scrapes, last + 3 * S).runs if run.value == 1]
    low = sum(run.end - run.start - run.tail for run in runs)
    high = sum(run.end - run.start + run.lead for run in runs)
    assert low <= truth <= high


def test_healthy_partitions_are_one_row_per_topic_and_window() -> None:
    partitions = {Series(METRIC, f"t{n % 3}", n): 0.0 for n in range(300)}
    scrapes = [ok(tick, partitions, 5) for tick in range(WINDOW, 2 * WINDOW, INTERVAL)]
    runs = encode(scrapes, 2 * WINDOW).runs
    assert [(run.series.topic, run.series.partition) for run in runs] == [
        ("t0", None), ("t1", None), ("t2", None),
    ]  # fmt: skip
    assert {(run.stands_for, run.scrapes) for run in runs} == {(100, 6)}
    assert len({run.members.hash for run in runs if run.members}) == 3


def test_failed_scrape_ends_coverage_at_once() -> None:
    sealed = encode([ok(0, {P[0]: 1.0}), failed(10 * S), ok(20 * S, {P[0]: 1.0})], 30 * S)
    assert spans(sealed.runs) == [(0, 10, 1.0), (20, 30, 1.0)]
    assert [(a.outcome, a.start // S, a.end // S) for a in sealed.accounts] == [
        ("ok", 0, 10), ("refused", 10, 20), ("ok", 20, 30),
    ]  # fmt: skip


def test_run_ending_in_gap_has_tail_to_last_scrape() -> None:
    runs = encode([ok(0, {P[0]: 1.0}), ok(10 * S, {P[0]: 1.0}), failed(20 * S)], 30 * S).runs
    assert [(run.start, run.end, run.lead, run.tail) for run in runs] == [(0, 20 * S, 0, 10 * S)]


def test_silence_ends_coverage_after_max_gap() -> None:
    runs = encode([ok(0, {P[0]: 0.0}), ok(50 * S, {P[0]: 0.0})], 55 * S).runs
    assert spans(runs) == [(0, 25, 0.0), (50, 55, 0.0)]


def test_change_after_window_start_shortens_previous_piece() -> None:
    scrapes = [ok(tick * S, {P[0]: 1.0 if tick < 60 else 0.0}) for tick in range(5, 70, 10)]
    bad = [run for run in encode(scrapes, 70 * S).runs if run.value == 1]
    assert [(run.start // S, run.end // S, run.scrapes, run.tail // S) for run in bad] == [
        (5, 60, 6, 5), (60, 65, 0, 5),
    ]  # fmt: skip


def test_edge_between_positive_values_is_flagged() -> None:
    runs = encode([ok(0, {P[0]: 0.0}), ok(10 * S, {P[0]: 5.0}), ok(20 * S, {P[0]: 7.0}),
                   ok(30 * S, {P[0]: 0.0})], 31 * S).runs  # fmt: skip
    assert [(run.value, run.flags, run.lead // S, run.tail // S) for run in runs] == [
        (0.0, (), 0, 10),
        (5.0, ("next_positive",), 10, 10),
        (7.0, ("previous_positive",), 10, 10),
        (0.0, (), 10, 1),  # nobody confirmed it between the last scrape and the end
    ]


def closed(asked: int) -> Scrape:
    error = "JMX of 127.0.0.1:9999: nothing listens there; is it up, and is its port right?"
    return dataclasses.replace(failed(asked), error=error)


def test_closed_port_before_process_start_is_down() -> None:
    """A restart over a window's edge: the port is closed from 40 s on, the next JVM is of 87 s."""
    again = Identity("cluster", "1", "4.3.1", T0 + 87 * S)
    scrapes = [ok(T0 + at * S, {P[0]: 0.0}) for at in range(0, 40, 10)]
    scrapes += [closed(T0 + at * S) for at in range(40, 100, 10)]
    scrapes += [ok(T0 + 100 * S, {P[0]: 0.0}, identity=again)]
    told = encode(scrapes, T0 + 110 * S, memory_us=60 * S).accounts
    spans = [(one.outcome, (one.start - T0) // S, (one.end - T0) // S) for one in told]
    assert sorted(spans, key=lambda one: one[1]) == [
        ("ok", 0, 40), ("down", 40, 60), ("down", 60, 87), ("refused", 87, 100), ("ok", 100, 110),
    ]  # fmt: skip


def test_started_jvm_without_broker_is_not_down() -> None:
    again = Identity("cluster", "1", "4.3.1", T0 + 27 * S)
    not_yet = dataclasses.replace(failed(T0 + 30 * S), outcome="error", error="it is no broker")
    scrapes = [ok(T0, {P[0]: 0.0}), closed(T0 + 10 * S), closed(T0 + 20 * S), not_yet]
    scrapes += [ok(T0 + 40 * S, {P[0]: 0.0}, identity=again)]
    told = encode(scrapes, T0 + 50 * S, memory_us=60 * S).accounts
    spans = [(one.outcome, (one.start - T0) // S, (one.end - T0) // S) for one in told]
    assert sorted(spans, key=lambda one: one[1]) == [
        ("ok", 0, 10), ("down", 10, 27), ("refused", 27, 30), ("error", 30, 40), ("ok", 40, 50),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "fault", "started"),
    [
        (ok, closed, 1),
        (ok, failed, T0 + 57 * S),
        (ok, closed, T0 + 30 * S),
        (failed, closed, T0 + 57 * S),
    ],
    ids=["the same process", "refused otherwise", "it started before", "it never answered"],
)
def test_refusing_source_without_proof_is_not_down(before: Any, fault: Any, started: int) -> None:
    again = Identity("cluster", "1", "4.3.1", started)
    first = ok(T0 + 30 * S, {P[0]: 0.0}) if before is ok else before(T0 + 30 * S)
    scrapes = [first, fault(T0 + 40 * S), fault(T0 + 50 * S)]
    scrapes += [ok(T0 + 60 * S, {P[0]: 0.0}, identity=again)]
    told = encode(scrapes, T0 + 70 * S, memory_us=60 * S).accounts
    assert {one.outcome for one in told} == {"ok", "refused"}


def test_bean_memory_makes_end_uncertain() -> None:
    values = [None, 400.0, 500.0, 500.0, None]
    scrapes = [ok(n * 10 * S, {P[0]: value}) for n, value in enumerate(values)]
    runs = [run for run in encode(scrapes, 60 * S, memory_us=15 * S).runs if run.value]
    assert spans(runs) == [(10, 20, 400.0), (20, 40, 500.0)]
    assert [run.tail // S for run in runs] == [5, 20], "10 s edge and 15 s memory"
    assert sum(run.lead for run in runs) == 10 * S


def test_refreshed_bean_makes_change_uncertain() -> None:
    """The MBean is refreshed at 0, 30 and 60 s, so its value can be 30 s old."""
    shown = {40: 7.0, 50: 7.0, 60: 7.0}
    scrapes = [ok(T0 + at * S, {P[0]: shown.get(at, 0.0)}) for at in range(0, 100, 10)]
    runs = encode(scrapes, T0 + 100 * S, refresh_us=30 * S).runs
    lag = [((run.start - T0) // S, (run.end - T0) // S) for run in runs if run.value]
    edges = [(run.lead // S, run.tail // S) for run in runs if run.value]
    assert lag == [(40, 60), (60, 70)], "in two windows"
    assert edges == [(40, 20), (0, 10)], "it may have begun at 0, and may have been over at 40"


def test_announced_wait_beyond_bean_memory_is_uncertain() -> None:
    """A response at 5 s is delayed for 190 s. The MBean shows it for a minute, until 65 s."""
    wait = dict.fromkeys(range(10, 70, 10), 190000.0)
    scrapes = [ok(T0 + at * S, {P[0]: wait.get(at)}) for at in range(0, 260, 10)]
    sealed = encode(scrapes, T0 + 260 * S, memory_us=60 * S)
    ours = [run for run in sealed.runs if run.series == P[0]]
    assert sum(run.end - run.start for run in ours) == 260 * S, "each instant is in one run"
    waits = [run for run in ours if run.value]
    assert (waits[0].start - T0) // S == 10
    assert (waits[-1].end - T0) // S == 200, "190 s after it was seen"
    assert sum(run.end - run.start - run.tail for run in waits) == 0, "it may have been shorter"


def test_announced_wait_survives_outage_until_next_wait() -> None:
    scrapes = [
        ok(T0, {P[0]: None}),
        ok(T0 + 10 * S, {P[0]: 190_000.0}),
        failed(T0 + 20 * S),
        ok(T0 + 130 * S, {P[0]: None}),
        ok(T0 + 140 * S, {P[0]: 100.0}),
        ok(T0 + 150 * S, {P[0]: None}),
        ok(T0 + 200 * S - 1, {P[0]: None}),
        ok(T0 + 210 * S, {P[0]: None}),
    ]
    runs = [run for run in encode(scrapes, T0 + 220 * S, memory_us=60 * S).runs if run.value]
    shown = [((run.start - T0) // S, (run.end - T0) // S, run.value) for run in runs]
    assert shown == [
        (10, 20, 190_000.0),
        (130, 140, 190_000.0), (140, 150, 100.0), (150, 175, 190_000.0), (199, 210, 190_000.0),
    ]  # fmt: skip


def test_counter_increase_is_in_window_of_later_scrape() -> None:
    counts = {40: 100.0, 50: 103.0, 60: 110.0, 70: 110.0}
    scrapes = [ok(at * S, {P[0]: count}, kind="counter") for at, count in counts.items()]
    runs = encode(scrapes, 80 * S).runs
    assert spans(runs) == [(40, 60, 3.0), (60, 80, 7.0)]
    assert all(run.flags == (FLAG_INCREASE,) for run in runs)


def test_new_counter_on_observed_broker_starts_at_zero() -> None:
    again = Identity("cluster", "1", "4.3.1", 5)
    scrapes = [
        ok(0, {P[0]: 100.0}, kind="counter"),
        ok(10 * S, {P[0]: 100.0, P[1]: 7.0}, kind="counter"),
        failed(20 * S),
        ok(30 * S, {P[0]: 4.0, P[1]: 9.0}, kind="counter", identity=again),
    ]
    sealed = encode(scrapes, 40 * S)
    rows = [(run.series.partition, run.value, run.flags) for run in sealed.runs if run.value]
    assert rows == [
        (0, 4.0, (FLAG_INCREASE, FLAG_GAP)),
        (1, 7.0, (FLAG_INCREASE,)),
        (1, 9.0, (FLAG_INCREASE, FLAG_GAP)),
    ]
    assert [event.kind for event in sealed.events] == ["source_restart"]


def test_failed_scrape_on_old_connection_is_no_restart() -> None:
    """Each connection has its identity. A slow family's connection fails at its next use."""
    again = Identity("cluster", "1", "4.3.1", 5)
    scrapes = [ok(0, {P[0]: 0.0}), ok(10 * S, {P[0]: 0.0}, identity=again)]
    scrapes += [dataclasses.replace(failed(11 * S), family="slow", identity=BROKER)]
    scrapes += [ok(20 * S, {P[0]: 0.0}, identity=again)]
    events = encode(scrapes, 30 * S).events
    assert [(event.kind, event.old, event.new) for event in events] == [
        ("source_restart", "1", "5")
    ]


def test_returning_counter_starts_at_zero() -> None:
    scrapes = [
        ok(0, {P[0]: 100.0}, kind="counter"),
        ok(10 * S, {}, kind="counter"),
        ok(20 * S, {P[0]: 150.0}, kind="counter"),
    ]
    assert sum(run.value or 0 for run in encode(scrapes, 30 * S).runs) == 150


in_time = st.lists(  # no attempt takes so long that its time is up
    st.builds(
        Attempt,
        st.integers(0, 5 * S),
        st.integers(1, 9 * S),
        st.one_of(
            st.none(),
            st.just({P[0]: 1.0}),
            st.dictionaries(st.sampled_from(P[:2]), st.sampled_from([0.0, 1.0, 9_000.0])),
        ),
    ),
    min_size=10,
    max_size=40,
)


@settings(deadline=None, max_examples=150)
@given(
    in_time,
    st.sampled_from(["gauge", "counter"]),
    st.sampled_from([0, 7 * S, 60 * S]),
    st.sampled_from([0, 30 * S]),
)
def test_early_seal_equals_seal_at_end(
    plan: list[Attempt], kind: str, memory: int, refresh: int
) -> None:
    """A window that was closed when it was settled stays correct."""
    scrapes = [
        failed(one.asked_us, one.answered_us - one.asked_us)
        if one.answer is None
        else dataclasses.replace(one, answer=_of_kind(one.answer, kind))
        for one in played(plan)
    ]
    until, delays = scrapes[-1].answered_us + 1, {METRIC: Delays(memory, refresh)}
    early, late = Encoder(WINDOW, dict(delays)), Encoder(WINDOW, dict(delays))
    sealed = []
    for scrape, after in zip(scrapes, [*scrapes[1:], None], strict=True):
        early.record(scrape)
        late.record(scrape)
        sealed.append(early.seal(scrape.answered_us))
        if after is not None:  # it is under way
            sealed.append(early.seal(after.answered_us - 1))
    sealed.append(early.flush(until))
    together = SealedRows(*([row for one in sealed for row in one[at]] for at in range(3)))
    assert _by_series(together) == _by_series(late.flush(until))


def _of_kind(answer: Answer, kind: str) -> Answer:
    (reading,) = answer.readings
    return dataclasses.replace(answer, readings=(dataclasses.replace(reading, kind=kind),))  # type: ignore[arg-type]


def _by_series(sealed: SealedRows) -> Any:
    """Runs of each series without what only folding makes, and the accounts in order."""
    runs = {
        series: [one._replace(series=series, members=None, stands_for=1) for one in own]
        for series, own in unfold(sealed.runs).items()
    }
    return runs, sorted(map(msgspec.structs.astuple, sealed.accounts), key=repr)


@pytest.mark.parametrize(
    ("value", "delays", "seconds"),
    [
        (0.0, Delays(), 0),
        (1.0, Delays(), 0),
        (0.0, Delays(60 * S), 0),
        (1.0, Delays(60 * S), 60),
        (0.0, Delays(0, 30 * S), 30),
    ],
)
def test_window_is_sealed_after_scrape_of_all_families(
    value: float, delays: Delays, seconds: int
) -> None:
    """The delay of a minute applies only to positive values."""
    encoder = Encoder(WINDOW, {METRIC: delays})
    for second in range(0, 200, 10):
        encoder.record(ok(T0 + second * S, {P[0]: value}, 1))
        at = second - 60
        if at >= 0:
            sealed = encoder.sealable_us(T0 + second * S + 1)
            assert (sealed >= T0 + 60 * S) == (at >= seconds), at


def test_unread_family_delays_window_by_its_gap() -> None:
    encoder = Encoder(WINDOW)
    encoder.record(dataclasses.replace(ok(T0 + 50 * S, {P[0]: 0.0}), family="slow"))
    encoder.record(ok(T0 + 60 * S, {P[0]: 0.0}))
    assert encoder.sealable_us(T0 + 84 * S) == T0
    assert encoder.sealable_us(T0 + 85 * S) == T0 + 60 * S
    for second in range(90, 190, 10):
        encoder.seal(T0 + second * S)
        encoder.record(ok(T0 + second * S, {P[0]: 0.0}))
    assert encoder.sealable_us(T0 + 180 * S) == T0 + 180 * S, "it is no longer read"


def hung(window: int = WINDOW, **late: int) -> tuple[Encoder, list[SealedRows]]:
    """Return an encoder with a source that hangs before the end of a closed window."""
    encoder = Encoder(window, {METRIC: Delays(**late)})
    encoder.record(ok(T0 + 30 * S, {P[0]: 1.0}, S))
    encoder.record(ok(T0 + 40 * S, {P[0]: 1.0}, S))
    waits = sum(late.values())
    assert encoder.sealable_us(T0 + 84 * S + waits) == T0
    return encoder, [encoder.seal(T0 + 85 * S + waits)]


def test_window_of_hung_source_ends_at_last_scrape() -> None:
    encoder, (sealed,) = hung()
    (run,) = sealed.runs
    assert (run.end, run.tail) == (T0 + 41 * S + 1, S + 1), "41 s: the last answer"
    assert [(one.outcome, one.end) for one in sealed.accounts] == [("ok", T0 + 41 * S + 1)]
    encoder.record(failed(T0 + 45 * S, 50 * S))
    rest = encoder.flush(T0 + 100 * S)
    assert rest.runs == []
    assert [one.outcome for one in rest.accounts] == ["refused"]


def test_answering_hung_source_restarts_coverage() -> None:
    encoder, _ = hung()
    encoder.record(ok(T0 + 45 * S, {P[0]: 1.0}, 50 * S))
    (run,) = encoder.flush(T0 + 100 * S).runs
    assert (run.start, run.lead) == (T0 + 95 * S, 0), "between both nothing is known"


def test_last_value_of_hung_source_has_bean_age() -> None:
    _, (sealed,) = hung(refresh_us=7 * S)
    assert [one.tail for one in sealed.runs] == [8 * S + 1]
    _, (sealed,) = hung(memory_us=60 * S)
    assert [(one.tail, one.end - one.start) for one in sealed.runs] == [(10 * S + 1,) * 2]


def test_hung_family_keeps_coverage_of_other_family() -> None:
    encoder = Encoder(WINDOW)
    encoder.record(dataclasses.replace(ok(T0 + 50 * S, {P[0]: 0.0}), family="slow"))
    for second in range(50, 90, 10):
        encoder.record(ok(T0 + second * S, {P[0]: 0.0}))
    ends = {one.family: one.end for one in encoder.seal(T0 + 86 * S).accounts}
    assert ends == {"slow": T0 + 50 * S + 1, "f": T0 + 60 * S}


hangs = st.lists(
    st.builds(
        Attempt,
        st.sampled_from([0, 0, 5 * S]),
        st.sampled_from([1, S, 9 * S, 31 * S, 70 * S, 200 * S]),
        st.sampled_from([None, {P[0]: 0.0}, {P[0]: 1.0}]),
    ),
    min_size=5,
    max_size=20,
)


@settings(deadline=None, max_examples=150)
@given(hangs, st.sampled_from([0, 60 * S]), st.sampled_from([0, 30 * S]))
def test_late_response_contradicts_no_closed_window(
    plan: list[Attempt], memory: int, refresh: int
) -> None:
    """Closing windows early gives the same rows as closing them at the end."""
    scrapes, delays = played(plan), {METRIC: Delays(memory, refresh)}
    until = scrapes[-1].answered_us + 1
    early, late = Encoder(WINDOW, dict(delays)), Encoder(WINDOW, dict(delays))
    sealed, now_us = list[SealedRows](), scrapes[0].asked_us
    for scrape in scrapes:
        sealed += [early.seal(at) for at in range(now_us, scrape.answered_us, 5 * S)]
        early.record(scrape)
        late.record(scrape)
        now_us = scrape.answered_us
    sealed.append(early.flush(until))
    together = SealedRows(*([row for one in sealed for row in one[at]] for at in range(3)))
    whole = late.flush(until)
    for value in (0.0, 1.0):
        assert within(certain(together, value), certain(whole, value))
    assert within(observed(together), observed(whole))


def certain(sealed: SealedRows, value: float) -> list[tuple[int, int]]:
    """Spans that runs claim for sure."""
    runs = sorted((one for one in sealed.runs if one.value == value), key=lambda one: one.start)
    return [(one.start, one.end - one.tail) for one in runs if one.end - one.tail > one.start]


def observed(sealed: SealedRows) -> list[tuple[int, int]]:
    return sorted((one.start, one.end) for one in sealed.accounts if one.outcome == "ok")


def within(parts: list[tuple[int, int]], whole: list[tuple[int, int]]) -> bool:
    """Return True if each part is in the union of the intervals."""
    joined: list[tuple[int, int]] = []
    for start, end in whole:
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return all(any(a <= start and end <= b for a, b in joined) for start, end in parts)


def test_outage_across_window_is_down_on_both_sides() -> None:
    closed = dataclasses.replace(failed(0), error=NOTHING_LISTENS)
    encoder, rows = Encoder(WINDOW), []
    for second in range(0, 100, 10):
        at, down = T0 + second * S, 50 <= second < 70
        back = Identity("cluster", "1", "4.3.1", T0 + 69 * S) if second >= 70 else BROKER
        encoder.record(
            dataclasses.replace(closed, asked_us=at, tick_us=at, answered_us=at)
            if down
            else ok(at, {P[0]: 0.0}, identity=back)
        )
        rows += encoder.seal(at + 1).accounts
    rows += encoder.flush(T0 + 100 * S).accounts
    outage = [(one.start - T0, one.end - T0) for one in rows if one.outcome == "down"]
    assert sorted(outage) == [(50 * S, 60 * S), (60 * S, 69 * S)]


def test_clock_steps_record_no_time_twice() -> None:
    """Steps: 100 s back, and an hour forward and back again."""
    encoder = Encoder(WINDOW)
    told = [SealedRows([], [], [])]

    def live(start: int, end: int) -> None:
        for tick in range(start, end, 10):
            scrape = ok(T0 + tick * S, {P[0]: 0.0})
            if encoder.accepts(scrape):
                encoder.record(scrape)
            told.append(encoder.seal(T0 + tick * S))

    live(0, 200)
    told.append(encoder.step_clock(T0 + 200 * S, T0 + 100 * S))
    live(100, 300)
    told.append(encoder.step_clock(T0 + 300 * S, T0 + 3900 * S))
    live(3900, 4000)
    told.append(encoder.step_clock(T0 + 4000 * S, T0 + 400 * S))
    live(400, 500)
    told.append(encoder.flush(T0 + 500 * S))
    runs = sorted((run for sealed in told for run in sealed.runs), key=lambda run: run.start)
    assert all(run.end <= after.start for run, after in pairwise(runs))
    assert sum(run.end - run.start for run in runs) == (300 + 100 + 100) * S
    assert sum(len(sealed.events) for sealed in told) == 3


def test_clock_set_back_covers_no_recorded_time() -> None:
    """The last scrape before that time is 5 s from it, and the next one well behind."""
    encoder = Encoder(WINDOW)
    told = [encoder.seal(0)]
    for tick in range(0, 40, 10):
        encoder.record(ok(T0 + tick * S, {P[0]: 0.0}))
    told.append(encoder.step_clock(T0 + 35 * S, T0 - 20 * S))
    for tick in (-15, -5, 50):
        assert encoder.accepts(ok(T0 + tick * S, {P[0]: 1.0}))
        encoder.record(ok(T0 + tick * S, {P[0]: 1.0}))
    told.append(encoder.flush(T0 + 55 * S))
    runs = sorted((run for sealed in told for run in sealed.runs), key=lambda run: run.start)
    found = [((run.start - T0) // S, (run.end - T0) // S, run.value) for run in runs]
    assert found == [(-15, 0, 1.0), (0, 35, 0.0), (50, 55, 1.0)]


def test_scrape_during_clock_step_is_not_accepted() -> None:
    """Its response came after the clock step and before its detection."""
    encoder = Encoder(WINDOW)
    encoder.record(ok(T0, {P[0]: 0.0}))
    encoder.step_clock(T0 + 10 * S, T0 + 100 * S)
    assert not encoder.accepts(ok(T0 + 100 * S - 20, {P[0]: 0.0}, 10))
    assert encoder.accepts(ok(T0 + 100 * S, {P[0]: 0.0}))


def test_scrape_out_of_order_is_not_accepted() -> None:
    encoder = Encoder(WINDOW)
    encoder.record(ok(T0 + 50 * S, {P[0]: 0.0}))
    assert not encoder.accepts(ok(T0 + 40 * S, {P[0]: 0.0}))
    assert encoder.accepts(ok(T0 + 60 * S, {P[0]: 0.0}))


@given(st.lists(st.integers(0, 6), min_size=10, max_size=60), st.integers(0, 9))
@settings(max_examples=100)
def test_bean_memory_keeps_lower_bound_true(states: list[int], phase: int) -> None:
    """The MBean shows throttling for 60 s after its end. Windows have the same length.

    Pauses shorter than that look like throttling, so the test has none.
    """
    memory = 60
    throttled = [state < 3 for state in states for _ in range(35 if state < 3 else 105)]

    def shown(second: int) -> float | None:
        recent = throttled[max(0, second - memory) : second + 1]
        return 7.0 if any(recent) else None

    seconds = range(phase, len(throttled), 10)
    scrapes = [ok(T0 + second * S, {P[0]: shown(second)}) for second in seconds]
    runs = encode(scrapes, scrapes[-1].answered_us + 1, memory_us=memory * S).runs
    low = sum(run.end - run.start - run.tail for run in runs if run.value)
    assert low <= sum(throttled) * S
