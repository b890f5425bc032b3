"""Exact history: its runs equal the history, whatever happens to the agent."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from collector.agent import plan
from collector.config import loader
from collector.encoding.bronze_rows import SealedRows
from collector.encoding.encoder import Encoder
from collector.encoding.family import HOLD_US
from collector.model import Answer, Identity, Moment, Notice, Reading, Scrape, Series, expand
from collector.spool import source_states
from collector.spool.recorder import Recorder
from collector.spool.source_states import Scope
from collector.spool.spool import Spool
from lakehouse import tables

if TYPE_CHECKING:
    from pathlib import Path

    from collector.encoding.bronze_rows import Run

pytestmark = pytest.mark.slow

S = 1_000_000
WINDOW = 60 * S
INTERVAL = 10 * S
T0 = 1_700_000_040 * S
BROKER = Identity("cluster", "1", None, 0)
METRIC = "kafka.partition.under_min_isr"
P = [Series(METRIC, "t", number) for number in range(4)]
Values = dict[Series, float]


def reading(values: Values) -> Reading:
    zeros = frozenset(series for series, value in values.items() if value == 0)
    rest: dict[Series, float | None] = {s: value for s, value in values.items() if value}
    return Reading(METRIC, "gauge", zeros, rest, exact=True)


def told(at_us: int, values: Values | None, tick_us: int | None = None) -> Scrape:
    tick = at_us if tick_us is None else tick_us
    if values is None:
        return Scrape("f", tick, at_us, at_us, INTERVAL, "error", BROKER, error="gap", exact=True)
    answer = Answer((reading(values),), len(values))
    return Scrape("f", tick, at_us, at_us, INTERVAL, "ok", BROKER, answer, exact=True)


def failed(at_us: int) -> Scrape:
    return Scrape("f", at_us, at_us, at_us + S, INTERVAL, "refused", error="no permission")


def spans(sealed: list[SealedRows]) -> dict[Series, list[tuple[int, int, float]]]:
    """Every series' runs, joined where a cut or a restart parted them."""
    runs: dict[Series, list[Run]] = {}
    for one in sorted((run for some in sealed for run in some.runs), key=lambda run: run.start):
        partitions = one.members.partitions if one.members else None
        for number in partitions or (one.series.partition,):
            runs.setdefault(one.series._replace(partition=number), []).append(one)
    joined: dict[Series, list[tuple[int, int, float]]] = {}
    for series, own in runs.items():
        for run in own:
            assert (run.lead, run.tail) == (0, 0), "an exact change has no edge"
            assert run.start < run.end
            assert run.start // WINDOW == (run.end - 1) // WINDOW, "a run crosses a window"
            assert run.value is not None
            kept = joined.setdefault(series, [])
            assert not kept or kept[-1][1] <= run.start, "a time is told twice"
            if kept and kept[-1][1] == run.start and kept[-1][2] == run.value:
                kept[-1] = (kept[-1][0], run.end, run.value)
            else:
                kept.append((run.start, run.end, run.value))
    return joined


def truth(history: list[tuple[int, Values | None]]) -> dict[Series, list[tuple[int, int, float]]]:
    found: dict[Series, list[tuple[int, int, float]]] = {}
    for series in P:
        pieces = [
            (start, end, values[series])
            for (start, values), (end, _) in pairwise(history)
            if values is not None and series in values and start < end
        ]
        joined: list[tuple[int, int, float]] = []
        for start, end, value in pieces:
            if joined and joined[-1][1] == start and joined[-1][2] == value:
                joined[-1] = (joined[-1][0], end, value)
            else:
                joined.append((start, end, value))
        if joined:
            found[series] = joined
    return found


Happening = Literal["nothing", "failure", "stop", "kill", "clock back", "clock on", "seal"]


class Step(NamedTuple):
    gap_us: int  # since the moment before
    values: Values | None  # None: from here on it is not known
    then: Happening


steps = st.lists(
    st.builds(
        Step,
        st.one_of(st.integers(0, 5 * S), st.integers(0, 400 * S)),
        st.one_of(
            st.dictionaries(st.sampled_from(P), st.sampled_from([0.0, 0.0, 1.0])),
            st.dictionaries(st.sampled_from(P), st.sampled_from([0.0, 1.0])),
            st.none(),
        ),
        st.sampled_from(
            ["nothing", "nothing", "failure", "stop", "kill", "clock back", "clock on", "seal"]
        ),
    ),
    min_size=2,
    max_size=30,
)


