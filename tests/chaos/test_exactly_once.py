"""Test of the exactly-once check: it accepts a good lake and detects every change of it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from collector.agent.scrape_attempt import skipped
from collector.encoding.encoder import Encoder
from collector.model import Answer, Identity, Reading, Scrape, Series
from collector.spool.recorder import Recorder
from collector.spool.source_states import Scope
from collector.spool.spool import Spool
from tests.rig.exactly_once import judge
from tests.rig.fake_beans import FAMILIES
from tests.rig.rig import Rig
from tests.rig.spans import Spans
from tests.rig.testimony import Life, testimony as lives_in
from tests.rig.told import Account, Held, Told
from tests.rig.witness import Witness, WitnessedRecorder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.rig.verdict import Verdict

pytestmark = pytest.mark.chaos

ONE = "metric = 'kafka.partition.lag' AND topic = 'orders' AND partition IS NOT NULL"
FOLDED = "members IS NOT NULL AND metric = 'kafka.partition.under_min_isr'"
INCREASE = "metric = 'kafka.topic.bytes_in' AND value > 0"


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A lake to which nothing happened but an ordinary restart."""
    with Rig(tmp_path_factory.mktemp("checked") / "good", 3) as rig:
        for _ in range(2):
            assert rig.paced(5.0).wait() == 0
        yield rig


