"""Statements in slices, in events, over other windows and without maintenance, asked of gold.

Gold is written as it is, and not rolled up: what a rollup makes of bronze has tests of its own.
What must come out is computed beside it in plain Python, row by row.
"""

from __future__ import annotations

import datetime as dt
import json
import random
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from lakehouse import tables
from lakehouse.cli.main import main
from lakehouse.core import periods
from lakehouse.core.lake import Lake
from lakehouse.core.objective import Events, Objective, Slices, TimeWindow
from lakehouse.core.subjects import Subject
from lakehouse.engines.gold_reader import GoldRows
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.errors import ObjectiveError
from lakehouse.report.facts.build import facts
from lakehouse.slo import attainment, combined_statements
from lakehouse.slo.burn_rate import PAIRS, BadWindow, burnt_us
from lakehouse.slo.report_calendar import Calendar, Maintenance
from lakehouse.slo.sla_statement import Statement, Times
from tests import gold_builder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.engines.engine import Engine

pytestmark = pytest.mark.reads

SECOND = 1_000_000
WINDOW = 300 * SECOND
HOUR = 3600 * SECOND
DAY = 24 * HOUR
WEEK = periods.week("2024-W47")  # long gone: the command looks at the clock
START, END = periods.micros(WEEK.start), periods.micros(WEEK.end)
LATE = END + DAY
"""Statements are made a day after the week."""

METRIC = "kafka.partition.unavailable"
ERRORS, REQUESTS = "kafka.topic.remote_fetch.errors", "kafka.topic.remote_fetch.requests"
TOPICS = {"old": START - 30 * DAY, "young": START + 3 * DAY + 100 * SECOND, "silent": START - DAY}
"""When each was seen first."""


def objective(name: str, **more: Any) -> Objective:
    return Objective(name, name, "", "topic", METRIC, 0.0, 0.99, **more)


PLAIN = objective("plain")
SLICED = [
    objective("by-window", slices=Slices(WINDOW, 0.95)),
    objective("by-hour", slices=Slices(HOUR, 0.95)),
    objective("by-day", slices=Slices(DAY, 0.9)),
    objective("by-minute", slices=Slices(60 * SECOND, 0.9)),
    objective("mean-of-windows", slices=Slices(WINDOW)),
    objective("mean-of-hours", slices=Slices(HOUR)),
]
ROLLING = objective("rolling", window=TimeWindow(28, "d", None))
MONTH = objective("month", window=TimeWindow(1, "M", dt.datetime(2026, 1, 1)))  # noqa: DTZ001 - a local time
READS = Objective(
    "reads",
    "reads",
    "",
    "topic",
    REQUESTS,
    0.0,
    0.99,
    events=Events(ERRORS, are_good=False, total=REQUESTS),
)
READS_BY_HOUR = replace(READS, name="reads-by-hour", slices=Slices(HOUR, 0.975))
MEAN_OF_READS = replace(READS, name="mean-of-reads", slices=Slices(HOUR))
EVERY = [PLAIN, *SLICED, ROLLING, MONTH, READS, READS_BY_HOUR, MEAN_OF_READS]

Row = tuple[int, int, int, int, int]
"""Window, good, bad, at least, at most; microseconds."""


def rows_of(topic: str) -> list[Row]:
    """Windows of a topic: most are good, some are not told, some bad, some seen in part."""
    if topic == "silent":
        return []
    chance = random.Random(topic)
    rows = []
    for window in range(START - 28 * DAY, END, WINDOW):
        if window < TOPICS[topic] or chance.random() < 0.02:
            continue
        lived = min(WINDOW, window + WINDOW - TOPICS[topic])
        bad = chance.choice([0] * 30 + [3, 15, 16, 60, 299]) * SECOND
        seen = lived if chance.random() < 0.95 else chance.randrange(SECOND, lived)
        bad = min(bad, seen)
        edge = min(bad, 2 * SECOND)
        rows.append((window, seen - bad, bad, bad - edge, bad + edge))
    return rows


