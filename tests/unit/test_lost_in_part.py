"""An answer of the Admin API in part delays a loss before it was read, and never drops it."""

from __future__ import annotations

import datetime as dt
import shutil
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

import deltalake
import duckdb
import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from collector import catalogue
from collector.delivery.delivery import Delivery
from collector.encoding.encoder import Encoder
from collector.encoding.expired_offsets import HIGH, LOW, Loss, NonConsumed
from collector.model import Answer, Commit, Identity, Offsets, Partition, Scrape, Series
from collector.spool.recorder import Recorder
from collector.spool.source_states import Scope
from collector.spool.spool import Spool
from lakehouse import tables
from lakehouse.core import lake as lakes
from lakehouse.core.periods import Period
from lakehouse.engines.gold_reader import subjects
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.sections import consumer_groups
from lakehouse.rollup.plan import Wanted
from lakehouse.rollup.run import rollup
from lakehouse.slo.openslo import objective_files
from tests import rollups

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from collector.encoding.bronze_rows import Run
    from lakehouse.report.facts.sections.consumer_groups import LostOffsets

S = 1_000_000
WINDOW = 30 * S
T0 = 1_795_886_850 * S  # a window's start
BROKER = Identity("c", "broker-1", "4.3.1", 1)
G, OTHER_GROUP = Commit("slow", "t", 0), Commit("fast", "t", 0)
P = Partition("t", 0)

Kind = Literal["whole", "silent", "unlisted", "startless", "moved", "failed"]


class Step(NamedTuple):
    """An answer: the log start, the group's commit, and the part of it that came."""

    kind: Kind
    start: int
    commit: int = 377


def offsets(step: Step) -> Offsets:
    """The other group always answers, as a failed answer of all groups is a failed attempt."""
    both: dict[Commit, int | None] = {OTHER_GROUP: 1 << 40}
    both |= {G: step.commit} if step.kind not in ("silent", "unlisted") else {}
    no_start = step.kind == "startless"
    return Offsets(
        both,
        {} if no_start else {P: step.start},
        both,
        frozenset({P} if step.kind == "moved" else ()),
        unanswered=frozenset({P} if no_start else ()),
        silent_groups=frozenset({G.group} if step.kind == "silent" else ()),
    )


def scrape(number: int, step: Step) -> Scrape:
    at = T0 + number * 5 * S
    one = Scrape("offsets", at, at, at + S, 5 * S, "ok", BROKER)
    if step.kind == "failed":
        return replace(one, outcome="timeout", identity=None, error="no answer in time")
    return replace(one, answer=Answer((), 1, offsets=offsets(step)))


def played(steps: Iterable[Step], *, restart_before: int | None = None) -> list[Run]:
    """The runs of group ``slow``, through an encoder that is sealed after each answer."""
    encoder, now_us = Encoder(WINDOW), T0
    runs: list[Run] = []
    for number, step in enumerate(steps):
        if number == restart_before:
            encoder = msgspec.msgpack.decode(msgspec.msgpack.encode(encoder), type=Encoder)
            encoder.break_off()
        one = scrape(number, step)
        assert encoder.accepts(one)
        encoder.record(one)
        now_us = one.answered_us
        runs += encoder.seal(now_us).runs
    runs += encoder.flush(now_us + S).runs
    return sorted((one for one in runs if one.series.group == G.group), key=lambda one: one.start)


def total(runs: Iterable[Run], metric: str) -> float:
    return sum(one.value or 0 for one in runs if one.series.metric == metric)


def unknown_us(runs: Iterable[Run]) -> int:
    """Return the time between the first and the last response in which the loss is unknown."""
    of_high = [one for one in runs if one.series.metric == HIGH]
    known = sum(one.end - one.start for one in of_high if one.value is not None)
    return max(one.end for one in of_high) - min(one.start for one in of_high) - known


def whole(*starts: int) -> list[Step]:
    return [Step("whole", start) for start in starts]


CASE = [*whole(300, 1021), Step("failed", 0), Step("silent", 1500), *whole(1765, 2939, 3219)]
"""What broker 1 answered of clicks-0 in tests/lakes/lost_in_part: 2,842 were lost."""