@given(steps)
@settings(max_examples=400)
def test_exact_runs_equal_history_after_any_fault(plan: list[Step]) -> None:
    encoder, sealed = Encoder(WINDOW), list[SealedRows]()
    state, entries = msgspec.msgpack.encode(encoder), list[bytes]()
    history: list[tuple[int, Values | None]] = []
    at_us, own_us = T0, T0

    def record(scrape: Scrape) -> None:
        assert encoder.accepts(scrape)
        entries.append(source_states.entry_of(scrape, encoder))
        encoder.record(scrape)

    for step in plan:
        at_us, own_us = at_us + step.gap_us, own_us + step.gap_us
        history.append((at_us, step.values))
        record(told(at_us, step.values, own_us))
        if step.then == "kill":
            encoders, unreadable = source_states.replay(state, entries, WINDOW)
            assert unreadable is None
            encoder = encoders[""]
            continue
        if step.then == "failure":
            record(failed(own_us + 5 * S))
            continue
        if step.then == "stop":
            sealed.append(encoder.flush(own_us + 3 * S))
            record(told(at_us, step.values, own_us))  # so a source goes on after a start
        elif step.then.startswith("clock"):
            to_us = own_us + (3600 * S if step.then == "clock on" else -3600 * S)
            sealed.append(encoder.step_clock(own_us, to_us))
            own_us = to_us
        elif step.then == "seal":
            sealed.append(encoder.seal(own_us + 30 * S))
        state, entries = msgspec.msgpack.encode(encoder), []
    sealed.append(encoder.flush(own_us + S))
    assert spans(sealed) == truth(history)


@given(steps)
@settings(max_examples=100)
def test_scrape_log_is_ok_for_known_time_only(plan: list[Step]) -> None:
    encoder, at_us, known_us = Encoder(WINDOW), T0, 0
    for number, step in enumerate(plan):
        encoder.record(told(at_us, step.values))
        if number + 1 < len(plan):
            known_us += plan[number + 1].gap_us if step.values is not None else 0
            at_us += plan[number + 1].gap_us
    accounts = encoder.flush(at_us + 99 * S).accounts
    assert sum(one.end - one.start for one in accounts if one.outcome == "ok") == known_us
    assert all(one.end <= at_us for one in accounts)


def test_time_after_last_moment_is_unknown() -> None:
    encoder = Encoder(WINDOW)
    encoder.record(told(T0, {P[0]: 1.0}))
    encoder.record(told(T0 + 7 * S, {P[0]: 1.0}))
    assert spans([encoder.flush(T0 + 60 * S)]) == {P[0]: [(T0, T0 + 7 * S, 1.0)]}


def test_silent_log_keeps_only_its_own_windows_open() -> None:
    """A broker was down for half an hour. Its log then has the missing history."""
    encoder = Encoder(WINDOW)
    other = Series("other")

    def scraped(at_us: int) -> Scrape:
        answer = Answer((Reading("other", "gauge", frozenset({other})),), 1)
        return Scrape("g", at_us, at_us, at_us, INTERVAL, "ok", BROKER, answer)

    encoder.record(told(T0, {P[0]: 0.0}))
    sealed = []
    for at_us in range(T0, T0 + 1800 * S, INTERVAL):
        encoder.record(scraped(at_us))
        encoder.record(failed(at_us))
        if encoder.has_sealable(at_us):
            sealed.append(encoder.seal(at_us))
    assert max(run.end for some in sealed for run in some.runs) > T0 + 1700 * S
    assert {run.series.metric for some in sealed for run in some.runs} == {"other"}
    encoder.record(told(T0 + 900 * S, {P[0]: 1.0}, T0 + 1800 * S))
    encoder.record(told(T0 + 1800 * S, {P[0]: 0.0}, T0 + 1800 * S))
    assert encoder.has_sealable(T0 + 1801 * S)
    late = encoder.flush(T0 + 1801 * S)
    late.runs[:] = [run for run in late.runs if run.series.metric == METRIC]
    assert spans([late])[P[0]] == [(T0, T0 + 900 * S, 0.0), (T0 + 900 * S, T0 + 1800 * S, 1.0)]