ROWS = {topic: rows_of(topic) for topic in TOPICS}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    place = Lake(str(tmp_path_factory.mktemp("objectives")))
    (Path(place.root) / tables.RUNS.path / "_delta_log").mkdir(parents=True)
    gold_builder.put(place.root, tables.SLA)
    gold_builder.put(place.root, tables.LEASE, {"id": None})
    _write_sli(place)
    last = {"cluster": "c", "window_start": periods.instant(END - WINDOW), "source": "broker-1",
            "family": "min_isr", "outcome": "ok", "outcome_us": WINDOW, "scrapes": 30}  # fmt: skip
    tiered = [
        {**last, "window_start": periods.instant(at), "source": source, "family": "tiered"}
        for at in range(START, END, WINDOW)
        for source in (("broker-1",) if at >= END - 2 * DAY else ("broker-1", "broker-2"))
    ]
    gold_builder.put(place.root, tables.WINDOWS["coverage"], last, *tiered)
    attributes = {"kafka.topic.partitions": 3.0}
    known = [
        {"cluster": "c", "kind": "topic", "topic": topic, "first_seen": periods.instant(first),
         "last_seen": periods.instant(END), "attributes": attributes}
        for topic, first in TOPICS.items()
    ]  # fmt: skip
    gold_builder.put(place.root, tables.SUBJECTS, *known)
    _write_events(place)
    done = dict.fromkeys(("runs_version", "scrapes_version", "members_version", "hours"), 1)
    done |= {"finished_at": dt.datetime.now(dt.UTC), "window_seconds": 300}
    gold_builder.put(place.root, tables.PROGRESS, done)
    return LocalEngine(place)