@pytest.mark.edge(1)
@pytest.mark.parametrize(
    ("steps", "bounds"),
    [
        pytest.param(CASE, (2098, 2842), id="timeout-then-silent-group"),
        pytest.param([*whole(377), Step("silent", 500), *whole(600)], (223, 223), id="silent"),
        pytest.param(
            [*whole(377), *[Step("silent", 500)] * 5, *whole(600)], (223, 223), id="silent-long"
        ),
        pytest.param([*whole(377), Step("startless", 0), *whole(600)], (223, 223), id="startless"),
        pytest.param([*whole(377), Step("unlisted", 500), *whole(600)], (223, 223), id="unlisted"),
        pytest.param(
            [*whole(377), Step("silent", 500), Step("startless", 0), *whole(600)], (223, 223),
            id="one-after-the-other",
        ),
        pytest.param(
            [*whole(377), Step("moved", 400), Step("silent", 500), Step("moved", 600)], (0, 223),
            id="silent-after-the-leader-moved",
        ),
        pytest.param([*whole(377), Step("failed", 0), *whole(600)], (0, 223), id="failed"),
        pytest.param(
            [*whole(377), Step("silent", 500), Step("whole", 600, 450)], (150, 223), id="read-some"
        ),
    ],
)  # fmt: skip
def test_loss_over_answers_in_part_is_counted(steps: list[Step], bounds: tuple[int, int]) -> None:
    runs = played(steps)
    assert (total(runs, LOW), total(runs, HIGH)) == bounds
    assert unknown_us(runs) == 0


@pytest.mark.edge(1)
@pytest.mark.parametrize("restart_before", range(1, 7))
def test_loss_over_a_restart_is_counted(restart_before: int) -> None:
    runs = played(CASE, restart_before=restart_before)
    assert total(runs, LOW) <= 2842 <= total(runs, HIGH)
    assert unknown_us(runs) == 0


@pytest.mark.edge(1)
def test_loss_over_a_sealed_window_is_unknown_then_counted() -> None:
    runs = played([*whole(377), *[Step("silent", 500)] * 15, *whole(600)])
    assert (total(runs, LOW), total(runs, HIGH)) == (223, 223)
    unknown = [one for one in runs if one.value is None and one.series.metric == HIGH]
    assert unknown, "a window that is sealed before the group answers"
    assert unknown_us(runs) == sum(one.end - one.start for one in unknown)


@pytest.mark.edge(1)
def test_loss_of_a_group_that_stays_silent_is_unknown() -> None:
    runs = played([*whole(377), *[Step("silent", 500)] * 24])
    silent_us = 24 * 5 * S
    assert unknown_us(runs) > silent_us - 2 * WINDOW, "up to the window that is not sealed"


def test_loss_of_a_group_that_is_no_more_is_unknown_once() -> None:
    state = NonConsumed()
    state.advance(offsets(Step("whole", 377)))
    losses = [state.advance(offsets(Step("unlisted", 500))).get(G) for _ in range(6)]
    assert losses == [None, None, None, Loss(None, None), None, None]
    assert state.advance(offsets(Step("whole", 600)))[OTHER_GROUP] == Loss(0, 0)
    assert G not in state.advance(offsets(Step("unlisted", 700)))


@pytest.mark.edge(1)
def test_loss_is_unknown_where_the_partition_left_first() -> None:
    state = NonConsumed()
    state.advance(offsets(Step("whole", 377)))
    state.advance(offsets(Step("silent", 500)))
    assert state.advance(Offsets({}, {}, {})) == {G: Loss(None, None)}
    assert state.advance(Offsets({}, {}, {})) == {}


@pytest.mark.edge(1)
def test_delayed_loss_ends_with_its_topic() -> None:
    state = NonConsumed()
    old, new = {"t": "old"}, {"t": "new"}
    state.advance(replace(offsets(Step("whole", 377)), topic_ids=old))
    state.advance(replace(offsets(Step("silent", 500)), topic_ids=old))
    made_again = replace(offsets(Step("whole", 600, 600)), topic_ids=new)
    assert state.advance(made_again)[G] == Loss(None, None)
    assert state.advance(replace(offsets(Step("whole", 650, 600)), topic_ids=new))[G].high == 50


def test_spool_of_the_version_before_keeps_its_baselines() -> None:
    state = NonConsumed()
    state.advance(offsets(Step("whole", 377)))
    plain = msgspec.to_builtins(state, str_keys=False)
    del plain["delayed"]
    again = msgspec.convert(plain, NonConsumed)
    again.advance(offsets(Step("silent", 500)))
    assert again.advance(offsets(Step("whole", 600)))[G] == Loss(223, 223)


@pytest.mark.edge(1)
def test_lake_of_an_agent_that_dropped_a_loss_has_a_gap() -> None:
    """The group has no run in that time, so a report states 2,098 as the minimum."""
    table = deltalake.DeltaTable(f"tests/lakes/lost_in_part/{tables.RUNS.path}")
    runs = duckdb.read_parquet(table.file_uris()).filter(
        f"metric = '{HIGH}' and \"group\" = 'slow-readers' and partition = 0"
    )
    assert runs.sum("value").fetchall() == [(2098,)]
    spans = sorted(runs.project('epoch_us("start"), epoch_us("end")').fetchall())
    assert any(end < start for (_, end), (start, _) in pairwise(spans))