def test_silent_hour_seals_and_logs_failure() -> None:
    encoder = Encoder(WINDOW)
    encoder.record(told(T0, {P[0]: 0.0}))
    encoder.record(told(T0 + 30 * S, {P[0]: 0.0}))
    encoder.record(failed(T0 + 40 * S))
    before = encoder.seal(T0 + HOLD_US)
    given_up = encoder.seal(T0 + HOLD_US + 300 * S)
    assert not before.runs
    assert spans([given_up]) == {P[0]: [(T0, T0 + 30 * S, 0.0)]}
    assert {(one.outcome, one.error) for one in given_up.accounts} == {
        ("ok", None), ("refused", "no permission"),
    }  # fmt: skip
    assert max(one.end for one in given_up.accounts) > T0 + HOLD_US
    assert not encoder.accepts(told(T0 + 60 * S, {P[0]: 1.0})), "that time is final"
    resumed = encoder.recorded_until_us("f")
    encoder.record(told(resumed, {P[0]: 1.0}))
    encoder.record(told(resumed + S, {P[0]: 1.0}))
    assert spans([encoder.flush(resumed + S)]) == {P[0]: [(resumed, resumed + S, 1.0)]}


def test_days_of_history_are_sealed_in_parts() -> None:
    encoder = Encoder(WINDOW)
    encoder.record(told(T0, {P[0]: 0.0}))
    answer = Answer(
        (reading({P[0]: 0.0}),), 1, moments=(
            Moment(T0, (reading({P[0]: 0.0}),)),
            Moment(T0 + 3 * 86_400 * S, (reading({P[0]: 0.0}),)),
        ),
    )  # fmt: skip
    sealed, most = [], 0
    for scrape in expand(Scrape("f", T0, T0, T0, INTERVAL, "ok", BROKER, answer)):
        closed = encoder.before(scrape)
        if closed is not None:
            sealed.append(closed)
        encoder.record(scrape)
        most = max(most, len(encoder.families["f"].exact_pieces.pieces))
    assert most < 100, "of 4,320 windows"
    sealed.append(encoder.flush(T0 + 3 * 86_400 * S))
    assert spans(sealed) == {P[0]: [(T0, T0 + 3 * 86_400 * S, 0.0)]}


def test_new_family_continues_at_end_of_others() -> None:
    encoder = Encoder(WINDOW)
    assert encoder.recorded_until_us("f") == 0
    ordinary = Answer((Reading("other", "gauge"),), 0)
    encoder.record(Scrape("g", T0, T0, T0, INTERVAL, "ok", BROKER, ordinary))
    assert encoder.recorded_until_us("f") == T0


def test_scrape_becomes_moments_with_counts_in_last() -> None:
    notice = Notice("metadata_log_truncated", Series(""), "7@1", "end")
    moments = (
        Moment(T0, None),
        Moment(T0 + S, (reading({P[0]: 0.0}),)),
        Moment(T0 + 2 * S, (reading({P[0]: 1.0}),)),
    )
    now = reading({P[0]: 1.0})
    answer = Answer((now,), 7, 3, notices=(notice,), moments=moments)
    attempt = Scrape("f", T0 + 9 * S, T0 + 9 * S, T0 + 10 * S, INTERVAL, "ok", BROKER, answer)
    gap, first, last = expand(attempt)
    assert (gap.outcome, gap.asked_us, gap.answer) == ("error", T0, None)
    assert first.answer is not None
    assert (first.asked_us, first.answered_us, first.answer.beans) == (T0 + S, T0 + S, 0)
    assert last.answer is not None
    assert (last.answer.beans, last.answer.dropped_series) == (7, 3)
    assert last.answer.notices == (notice,)
    assert all(scrape.exact and scrape.tick_us == T0 + 9 * S for scrape in (gap, first, last))


@pytest.mark.parametrize("exact", [True, False])
def test_history_without_moments_records_nothing(*, exact: bool) -> None:
    told_now = Answer((Reading(METRIC, "gauge", exact=exact),), 0)
    attempt = Scrape("f", T0, T0, T0, INTERVAL, "ok", BROKER, told_now)
    assert list(expand(attempt)) == ([] if exact else [attempt])


