"""Statistics of librdkafka from a file: rotated, truncated, half written, garbage or stale."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from collector import catalogue
from collector.errors import IdentityError, SourceError, SourceRefusedError, SourceTimeoutError
from collector.model import Series
from collector.sources import librdkafka
from collector.sources.base.identity import Expected
from collector.sources.librdkafka import Statistics, StatisticsSource
from lakehouse.tables import OTHER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FAMILY = catalogue.load().family("client_statistics")
AVG, MAX = (metric.name for metric in FAMILY.metrics)
EXPECTED = Expected("client", "billing", "c")


class FakeClock:
    """Stands at a second of our choice."""

    def __init__(self) -> None:
        self.now = 1_728_000_000.0

    def __call__(self) -> float:
        return self.now


class Application:
    """Appends statistics as an application does, in the form of librdkafka 2.16."""

    def __init__(self, file: Path, clock: FakeClock) -> None:
        self.file = file
        self.clock = clock

    def line(self, maximum: int = 0, total: int = 0, count: int = 1, **changed: Any) -> str:
        throttle = {"min": 0, "max": maximum, "avg": 0, "sum": total, "cnt": count, "p99": 1}
        node = {"name": "h:9092/1", "nodeid": 1, "source": "learned", "throttle": throttle}
        unused = {"name": "h:9092/bootstrap", "nodeid": -1, "throttle": {"cnt": 0}}
        whole = {
            "name": "rdkafka#producer-1",
            "client_id": "app",
            "type": "producer",
            "ts": 5016483227792,
            "time": int(self.clock.now),
            "brokers": {"h:9092/1": node, "h:9092/bootstrap": unused},
            "topics": {},
        }
        return json.dumps({**whole, **changed}) + "\n"

    def append(self, text: str) -> None:
        with self.file.open("a") as file:
            file.write(text)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def app(tmp_path: Path, clock: FakeClock) -> Application:
    app = Application(tmp_path / "statistics.json", clock)
    app.append(app.line())
    return app


@pytest.fixture
def source(app: Application, clock: FakeClock) -> Iterator[StatisticsSource]:
    source = StatisticsSource(EXPECTED, Statistics(app.file), clock=clock)
    yield source
    source.close()


def series(metric: str, client_id: str = "app", broker: str = "1") -> Series:
    return Series(metric, client_id=client_id, labels=(("broker", broker), ("type", "producer")))


def read(source: StatisticsSource) -> dict[Series, float | None]:
    found: dict[Series, float | None] = {}
    for reading in source.read(FAMILY).readings:
        found.update(dict.fromkeys(reading.zeros, 0.0))
        found.update(reading.values)
    return found


def test_what_came_since_the_last_read_is_one_mean_and_one_maximum(
    source: StatisticsSource, app: Application
) -> None:
    assert read(source) == {series(AVG): 0.0, series(MAX): 0.0}
    app.append(app.line(600, 900, 3) + app.line(200, 300, 2))
    assert read(source) == {series(AVG): 240.0, series(MAX): 600.0}
    app.append(app.line(0, 0, 4))
    first, second = source.read(FAMILY), source.read(FAMILY)
    assert read(source)[series(MAX)] is None  # nothing new, nothing binds: no answer came
    assert first.readings[0].zeros == {series(AVG)}
    assert second.beans == 1


def test_a_client_that_was_told_to_wait_waits_though_no_answer_comes(
    source: StatisticsSource, app: Application, clock: FakeClock
) -> None:
    app.append(app.line(8_000, 8_000, 1))
    assert read(source)[series(MAX)] == 8_000
    clock.now += 7
    app.append(app.line(count=0))
    assert read(source)[series(MAX)] == 8_000
    clock.now += 2
    app.append(app.line(count=0))
    assert read(source)[series(MAX)] is None


def test_a_file_that_stopped_growing_is_unknown_and_not_idle(
    source: StatisticsSource, app: Application, clock: FakeClock
) -> None:
    read(source)
    clock.now += FAMILY.cadence_seconds
    read(source)
    clock.now += 2
    why = "no statistics for 11 s; check that the client is running"
    with pytest.raises(SourceTimeoutError, match=why):
        source.read(FAMILY)
    app.append(app.line(5, 5, 1))
    assert read(source)[series(MAX)] == 5
    clock.now -= 3600  # set back: what seems to come from the future says nothing of now
    with pytest.raises(SourceTimeoutError):
        source.read(FAMILY)


def test_statistics_that_were_old_when_we_came_are_no_answer(
    app: Application, clock: FakeClock
) -> None:
    clock.now += 60
    late = StatisticsSource(EXPECTED, Statistics(app.file), clock=clock)
    with pytest.raises(SourceTimeoutError):
        late.read(FAMILY)
    late.close()


def test_half_a_line_waits_for_its_other_half(source: StatisticsSource, app: Application) -> None:
    read(source)
    line = app.line(700, 700, 1)
    app.append(app.line(0, 0, 1) + line[:40])
    assert read(source)[series(MAX)] == 0
    app.append(line[40:-1])
    assert read(source)[series(MAX)] is None
    app.append("\n")
    assert read(source)[series(MAX)] == 700


@pytest.mark.parametrize("late", [False, True])
def test_a_rotated_file_is_read_to_its_end_and_then_the_new_one(
    source: StatisticsSource, app: Application, *, late: bool
) -> None:
    read(source)
    app.append(app.line(900, 900, 1))
    app.file.rename(app.file.with_suffix(".1"))
    if late:
        assert read(source)[series(MAX)] == 900  # the new one is not there yet
    app.append(app.line(100, 100, 1))
    expected = {series(AVG): 100.0, series(MAX): 100.0} if late else {}
    assert read(source) == (expected or {series(AVG): 500.0, series(MAX): 900.0})


def test_a_truncated_file_is_read_from_its_start(
    source: StatisticsSource, app: Application
) -> None:
    app.append(app.line() * 3)
    read(source)
    os.truncate(app.file, 0)
    app.append(app.line(300, 300, 1))
    assert read(source)[series(MAX)] == 300


@pytest.mark.parametrize(
    "garbage",
    [
        "no JSON\n",
        "{}\n",
        "[1]\n",
        '{"name": "a", "client_id": "q"uote", "type": "producer", "time": 1, "brokers": {}}\n',
        "[" * 200_000 + "\n",
        "\x00\x01\n",
        "\udcff\n",
    ],
)
def test_a_garbage_line_is_counted_and_the_others_are_read(
    source: StatisticsSource, app: Application, garbage: str
) -> None:
    with app.file.open("ab") as file:
        file.write(garbage.encode("utf-8", "surrogateescape"))
    app.append("\n" + app.line(40, 40, 1))
    answer = source.read(FAMILY)
    assert answer.dropped_series == 1
    assert answer.readings[1].values == {series(MAX): 40}


@pytest.mark.parametrize("field", ["max", "sum", "cnt"])
def test_numbers_that_cannot_be_are_garbage(
    source: StatisticsSource, app: Application, field: str
) -> None:
    read(source)
    for number in ("-1", "1e400", "NaN", '"7"', "9" * 40):
        app.append(app.line().replace(f'"{field}": ', f'"{field}": {number}, "was": ', 1))
    assert source.read(FAMILY).dropped_series == 5


def test_a_huge_line_is_dropped_and_costs_no_memory(
    source: StatisticsSource, app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(librdkafka, "LONGEST_LINE", 10_000)
    read(source)
    app.append(app.line(padding="x" * 400_000))
    app.append(app.line(padding="x" * 3_000)[:-1])
    assert source.read(FAMILY).dropped_series == 1
    app.append("x" * 400_000)
    assert source.read(FAMILY).dropped_series == 1
    app.append("\n" + app.line(20, 20, 1))
    answer = source.read(FAMILY)
    assert answer.dropped_series == 0
    assert answer.readings[1].values == {series(MAX): 20}


def test_of_a_large_file_only_the_end_is_read(
    app: Application, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(librdkafka, "MOST_AT_ONCE", 5_000)
    app.append(app.line(900, 900, 1) * 100 + app.line(1, 1, 1) * 20)
    source = StatisticsSource(EXPECTED, Statistics(app.file), clock=clock)
    answer = source.read(FAMILY)
    source.close()
    assert answer.readings[1].values == {series(MAX): 1}
    assert answer.dropped_series == 0


def test_too_many_lines_at_once_are_dropped(
    source: StatisticsSource, app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.read(FAMILY)
    monkeypatch.setattr(librdkafka, "_MOST_LINES", 10)
    app.append(app.line(7, 7) + "\n" * 99 + app.line(9, 9))
    answer = source.read(FAMILY)
    assert answer.readings[1].values == {series(MAX): 7.0}
    assert answer.dropped_series == 1
    app.append(app.line(8, 8) + app.line(5, 5))  # the first of them may be the rest of a line
    assert source.read(FAMILY).readings[1].values == {series(MAX): 5.0}


def test_too_many_objects_at_once_are_garbage(
    source: StatisticsSource, app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(librdkafka, "_MOST_OBJECTS", 20)
    app.append(app.line(brokers={str(node): {"nodeid": node} for node in range(20)}))
    answer = source.read(FAMILY)
    assert (
        len(answer.readings[1].values) + len(answer.readings[1].zeros),
        answer.dropped_series,
    ) == (1, 1)


def test_clients_of_one_file_and_coordinators_are_told_apart(
    source: StatisticsSource, app: Application
) -> None:
    brokers = {
        "h:9092/2": {"nodeid": 2, "throttle": {"max": 7, "sum": 7, "cnt": 1}},
        "GroupCoordinator": {"nodeid": -1, "throttle": {"max": 8, "sum": 8, "cnt": 1}},
    }
    app.append(app.line(name="rdkafka#producer-2", client_id="other", brokers=brokers))
    found = read(source)
    assert found[series(MAX)] == 0
    assert found[series(MAX, "other", "2")] == 7
    assert found[series(MAX, "other", "GroupCoordinator")] == 8


def test_names_that_the_lake_cannot_hold_are_folded(
    source: StatisticsSource, app: Application
) -> None:
    for number, name in enumerate(("half\ud83d", "x" * 32_767, "__other__")):
        app.append(app.line(5, 5, 1, name=f"rdkafka#producer-{number + 2}", client_id=name))
    answer = source.read(FAMILY)
    assert answer.dropped_series == 1 + 2 * 2  # a line that is no Unicode, and of both metrics two
    assert answer.readings[1].values == {Series(MAX, client_id=OTHER): 10.0}


def test_beyond_the_cap_series_are_folded(source: StatisticsSource, app: Application) -> None:
    for number in range(10):
        app.append(app.line(name=f"p{number}", client_id=f"c{number}"))
    answer = source.read(replace(FAMILY, cap=5))
    assert answer.dropped_series == 22 - 5


def test_a_file_that_cannot_be_followed_is_refused_at_once(tmp_path: Path) -> None:
    missing = StatisticsSource(EXPECTED, Statistics(tmp_path / "none"))
    with pytest.raises(SourceRefusedError, match=r"none: No such file .* stats_cb appends to"):
        missing.identify()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SourceRefusedError, match="not a regular file"):
        StatisticsSource(EXPECTED, Statistics(tmp_path / "pipe")).identify()


def test_the_cluster_must_be_configured(app: Application) -> None:
    source = StatisticsSource(Expected("client", "billing"), Statistics(app.file))
    with pytest.raises(IdentityError, match=r"set source\.cluster"):
        source.identify()
    source.close()


def test_who_answers_is_who_is_configured(source: StatisticsSource) -> None:
    identity = source.identify()
    assert (identity.cluster, identity.node) == ("c", "billing")
    assert (identity.kafka_version, identity.started_us) == (None, 0)


def test_an_agent_of_such_clients_reads_nothing_else_and_starts_no_jvm(app: Application) -> None:
    section = {"node": "billing", "role": "client", "cluster": "c"}
    raw = {
        "source": {**section, "statistics": {"file": str(app.file)}},
        "lake": {"path": "none"},
        "spool": {"path": "none"},
    }
    program = (
        "import json, sys; from collector.config import loader;"
        "from collector.agent.plan import open_sources;"
        "found = open_sources(loader.parse(json.load(sys.stdin), 'test'));"
        "print(sorted(found), found['statistics'].identify().node, 'jpype' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], input=json.dumps(raw), capture_output=True, text=True,
        check=False, timeout=60, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert ran.stdout.strip() == "['statistics'] billing False", ran.stderr


def test_a_call_that_statistics_do_not_have_is_named(
    tmp_path: Path, source: StatisticsSource
) -> None:
    (tmp_path / "own.yaml").write_text(
        "family: own\nvia: statistics\nroles: [client]\nmetrics:\n  own.value:\n"
        "    {unit: '1', description: d, call: brokers.*.rtt.avg}\n"
    )
    with pytest.raises(SourceError, match=r"own.value: statistics do not have brokers.\*.rtt.avg"):
        source.read(catalogue.load(tmp_path).family("own"))