@pytest.fixture
def rig(good: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """The same, in a copy of its lake that may be spoilt."""
    copy = tmp_path / "lake"
    shutil.copytree(good.lake, copy)
    monkeypatch.setattr(good, "lake", copy)
    return good


def test_a_good_lake_is_good(rig: Rig) -> None:
    verdict = rig.verdict()
    assert verdict.samples > 5_000
    assert (verdict.lost, verdict.dup, verdict.excused, verdict.refused) == (0, 0, 0, 0), verdict
    assert 0 < verdict.max_unaccounted_us < 1_000_000


def test_a_lake_without_tables_has_lost_everything(rig: Rig) -> None:
    shutil.rmtree(rig.lake)
    verdict = rig.verdict()
    assert verdict.lost > verdict.samples > 5_000
    assert verdict.dup == 0


@pytest.mark.parametrize(
    ("table", "where"),
    [("runs", ONE), ("runs", FOLDED), ("runs", INCREASE), ("members", "kind = 'partitions'"),
     ("scrapes", "outcome = 'ok'"), ("scrapes", "outcome <> 'ok'"),
     ("events", "kind = 'agent_start'"), ("events", "kind = 'leader_change'")],
)  # fmt: skip
def test_a_row_that_is_dropped_is_lost(rig: Rig, table: str, where: str) -> None:
    delta = DeltaTable(f"{rig.lake}/bronze/{table}")
    assert delta.delete(_first(delta, table, where))["num_deleted_rows"] == 1
    _sees(rig.verdict(), lost=True, dup=False)


@pytest.mark.parametrize(
    ("table", "where"),
    [("runs", ONE), ("runs", FOLDED), ("runs", INCREASE), ("scrapes", "outcome = 'ok'"),
     ("events", "kind = 'leader_change'")],
)  # fmt: skip
def test_doubled_row_is_noticed(rig: Rig, table: str, where: str) -> None:
    delta = DeltaTable(f"{rig.lake}/bronze/{table}")
    rows = f"SELECT * FROM told WHERE {_first(delta, table, where)}"  # noqa: S608
    write_deltalake(delta, QueryBuilder().register("told", delta).execute(rows), mode="append")
    verdict = rig.verdict()
    assert verdict.dup, verdict


def test_doubled_member_set_is_accepted(rig: Rig) -> None:
    delta = DeltaTable(f"{rig.lake}/bronze/members")
    rows = "SELECT * FROM told"
    write_deltalake(delta, QueryBuilder().register("told", delta).execute(rows), mode="append")
    assert rig.verdict().good


@pytest.mark.parametrize(
    ("change", "lost", "dup"),
    [
        ({"value": "value + 1"}, True, False),
        ({"end": "\"end\" + INTERVAL '1 microsecond'"}, False, True),
        ({"start": "start + INTERVAL '1 microsecond'"}, True, False),
    ],
)
def test_a_value_or_an_instant_that_is_shifted_is_seen(
    rig: Rig, change: dict[str, str], *, lost: bool, dup: bool
) -> None:
    delta = DeltaTable(f"{rig.lake}/bronze/runs")
    where = _first(delta, "runs", f"{ONE} AND value > 0 AND scrapes > 0 AND lead_us > 0")
    assert delta.update(change, predicate=where)["num_updated_rows"] == 1
    _sees(rig.verdict(), lost=lost, dup=dup)


@pytest.mark.parametrize(("rise", "lost"), [(-1, True), (1, False)])
def test_changed_increase_is_noticed(rig: Rig, rise: int, *, lost: bool) -> None:
    delta = DeltaTable(f"{rig.lake}/bronze/runs")
    where = _first(delta, "runs", INCREASE)
    assert delta.update({"value": f"value + {rise}"}, predicate=where)["num_updated_rows"] == 1
    _sees(rig.verdict(), lost=lost, dup=not lost)


def test_reported_gap_is_not_a_loss(rig: Rig) -> None:
    """A batch is missing, and an event has its time."""
    scrapes = DeltaTable(f"{rig.lake}/bronze/scrapes")
    found = _asked(scrapes, "SELECT MAX(batch) FROM told WHERE batch < 5")[0][0]
    span = f"""SELECT MIN(start), MAX("end") FROM told WHERE batch = {found}"""  # noqa: S608
    first, last = (one.isoformat() for one in _asked(scrapes, span)[0])  # type: ignore[attr-defined]
    for table in ("runs", "events", "scrapes"):
        DeltaTable(f"{rig.lake}/bronze/{table}").delete(f"batch = {found}")
    events = DeltaTable(f"{rig.lake}/bronze/events")
    later = f"batch > {found} AND kind = 'leader_change'"
    events.update({"kind": "'batch_dropped'", "new": f"'{first}..{last}'"}, predicate=later)
    verdict = rig.verdict()
    assert verdict.excused > 500
    assert all("leader_change" in text for text in verdict.complaints), verdict


def test_removed_log_tail_excuses_and_kill_does_not(
    rig: Rig,
) -> None:
    starts = "SELECT MAX(at) FROM told WHERE kind = 'agent_start'"
    ((second,),) = _asked(DeltaTable(f"{rig.lake}/bronze/events"), starts)
    accounts = _asked(DeltaTable(f"{rig.lake}/bronze/scrapes"), 'SELECT batch, "end" FROM told')
    last = max(batch for batch, end in accounts if end <= second)  # type: ignore[operator]
    for table in ("runs", "scrapes"):
        DeltaTable(f"{rig.lake}/bronze/{table}").delete(f"batch = {last}")
    assert rig.verdict().lost
    assert rig.verdict(tail_lost=True).excused > 100


@pytest.mark.parametrize(("asked", "dups"), [(249, 0), (251, 1)])
def test_running_attempt_covers_the_start_of_a_gap(asked: int, dups: int) -> None:
    """The time between scrapes is 100 us. After 2.5 intervals only a running scrape covers it."""
    series = Series("kafka.partition.lag", "orders", 0)
    answer = Answer((Reading(series.metric, "gauge", values={series: 1.0}),), 1)
    kept = [
        Scrape("partitions", at, at, answered, 100, "ok", answer=answer)
        for at, answered in ((0, 1), (asked + 1, 290))
    ]
    told = Told({series: [Held(1, 400, 1.0)]}, {"partitions": [Account(0, 400, "ok", 2)]})
    assert judge([Life(kept=kept)], told, 1_000_000).dup == dups


@pytest.mark.parametrize("stood_still_us", [1_249, 1_250])
def test_time_after_the_start_of_a_failed_attempt_is_never_told(stood_still_us: int) -> None:
    """Also where its window was sealed while it was under way, 2.5 intervals after its end."""
    series = Series("kafka.partition.lag", "orders", 0)
    answer = Answer((Reading(series.metric, "gauge", values={series: 1.0}),), 1)
    read = Scrape("partitions", 900, 900, 901, 100, "ok", Identity("c", "1", "4.3.1", 1), answer)
    failed = Scrape("partitions", 920, 920, stood_still_us, 100, "timeout", error="late")
    encoder = Encoder(1_000)
    encoder.record(read)
    sealed = encoder.seal(stood_still_us)
    encoder.record(failed)
    runs = [*sealed.runs, *encoder.flush(stood_still_us).runs]
    assert max(run.end for run in runs) == (902 if sealed.runs else 920)
    told = Told({series: [Held(901, 1_000, 1.0)]}, {"partitions": [Account(901, 1_000, "ok", 2)]})
    assert judge([Life(kept=[read, failed])], told, 1_000).dup == 1


def test_skipped_tick_leaves_kept_scrape_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The schedule's thread records it before the witness has looked what the recorder took."""
    answer = Answer((Reading("kafka.partition.lag", "gauge"),), 1)
    read = Scrape("partitions", 0, 1, 2, 100, "ok", Identity("c", "1", "4.3.1", 1), answer)
    read = replace(read, source="broker-1")
    plain = Recorder.record

    def record_and_skip(recorder: Recorder, scrape: Scrape) -> None:
        plain(recorder, scrape)
        plain(recorder, skipped(FAMILIES["partitions"], 100, 100, "broker-1"))

    monkeypatch.setattr(Recorder, "record", record_and_skip)
    with Spool(tmp_path / "spool.db", 1 << 20) as spool:
        recorder = WitnessedRecorder(spool, Scope({"broker-1": None}, {}, "fake"), 1_000)
        recorder.witness = Witness(tmp_path / "witness")
        recorder.record(read)
    (life,) = lives_in([tmp_path / "witness"])
    assert (life.kept, life.refused) == ([read], [])


def test_spans_unite_and_have_their_gaps() -> None:
    spans = Spans([(10, 20), (15, 30), (30, 35), (50, 60), (70, 70)])
    assert list(spans) == [(10, 35), (50, 60)]
    assert spans.covers(12, 35)
    assert not spans.covers(12, 36)
    assert 35 not in spans
    assert spans.longest_gap(0, 100) == 40
    assert spans.longest_gap(20, 58) == 15
    assert spans.last_before(55) == 35


def _first(delta: DeltaTable, table: str, where: str) -> str:
    """Return a condition for the first row that fulfils another condition."""
    columns = {
        "runs": ("metric", "topic", "partition", "start", "end"),
        "scrapes": ("family", "start", "outcome"),
        "events": ("at", "kind"),
        "members": ("set",),
    }[table]
    names = ", ".join(f'CAST("{column}" AS STRING) AS own_{column}' for column in columns)
    order = ", ".join(f"own_{column}" for column in columns)
    query = f"SELECT {names} FROM told WHERE {where} ORDER BY {order} LIMIT 1"  # noqa: S608
    row = _asked(delta, query)[0]
    return " AND ".join(
        f'"{column}" IS NULL' if value is None else f"CAST(\"{column}\" AS STRING) = '{value}'"
        for column, value in zip(columns, row, strict=True)
    )


def _asked(delta: DeltaTable, query: str) -> list[tuple[object, ...]]:
    table = QueryBuilder().register("told", delta).execute(query).read_all()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _sees(verdict: Verdict, *, lost: bool, dup: bool) -> None:
    assert bool(verdict.lost) == lost, verdict
    assert bool(verdict.dup) == dup, verdict