def test_journal_entry_has_only_changes() -> None:
    encoder = Encoder(WINDOW)
    many: Values = {Series(METRIC, "t", number): 0.0 for number in range(2_000)}
    first = told(T0, many)
    whole = len(source_states.entry_of(first, encoder))
    encoder.record(first)
    entry = source_states.entry_of(told(T0 + S, {**many, P[0]: 1.0}), encoder)
    assert len(entry) < whole / 100
    decoded = source_states.scrape_of(
        msgspec.msgpack.decode(entry, type=source_states.Entry), encoder
    )
    assert decoded.answer is not None
    assert decoded.answer.readings == (reading({**many, P[0]: 1.0}),)


def bronze(spool: Spool) -> list[tuple[int, int, float]]:
    """Return the intervals and values of P[0] in all undelivered batches."""
    rows = []
    for number in range(1, spool.last_number + 1):
        (sealed,) = spool.waiting(0)
        assert sealed.number == number
        rows += [row for row in sealed.batch.rows["runs"] if row[3] == METRIC]
        spool.acknowledge(number)
    columns = [column.name for column in tables.RUNS.columns]
    start, end, value = (columns.index(name) for name in ("start", "end", "value"))
    found = [(row[start], row[end], row[value]) for row in sorted(rows, key=lambda r: r[start])]
    joined: list[tuple[int, int, float]] = []
    for one in found:
        if joined and joined[-1][1:] == (one[0], one[2]):
            joined[-1] = (joined[-1][0], one[1], one[2])
        else:
            joined.append(one)
    return joined


@pytest.mark.parametrize("stopped", ["in order", "by a kill"])
def test_agent_down_for_hours_records_missed_history(tmp_path: Path, stopped: str) -> None:
    """Its keeper may seal before the broker, which starts with it, has fetched the log."""
    away = 5 * 3600 * S

    def recorder(spool: Spool) -> Recorder:
        return Recorder(spool, Scope({"broker-1": "cluster"}, {}, "hash"), WINDOW)

    with Spool(tmp_path / "spool.db", 1 << 30) as spool:
        before = recorder(spool)
        before.begin(T0)
        before.record(told(T0, {P[0]: 0.0}))
        before.record(told(T0 + 5 * S, {P[0]: 1.0}))
        before.record(told(T0 + 7 * S, {P[0]: 1.0}))
        if stopped == "in order":
            before.flush(T0 + 12 * S)
    with Spool(tmp_path / "spool.db", 1 << 30) as spool:
        after = recorder(spool)
        after.begin(T0 + away)
        after.seal(T0 + away)
        after.record(failed(T0 + away))
        after.seal(T0 + away + 600 * S)
        assert after.recorded_until_us("f") == T0 + 7 * S
        for at_us, value in ((7 * S, 1.0), (3600 * S, 0.0), (away + 600 * S, 0.0)):
            after.record(told(T0 + at_us, {P[0]: value}, T0 + away + 600 * S))
        after.flush(T0 + away + 600 * S)
        assert bronze(spool) == [
            (T0, T0 + 5 * S, 0.0),
            (T0 + 5 * S, T0 + 3600 * S, 1.0),
            (T0 + 3600 * S, T0 + away + 600 * S, 0.0),
        ]


@pytest.mark.parametrize("role", ["broker", "combined"])  # the broker of both is read as one
@pytest.mark.parametrize(
    ("settings_", "name"),
    [({}, "under_min_isr"), ({"metadata_log": {"enabled": False}}, "under_min_isr.log")],
)
def test_log_metrics_have_final_names_only_if_read(
    settings_: dict[str, object], name: str, role: str
) -> None:
    parsed = loader.parse(
        {
            "source": {"role": role, "node": 1, "jmx": {"port": 9999}},
            "lake": {"path": "/lake"},
            "spool": {"path": "/spool/spool.db"},
            "metadata_log": {"folder": "/data", "libs": "/libs"},
            "families": settings_,
        },
        "agent.yaml",
    )
    names = [metric.name for metric in plan.catalogue(parsed).family("metadata_log").metrics]
    assert names[0] == f"kafka.partition.{name}"