def _write_sli(place: Lake) -> None:
    """Hours, and the windows of those that were not good throughout."""
    windows, hours = [], []
    for topic, own in ROWS.items():
        by_hour: defaultdict[int, list[Row]] = defaultdict(list)
        for row in own:
            by_hour[row[0] // HOUR * HOUR].append(row)
        for hour, rows in by_hour.items():
            whole = (hour, *(sum(row[n] for row in rows) for n in range(1, 5)))
            hours.append((topic, whole))
            if (whole[1], whole[4]) != (HOUR, 0):
                windows += [(topic, row) for row in rows]
    for table, of in ((tables.SLI, hours), (tables.WINDOWS["sli"], windows)):
        names = ("good_us", "bad_us", "bad_low_us", "bad_high_us")
        rows_ = [
            {"cluster": "c", "window_start": periods.instant(at), "objective": one.name,
             "topic": topic,
             **dict(zip(names, times, strict=True)), "before_us": 0}
            for topic, (at, *times) in of
            for one in EVERY
            if one.events is None
        ]  # fmt: skip
        gold_builder.put(place.root, table, *rows_)


def _write_events(place: Lake) -> None:
    """Of the topic ``old`` two brokers count; in the last two days one of them is not seen.

    Of a hundred requests two are errors, but on the first day none, and nobody reads on the second.
    """
    windows = []
    for window in range(START, END, WINDOW):
        brokers = 1 if window >= END - 2 * DAY else 2
        errors = 0.0 if window < START + 2 * DAY else 1.0
        requests = 0.0 if START + DAY <= window < START + 2 * DAY else 50.0
        windows += [
            {"cluster": "c", "window_start": periods.instant(window), "metric": metric,
             "topic": "old",
             "series_seen_us": brokers * WINDOW, "increase": brokers * increase}
            for metric, increase in ((REQUESTS, requests), (ERRORS, errors))
        ]  # fmt: skip
    hours = [
        {"cluster": "c", "window_start": periods.instant(at), "metric": METRIC, "topic": "old",
         "series_seen_us": 2 * HOUR, "series_affected_us": 60 * SECOND,
         "series_affected_low_us": 50 * SECOND,
         "series_affected_high_us": 70 * SECOND}
        for at in range(START - HOUR, END, HOUR)
    ]  # fmt: skip
    gold_builder.put(place.root, tables.WINDOWS["topics"], *windows)
    gold_builder.put(place.root, tables.TOPICS, *hours)
    for table in (tables.PARTITIONS, tables.SOURCES, tables.WINDOWS["sources"]):
        gold_builder.put(place.root, table)


def read(
    engine: Engine, objectives: Sequence[Objective], **options: Any
) -> dict[tuple[str, str | None], Statement]:
    found = attainment.read(engine, objectives, WEEK, LATE, options=attainment.Options(**options))
    return {(one.objective.name, one.subject.topic): one for one in found}


@pytest.fixture(scope="module")
def asked(engine: Engine) -> dict[tuple[str, str | None], Statement]:
    """All objectives over the week."""
    return read(engine, EVERY)


def slices_of(topic: str, length: int) -> dict[int, list[Row]]:
    found: defaultdict[int, list[Row]] = defaultdict(list)
    for row in ROWS[topic]:
        if START <= row[0] < END:
            found[START + (row[0] - START) // length * length].append(row)
    return found


@pytest.mark.parametrize("name", ["by-window", "by-hour", "by-day"])
@pytest.mark.parametrize("topic", TOPICS)
def test_slices_are_counted_as_they_are_one_by_one(asked: Any, name: str, topic: str):
    (cut,) = [one.slices for one in SLICED if one.name == name]
    target = Fraction(str(cut.target))
    told = {"good": 0, "bad": 0, "surely": 0, "possibly": 0}
    for at, rows in slices_of(topic, cut.length_us).items():
        good, bad, low, high = (sum(row[n] for row in rows) for n in range(1, 5))
        lived = min(at + cut.length_us, END) - max(at, TOPICS[topic])
        unknown = lived - good - bad
        assert unknown >= 0
        if good + bad:
            is_good = Fraction(good, good + bad) >= target
            told["good" if is_good else "bad"] += 1
            told["surely"] += Fraction(lived - low, lived) < target
            told["possibly"] += Fraction(lived - high - unknown, lived) < target
    one = asked[name, topic]
    first = (max(START, TOPICS[topic]) - START) // cut.length_us
    assert one.expected_us == (7 * DAY // cut.length_us - first) * cut.length_us
    assert [us // cut.length_us for us in one.times] == list(told.values())
    assert all(us % cut.length_us == 0 for us in one.times)


@pytest.mark.parametrize("name", ["mean-of-windows", "mean-of-hours"])
def test_the_mean_of_slices_is_their_mean(asked: Any, name: str):
    (cut,) = [one.slices for one in SLICED if one.name == name]
    shares, low, high = [], Fraction(0), Fraction(0)
    for rows in slices_of("old", cut.length_us).values():
        good, bad, least, most = (sum(row[n] for row in rows) for n in range(1, 5))
        if good + bad:
            shares.append(Fraction(good, good + bad))
            low += Fraction(least, cut.length_us)
            high += min(Fraction(most + cut.length_us - good - bad, cut.length_us), Fraction(1))
    one = asked[name, "old"]
    whole = 7 * DAY // cut.length_us
    assert one.attainment == pytest.approx(float(sum(shares) / len(shares)), abs=1e-6)
    assert one.attainment_high == pytest.approx(float(1 - low / whole), abs=1e-6)
    unseen = whole - len(shares)
    assert one.attainment_low == pytest.approx(float(1 - (high + unseen) / whole), abs=1e-6)


def test_bounds_of_slices_contain_those_of_windows(asked: Any):
    minute, window = asked["by-minute", "old"], asked["by-window", "old"]
    assert minute.whole_us == window.whole_us == 7 * DAY
    assert minute.times.good_us % (60 * SECOND) == 0
    assert minute.attainment_low <= minute.attainment <= minute.attainment_high
    bad = sum(row[2] for row in ROWS["old"] if row[0] >= START)
    assert minute.times.bad_high_us >= bad - 7 * DAY // 10


def test_unobserved_topic_has_no_data_in_any_method(asked: Any):
    for one in (PLAIN, *SLICED):
        told = asked[one.name, "silent"]
        assert (told.verdict, told.unknown_us, told.whole_us) == ("no_data", 7 * DAY, 7 * DAY)


def test_plain_seconds_are_as_ever(asked: Any):
    for topic in ("old", "young"):
        rows = [row for row in ROWS[topic] if row[0] >= START]
        wanted = tuple(sum(row[n] for row in rows) for n in range(1, 5))
        one = asked["plain", topic]
        assert one.times == wanted
        assert one.expected_us == END - max(START, TOPICS[topic])


def test_events_are_a_share_of_fully_counted_time(asked: Any):
    one = asked["reads", "old"]
    day = 288 * 50.0
    total, bad = 2 * day + 3 * 2 * day + 2 * day, (3 * 2 * day + 2 * day) / 50
    assert one.details()["events"] == {"good": total - bad, "bad": bad, "total": total}
    assert one.attainment == pytest.approx(1 - bad / total)
    assert one.unknown_us == DAY, "one of two brokers was not seen for two days"
    assert one.verdict == "missed"
    assert asked["reads", "young"].verdict == "no_data"


def test_slices_of_events_are_judged_by_their_events(asked: Any):
    one = asked["reads-by-hour", "old"]
    hours = [us // HOUR for us in one.times]
    assert hours == [7 * 24, 0, 0, 2 * 24], "half of each of the last hours was not seen"
    assert one.unknown_us == 0
    mean = asked["mean-of-reads", "old"]
    assert mean.attainment == pytest.approx((2 + 5 * 0.98) / 7)
    assert mean.attainment_high == pytest.approx((2 + 3 * 0.98 + 2 * 0.99) / 7)
    assert mean.attainment_low == pytest.approx((2 + 3 * 0.98 + 2 * 0.49) / 7)


def test_objective_has_its_own_window(engine: Engine):
    found = read(engine, [PLAIN, ROLLING, MONTH], own_windows=True)
    rolling = found["rolling", "old"]
    assert rolling.period.grain == "28d"
    own = [row for row in ROWS["old"] if row[0] >= END - 28 * DAY]
    assert rolling.times.bad_us == sum(row[2] for row in own)
    assert rolling.expected_us == 28 * DAY
    month = found["month", "old"]
    assert (month.period.start.day, month.period.end) == (1, WEEK.end), "under way"
    assert month.expected_us == 24 * DAY
    assert month.ahead_us == 6 * DAY
    assert month.budget_us == round(0.01 * 24 * DAY)
    assert month.budget_of_window_us == round(0.01 * 30 * DAY)
    assert found["plain", "old"].period == WEEK


def test_statements_of_other_windows_are_published_once(engine: Engine):
    options = attainment.Options(own_windows=True)
    for wanted in (9, 0):
        found = attainment.read(engine, [PLAIN, ROLLING, MONTH], WEEK, LATE, options=options)
        assert len(attainment.publish(engine, found, WEEK)) == wanted
    rows = engine.collect(engine.rows(tables.SLA))
    assert set(rows["period_kind"].to_pylist()) == {"1w", "28d", "1M"}


def test_older_gold_gets_missing_columns(tmp_path: Path):
    place = Lake(str(tmp_path))
    newer = {"unknown_as", "corrections", *tables.SLA_AGREED}
    older = replace(tables.SLA, columns=tuple(c for c in tables.SLA.columns if c.name not in newer))
    gold_builder.put(place.root, older)
    gold_builder.put(place.root, tables.LEASE, {"id": None})
    topic = Subject("c", "topic", "t", None, None, None, None, START, END)
    one = Statement(PLAIN, topic, 7 * DAY, Times(7 * DAY), WEEK)
    engine = LocalEngine(place)
    assert attainment.publish(engine, [one], WEEK) == [one]
    (row,) = engine.collect(engine.rows(tables.SLA)).to_pylist()
    assert (row["topic"], row["unknown_as"], row["verdict"]) == ("t", None, "met")
    assert (row["corrections"], row["agreed_verdict"]) == (None, None)


def test_a_verdict_by_policy_is_published_as_such(engine: Engine):
    policy = replace(PLAIN, unknown="exclude", target=0.9999)
    found = attainment.read(engine, [policy], WEEK, LATE)
    assert {one.verdict for one in found} == {"missed", "no_data"}
    attainment.publish(engine, found, WEEK)
    rows = engine.collect(engine.rows(tables.SLA)).to_pylist()
    stated = {row["unknown_as"]: row["unknown_us"] for row in rows if row["topic"] == "old"}
    assert stated["exclude"] == next(one for one in found if one.subject.topic == "old").unknown_us
    assert None in stated, "those before it took unknown time both ways"


def burnt(topic: str, length: int) -> tuple[float, float, float]:
    rows = [row for row in ROWS[topic] if row[0] >= END - length]
    good, bad, low, high = (sum(row[n] for row in rows) for n in range(1, 5))
    unknown = length - good - bad
    return bad / (good + bad) / 0.01, low / length / 0.01, (high + unknown) / length / 0.01


def test_burn_rates_are_those_of_the_last_hours(engine: Engine):
    found = read(engine, [PLAIN, *SLICED], burns=True)
    slow = found["plain", "old"].alerts[2]
    for rate, length in ((slow.long, 72 * HOUR), (slow.short, 6 * HOUR)):
        assert (rate.rate, rate.low, rate.high) == pytest.approx(burnt("old", length))
    assert slow.at == "2024-11-25T00:00:00Z"
    by_day = found["by-day", "old"].alerts
    assert [one.verdict for one in by_day] == ["no_data"] * 3, "6 hours have no day"
    assert by_day[2].long.rate is not None, "three days have"
    assert {one.verdict for one in found["plain", "silent"].alerts} == {"no_data"}


def test_burn_time_of_budget_is_that_of_the_period(engine: Engine):
    found = read(engine, [PLAIN, *SLICED], burns=True)
    bad = [BadWindow(row[0], row[3]) for row in ROWS["old"] if row[0] >= START and row[3]]
    told = [one.burnt_us for one in found["plain", "old"].alerts]
    wanted = [burnt_us(bad, WINDOW, (START, END), pair, 0.99) for pair in PAIRS]
    assert told == wanted
    assert wanted[0] > 0, "something burns"
    assert found["plain", "silent"].alerts[0].burnt_us is None
    hourly = found["by-hour", "old"].alerts
    assert [one.burnt_us is None for one in hourly] == [True, True, False], "no slice is so short"


def test_maintenance_is_shown_with_results_without_it(engine: Engine):
    start, end = START + DAY + 100 * SECOND, START + DAY + 3 * HOUR + 100 * SECOND
    planned = (
        Maintenance(start, end, "disks", {"topic": ("o*",)}),
        Maintenance(START - DAY, START - DAY + HOUR, "before"),
    )
    with_it = read(engine, EVERY, maintenance=planned)
    assert with_it["plain", "young"].without is None
    one = with_it["plain", "old"]
    assert [m.reason for m in one.maintenance] == ["disks"]
    inside = (START + DAY + WINDOW, START + DAY + 3 * HOUR)
    rows = [row for row in ROWS["old"] if row[0] >= START]
    left = [row for row in rows if not inside[0] <= row[0] < inside[1]]
    assert len(left) < len(rows)
    assert one.times == tuple(sum(row[n] for row in rows) for n in range(1, 5))
    assert one.without.times == tuple(sum(row[n] for row in left) for n in range(1, 5))
    assert one.without.expected_us == 7 * DAY - (inside[1] - inside[0])
    hourly = with_it["by-hour", "old"].without
    assert hourly.expected_us == 7 * DAY - 2 * HOUR, "the first hour is judged by what is left"
    events = with_it["reads", "old"]
    assert events.without.expected_us == one.without.expected_us
    assert events.without.counts.total == events.counts.total, "nobody read on that day"
    assert events.without.counts.seen_us == events.counts.seen_us - 35 * WINDOW


def test_patterns_choose_subjects(engine: Engine):
    some = objective("plain", match={"topic": ("*", "!y*"), "cluster": ("c",)})
    assert {topic for _, topic in read(engine, [some])} == {"old", "silent"}
    assert read(engine, [objective("plain", match={"cluster": ("d",)})]) == {}


def test_a_cluster_is_its_topics_by_their_partitions(engine: Engine, asked: Any):
    whole = read(engine, [replace(PLAIN, level="cluster")])["plain", None]
    own = [asked["plain", topic] for topic in TOPICS]
    assert whole.subject.kind == "cluster"
    assert whole.times.bad_us == 3 * sum(one.times.bad_us for one in own)
    assert whole.expected_us == 3 * sum(one.whole_us for one in own)


def test_each_partition_for_itself_is_a_part_of_its_topic(engine: Engine, asked: Any):
    stated = [asked[name, "old"] for name in ("plain", "by-hour", "reads")]
    (one,) = combined_statements.by_topic(GoldRows(engine, WINDOW), stated)
    assert (one.weight, one.subjects) == ("partition-time", 3)
    told = one.to_json()
    hours = 7 * 24
    assert told["expected_us"] == 3 * 7 * DAY
    assert (told["bad_low_us"], told["bad_us"], told["bad_high_us"]) == (
        hours * 50 * SECOND, hours * 60 * SECOND, hours * 70 * SECOND,
    )  # fmt: skip
    assert told["unknown_us"] == 7 * DAY, "nobody told of one of three partitions"


def test_slices_that_do_not_fit_windows_are_refused(engine: Engine):
    with pytest.raises(ObjectiveError, match="slices of 420 s do not fit gold's windows of 300 s"):
        read(engine, [objective("odd", slices=Slices(420 * SECOND, 0.9))])


_FILE = """\
apiVersion: openslo/v1
kind: SLO
metadata: {name: by-hour, labels: {team: payments}}
spec:
  service: kafka
  indicator:
    metadata: {name: by-hour}
    spec:
      thresholdMetric:
        metricSource: {type: jmxlake, spec: {level: topic, metric: kafka.partition.unavailable}}
  timeWindow:
    - {duration: 28d, isRolling: true}
  budgetingMethod: Timeslices
  objectives:
    - {op: lte, value: 0, target: 0.99, timeSliceTarget: 0.95, timeSliceWindow: 1h}
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("files")
    (root / "objectives").mkdir()
    (root / "objectives" / "a.yaml").write_text(_FILE, "utf-8")
    (root / "maintenance.yaml").write_text(
        "maintenance:\n  - {start: 2024-11-19T00:00:00Z, end: 2024-11-19T02:00:00Z, reason: x}\n",
        "utf-8",
    )
    return root


def test_command_prints_every_result(engine: Engine, files: Path):
    result = CliRunner().invoke(
        main,
        ["slo", "publish", engine.lake.root, "--week", "2024-W47",
         "--objectives", str(files / "objectives"),
         "--maintenance", str(files / "maintenance.yaml"), "--label", "team=payments", "--json"],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)["statements"]
    (old,) = [one for one in told if one["topic"] == "old"]
    assert (old["method"], old["slice_us"], old["from"]) == (
        "Timeslices", HOUR, "2024-10-28T00:00:00Z",
    )  # fmt: skip
    assert old["expected_us"] == 28 * DAY
    assert old["without_maintenance"]["expected_us"] == 28 * DAY - 2 * HOUR
    assert [one["long"] for one in old["burn"]] == ["1h", "6h", "3d"]


def test_objectives_use_windows_and_questions_the_week(engine: Engine):
    for table in tables.GOLD:
        gold_builder.put(engine.lake.root, table)
    planned = (Maintenance(START, START + HOUR, "disks"),)
    now = periods.instant(LATE)
    told = facts(engine, EVERY, WEEK, now=now, calendar=Calendar(maintenance=planned))
    by_name = {one["name"]: one for one in told["objectives"]}
    rolling = by_name["rolling"]
    assert (rolling["window"], rolling["from"]) == ("28d", "2024-10-28T00:00:00Z")
    assert {one["expected_us"] for one in rolling["subjects"] if one["topic"] == "old"} == {
        28 * DAY
    }
    assert by_name["by-hour"]["slice_us"] == HOUR
    assert told["maintenance"][0]["reason"] == "disks"
    assert all("without_maintenance" in one for one in by_name["plain"]["subjects"])
    rows = {row["topic"]: row for row in told["min_isr"]["topics"]}
    plain = sum(row[1] + row[2] for row in ROWS["old"] if row[0] >= START)
    assert rows["old"]["unknown_us"] == 7 * DAY - plain