def lost(lake: Path, period: Period) -> dict[tuple[str, int], LostOffsets]:
    """Return the report's lost offsets by group and partition."""
    engine = LocalEngine(lakes.at(str(lake)))
    objectives = tuple(one for one in objective_files.load() if one.name == "lost-before-read")
    rollups.prepare(lake)
    rollup(engine, objectives, Wanted(tidy="never"))
    (cluster,) = {row.cluster for row in subjects(engine)}
    gold = Gold(
        engine, cluster, period, 300, subjects(engine), int(period.end.timestamp() + 3600) * S
    )
    found = consumer_groups.lost_before_read(gold, gold.statements(objectives), objectives)
    return {(one.group, one.partition): one for one in found.groups}


@pytest.mark.edge(1)
def test_report_of_an_agent_that_dropped_a_loss_is_at_least(tmp_path: Path) -> None:
    shutil.copytree("tests/lakes/lost_in_part", tmp_path, dirs_exist_ok=True)
    begin = dt.datetime(2026, 11, 28, 17, 25, tzinfo=dt.UTC)
    groups = lost(tmp_path, Period(begin, begin + dt.timedelta(minutes=5)))
    bounds = {of: (one.offsets_low, one.offsets_high) for of, one in groups.items()}
    assert bounds == {("slow-readers", 0): (2098, None), ("slow-readers", 1): (2116, None)}


@pytest.mark.edge(1)
@pytest.mark.parametrize("late", [CASE, [*CASE[:2], *[Step("silent", 1500)] * 4, *CASE[4:]]])
def test_report_over_answers_in_part_is_bounded(tmp_path: Path, late: list[Step]) -> None:
    shipped = catalogue.load()
    played = [*whole(*[300] * 60), *late, *whole(*[3219] * 120)]
    with Spool(tmp_path / "spool.db", 1 << 20) as spool:
        recorder = Recorder(spool, Scope({"broker-1": "c"}, {}, shipped.hash), 300 * S)
        for number, step in enumerate(played):
            recorder.record(scrape(number, step))
            recorder.seal(scrape(number, step).answered_us)
        recorder.flush(T0 + len(played) * 5 * S)
        delivery = Delivery(str(tmp_path / "lake"), dict, spool, catalogue=lambda: shipped)
        while delivery.deliver_next():
            pass
    begin = dt.datetime.fromtimestamp(T0 // S // 300 * 300 + 300, dt.UTC)
    groups = lost(tmp_path / "lake", Period(begin, begin + dt.timedelta(minutes=10)))
    row = groups["slow", 0]
    assert row.offsets_low <= 2842
    assert (row.offsets_high, row.unknown_us) == (2842, 0)


steps = st.lists(
    st.tuples(
        st.sampled_from(["whole", "whole", "silent", "unlisted", "startless", "moved", "failed"]),
        st.integers(0, 6),  # the log start moves
        st.integers(0, 6),  # the group reads
    ),
    min_size=2,
    max_size=25,
)


@settings(max_examples=200)
@given(steps=steps)
def test_bounds_hold_the_loss_for_any_answers_in_part(
    steps: list[tuple[Kind, int, int]],
) -> None:
    """A group that reads nothing until the reading is whole, or reads on after retention."""
    start = commit = lost = unlisted = 0
    first_lost = last_lost = None
    told: list[Step] = []
    certain, doubt = 0, False
    baseline = (0, 0)
    for played_kind, expired, reads in [("whole", 0, 0), *steps]:
        if played_kind not in ("startless", "failed"):  # which list no group
            unlisted = unlisted + 1 if played_kind == "unlisted" else 0
        kind: Kind = "silent" if unlisted > 3 else played_kind
        lost += max(0, start + expired - max(start, commit))
        start += expired
        told.append(Step(kind, start, commit))
        doubt = doubt or kind in ("failed", "moved")
        if kind in ("whole", "moved"):
            if first_lost is None:
                first_lost = lost
            else:
                certain += 0 if doubt else max(0, start - max(baseline[0], commit))
            last_lost, baseline, doubt = lost, (start, commit), kind == "moved"
        commit += reads  # after the answer: what it commits then is in no answer before
    runs = played(told)
    assert first_lost is not None
    assert last_lost is not None
    low, high = total(runs, LOW), total(runs, HIGH)
    assert low <= last_lost - first_lost <= high
    assert low == certain, "no less than the readings before and after make certain"
    for metric in (LOW, HIGH):
        own = [one for one in runs if one.series == Series(metric, "t", 0, group="slow")]
        assert all(one.end <= two.start for one, two in pairwise(own)), "no instant is there twice"
        assert all(one.end <= one.start - one.start % WINDOW + WINDOW for one in own)
