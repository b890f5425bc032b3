"""Samples of Prometheus become runs once, with any response and after any kill."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable

from collector.cli import command
from collector.cli.main import main
from collector.delivery.delivery import Delivery
from collector.sources.prometheus import api
from collector.sources.prometheus.past_scrapes import own_labels
from collector.spool.spool import Spool
from tests.fake_prometheus import TARGET, FakePrometheus, Scrape, failure, success
from tests.lake_builder import BASE, Batch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    from tests.fake_prometheus import Fault, Sample

START: Final = 1_760_000_000 // 3600 * 3600
EVERY: Final = 15
MINUTES: Final = 60


def labels(**own: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(own.items()))


def page(under: float, shrinks: float, started: float = 1.7e12) -> dict[Sample, float]:
    """Return the series of a broker that leads a partition, with default names."""
    of = {"topic": "orders", "partition": "0"}
    manager = "kafka_server_ReplicaManager"
    return {
        ("java_lang_Runtime_StartTime", ()): started,
        ("kafka_server_app_info_StartTimeMs", labels(id="7")): started,
        ("kafka_cluster_Partition_Value", labels(name="InSyncReplicasCount", **of)): 2.0,
        ("kafka_cluster_Partition_Value", labels(name="UnderMinIsr", **of)): under,
        ("kafka_cluster_Partition_Value", labels(name="AtMinIsr", **of)): 0.0,
        (f"{manager}_Value", labels(name="UnderMinIsrPartitionCount")): under,
        (f"{manager}_Value", labels(name="AtMinIsrPartitionCount")): 0.0,
        (f"{manager}_Value", labels(name="LeaderCount")): 1.0,
        (f"{manager}_Count", labels(name="IsrShrinksPerSec")): shrinks,
    }


def kept(minutes: int = MINUTES) -> list[Scrape]:
    """Return a history: under min ISR in minutes 20 to 30, failed 40 to 43, none 50 to 55."""
    scrapes = []
    for at in range(START, START + minutes * 60, EVERY):
        minute = (at - START) / 60
        if 50 <= minute < 55:
            continue
        samples = page(float(20 <= minute < 30), float(at - START))
        scrapes.append(Scrape(at + 0.5, {} if 40 <= minute < 43 else samples))
    return scrapes


@pytest.fixture(autouse=True)
def _not_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a command from ending the process of the tests."""

    def leave(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(command, "_leave", leave)


def run(fake: FakePrometheus, lake: Path, *more: str, minutes: int = MINUTES) -> Result:
    return CliRunner().invoke(
        main,
        ["import", "prometheus", fake.url, str(lake), "--from", iso(START),
         "--to", iso(START + minutes * 60), "--cluster", "c", "--family", "min_isr",
         "--state", str(lake.parent / "state"), *more],
    )  # fmt: skip


def iso(second: float) -> str:
    return dt.datetime.fromtimestamp(second, dt.UTC).isoformat()


def rows(lake: Path, query: str, *values: object) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for name in ("runs", "scrapes", "events"):
            connection.register(name, DeltaTable(f"{lake}/bronze/{name}").to_pyarrow_table())
        return connection.execute(query, values).fetchall()


def recorded(lake: Path) -> int:
    """Return the number of scrapes in the lake, whose time a corrected import does not read."""
    scrapes = lake / "bronze" / "scrapes"
    return len(DeltaTable(str(scrapes)).to_pyarrow_table()) if scrapes.exists() else 0


RUNS: Final = (
    'SELECT metric, topic, epoch_us("start"), epoch_us("end"), lead_us, tail_us, value, flags'
    " FROM runs ORDER BY ALL"
)


def test_history_becomes_runs_with_bounds_of_the_interval(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with FakePrometheus(kept()) as fake:
        done = run(fake, lake)
    assert done.exit_code == 0, done.output
    bad = rows(
        lake,
        'SELECT sum(epoch_us("end") - epoch_us("start") - tail_us),'
        ' sum(epoch_us("end") - epoch_us("start") + lead_us), min(epoch_us("start") - lead_us),'
        " any_value(source) FROM runs WHERE metric = 'kafka.partition.under_min_isr' AND value > 0",
    )
    low, high, first, source = bad[0]
    assert source == "broker-7"
    assert low <= 600_000_000 <= high
    assert high - low < 2 * 15_200_000
    assert first == (START + 20 * 60 - 15) * 1_000_000 + 500_000
    ((shrinks,),) = rows(
        lake, "SELECT sum(value) FROM runs WHERE metric = 'kafka.broker.isr_shrinks'"
    )
    assert shrinks == MINUTES * 60 - EVERY
    ((where,),) = rows(lake, "SELECT new FROM events WHERE kind = 'imported'")
    assert where == f"Prometheus of {fake.url.partition('//')[2]}"


def test_missing_scrapes_are_unknown(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with FakePrometheus(kept()) as fake:
        assert run(fake, lake).exit_code == 0
    attempts = rows(
        lake,
        'SELECT epoch("start"), epoch("end"), outcome, error FROM scrapes ORDER BY 1',
    )
    failed = [(start, end, error) for start, end, outcome, error in attempts if outcome != "ok"]
    assert {error.partition(": ")[2] for *_, error in failed} == {
        "Prometheus could not scrape it (up is 0)",
        "Prometheus has no scrape of it",
    }
    assert sum(end - start for start, end, _ in failed) == pytest.approx(180 + 300, abs=40)
    for start, end in ((40 * 60 + 1, 43 * 60), (50 * 60 + 38, 55 * 60)):  # except 2.5 intervals
        assert not rows(
            lake,
            'SELECT * FROM runs WHERE epoch("start") < ? AND epoch("end") > ?',
            START + end,
            START + start,
        )


def test_second_import_adds_only_new_scrapes(tmp_path: Path) -> None:
    lake, whole = tmp_path / "lake", tmp_path / "other" / "lake"
    with FakePrometheus(kept()) as fake:
        for minutes in (25, 25, MINUTES):
            assert run(fake, lake, minutes=minutes).exit_code == 0
            before = rows(lake, RUNS)
            assert run(fake, lake, "--state", str(tmp_path / "new"), minutes=minutes).exit_code == 0
            assert rows(lake, RUNS) == before
        assert run(fake, whole).exit_code == 0
    total = "SELECT sum(value) FROM runs WHERE metric = 'kafka.broker.isr_shrinks'"
    assert rows(lake, total) == rows(whole, total)


def test_import_skips_time_of_an_agent_and_later(tmp_path: Path) -> None:
    lake, since = tmp_path / "lake", START - BASE.timestamp()
    agent = Batch()
    known = {"source": "broker-7", "cluster": "c"}
    agent.scrape("min_isr", since + 300, since + 600, **known)
    agent.scrape("min_isr", since + 1200, since + 1500, "timeout", **known)
    agent.scrape("quotas", since, since + 3600, **known)  # another family
    agent.scrape("min_isr", since, since + 3600, source="broker-8", cluster="c")
    agent.commit(lake)
    with FakePrometheus(kept()) as fake:
        done = run(fake, lake)
        assert done.exit_code == 0, done.output
        assert "skipped 0.75 of 1.00 h" in done.output
        assert "0 of 0 scrapes" in run(fake, lake, "--state", str(tmp_path / "new")).output
    spans = rows(
        lake,
        'SELECT epoch("start") - ?, epoch("end") - ? FROM scrapes WHERE agent <> ? ORDER BY 1',
        START,
        START,
        agent.agent,
    )
    assert all(0 <= a < b <= 300 or 600 <= a < b <= 1200 for a, b in spans)
    assert sum(b - a for a, b in spans) == pytest.approx(900, abs=2)
    runs = rows(lake, 'SELECT epoch("start") - ?, epoch("end") - ? FROM runs', START, START)
    assert runs
    assert all(0 <= a < b <= 300 or 600 <= a < b <= 1200 for a, b in runs)


class KilledError(BaseException):
    """Simulates kill -9: no code of jmxlake runs after it."""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["before a commit", "after a commit", "between", "within"])
def test_killed_import_continues_exactly_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    whole, lake = tmp_path / "whole" / "lake", tmp_path / "lake"
    monkeypatch.setattr(api, "_LONGEST_US", 600_000_000)
    with FakePrometheus(kept()) as fake:
        assert run(fake, whole).exit_code == 0
        with monkeypatch.context() as patch:
            _kill(patch, where)
            with pytest.raises(KilledError):
                CliRunner().invoke(main, _command(fake, lake), standalone_mode=False,
                                   catch_exceptions=False)  # fmt: skip
        assert run(fake, lake).exit_code == 0
    total = "SELECT sum(value) FROM runs WHERE metric = 'kafka.broker.isr_shrinks'"
    assert rows(lake, total) == rows(whole, total)
    twice = rows(
        lake,
        "SELECT * FROM runs a JOIN runs b ON a.metric = b.metric AND a.topic IS NOT DISTINCT FROM"
        ' b.topic AND a."start" < b."start" AND b."start" < a."end"'
        " AND NOT list_contains(coalesce(a.flags, []), 'increase')",
    )
    assert twice == []
    seconds = 'SELECT sum(epoch("end") - epoch("start")) FROM scrapes WHERE outcome = \'ok\''
    ((ours,),), ((theirs,),) = rows(lake, seconds), rows(whole, seconds)
    assert theirs - 2 * EVERY <= ours <= theirs


def _command(fake: FakePrometheus, lake: Path) -> list[str]:
    return ["import", "prometheus", fake.url, str(lake), "--from", iso(START),
            "--to", iso(START + MINUTES * 60), "--cluster", "c", "--family", "min_isr",
            "--state", str(lake.parent / "state")]  # fmt: skip


def _kill(patch: pytest.MonkeyPatch, where: str) -> None:
    commit, remember, append = Delivery.deliver_next, Spool.remember, Spool.append
    count = {"commit": 0, "remember": 0, "append": 0}

    def committed(self: Delivery) -> int:
        count["commit"] += 1
        if self._spool.is_empty():
            return commit(self)
        if where == "before a commit":
            raise KilledError
        done = commit(self)
        if where == "after a commit":
            raise KilledError
        return done

    def remembered(self: Spool, key: str, value: str) -> None:
        remember(self, key, value)
        count["remember"] += key == "imported until"
        if where == "between" and count["remember"] == 3:
            raise KilledError

    def appended(self: Spool, entries: Any) -> None:
        append(self, entries)
        count["append"] += 1
        if where == "within" and count["append"] == 4:
            raise KilledError

    patch.setattr(Delivery, "deliver_next", committed)
    patch.setattr(Spool, "remember", remembered)
    patch.setattr(Spool, "append", appended)


def on_range(answer: Callable[[dict[str, str]], tuple[int, str, bytes] | None]) -> Fault:
    return lambda path, asked: answer(asked) if path.endswith("query_range") else None


def html(asked: dict[str, str]) -> tuple[int, str, bytes]:
    del asked
    return 200, "text/html", b"<html>log in</html>"


NOTHING: Final = {"resultType": "matrix", "result": []}
BAD: Final[dict[str, tuple[Fault, str]]] = {
    "html": (on_range(html), "the answer is 'text/html', not from Prometheus's API"),
    "html of the first question": (lambda _, asked: html(asked), "the answer is 'text/html'"),
    "422": (
        on_range(lambda _: failure(422, "query would load too many samples")),
        'status 422): "query would load too many samples"',
    ),
    "400": (on_range(lambda _: failure(400, "parse error")), 'status 400): "parse error"'),
    "404": (on_range(lambda _: (404, "text/plain", b"no")), "status 404"),
    "nested without end": (
        on_range(lambda _: (200, "application/json", b'{"a":' * 99_999)),
        "not from Prometheus's API",
    ),
    "405": (
        on_range(lambda _: (405, "text/plain", b"no")),
        "status 405: POST is not allowed; allow POST in the proxy",
    ),
    "503 of a proxy": (
        on_range(lambda _: (503, "text/html", b"no")),
        "status 503: the server or a proxy is overloaded or down",
    ),
    "429": (
        on_range(lambda _: (429, "text/html", b"no")), "status 429: the server limits requests",
    ),
    "401": (on_range(lambda _: (401, "text/plain", b"no")), "a login is required"),
    "half": (
        on_range(lambda _: (200, "application/json", b'{"status":"succ')), "not from Prometheus's",
    ),
    "another shape": (on_range(lambda _: success({"resultType": "vector", "result": []})),
                      "not from Prometheus's"),
    "a value that is none": (
        on_range(lambda _: success({
            "resultType": "matrix", "result": [{"metric": TARGET, "values": [[START, "one"]]}],
        })),
        "the answer has invalid values",
    ),
    "in part": (
        on_range(lambda _: success(NOTHING, warnings=["store b is away"])),
        'the answer is incomplete (status 200): " store b is away"',
    ),
    "in part, by VictoriaMetrics": (
        on_range(lambda _: success(NOTHING, isPartial=True)),
        'the answer is incomplete (status 200): " isPartial is true"',
    ),
    "series in part": (
        lambda path, _: success([TARGET], isPartial=True) if path.endswith("series") else None,
        "isPartial is true",
    ),
    "in part, as a word": (on_range(lambda _: success(NOTHING, isPartial="yes")), "not from Prom"),
    "too long": (
        on_range(lambda _: (200, "application/json", b" " * (9 << 20))), "longer than 8 MiB",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.edge(5)) if "part" in one else one for one in BAD]
)
def test_invalid_response_is_one_line_without_rows(tmp_path: Path, name: str) -> None:
    fault, why = BAD[name]
    with FakePrometheus(kept(), fault=fault) as fake:
        done = run(fake, tmp_path / "lake")
    assert done.exit_code == 1
    (line,) = [one for one in done.output.splitlines() if one.startswith("jmxlake-agent:")]
    assert why in line
    assert line.startswith("jmxlake-agent: Prometheus of 127.0.0.1:")


def test_parts_become_shorter_until_they_succeed(tmp_path: Path) -> None:
    def refusing(asked: dict[str, str]) -> tuple[int, str, bytes] | None:
        much = float(asked["end"]) - float(asked["start"]) > 500
        return failure(422, "too many samples") if much else None

    lake, whole = tmp_path / "lake", tmp_path / "other" / "lake"
    with FakePrometheus(kept(), fault=on_range(refusing)) as fake:
        assert run(fake, lake).exit_code == 0
    with FakePrometheus(kept()) as fake:
        assert run(fake, whole).exit_code == 0
    assert rows(lake, RUNS) == rows(whole, RUNS)


def edited(change: Callable[[Scrape], Scrape]) -> list[Scrape]:
    return [change(one) for one in kept()]


def test_downsampled_block_is_refused(tmp_path: Path) -> None:
    seldom = [one for place, one in enumerate(kept()) if place % 20 == 0]
    with FakePrometheus(seldom) as fake:
        done = run(fake, tmp_path / "lake")
    assert done.exit_code == 1
    assert "the scrape interval is 300 s" in done.output
    assert "downsampled" in done.output
    assert all(one["max_source_resolution"] == "0s" for one in fake.asked)


def changing(change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> FakePrometheus:
    """Return a server with a change of its series."""
    fake = FakePrometheus(kept())

    def fault(path: str, asked: dict[str, str]) -> tuple[int, str, bytes] | None:
        if not path.endswith("query_range"):
            return None
        data = json.loads(fake.answer(path, asked)[2])["data"]
        return success({**data, "result": change(data["result"])})

    fake.fault = fault
    return fake


def test_two_targets_of_one_broker_are_refused(tmp_path: Path) -> None:
    def doubled(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            {**one, "metric": {**one["metric"], "replica": name}} for one in found for name in "ab"
        ]

    with changing(doubled) as fake:
        done = run(fake, tmp_path / "lake")
    assert done.exit_code == 1
    assert "two targets match this broker" in done.output


def test_mean_of_up_is_refused(tmp_path: Path) -> None:
    def meant(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            {**one, "values": [[at, "0.4"] for at, _ in one["values"]]}
            if one["metric"].get("__name__") == "up"
            else one
            for one in found
        ]

    with changing(meant) as fake:
        done = run(fake, tmp_path / "lake")
    assert done.exit_code == 1
    assert "up is 0.4; check whether its blocks are downsampled" in done.output


def test_two_samples_of_one_mbean_are_refused(tmp_path: Path) -> None:
    def doubled(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            *found,
            *(one for one in found if one["metric"].get("name") == "UnderMinIsr"),
        ]

    with changing(doubled) as fake:
        done = run(fake, tmp_path / "lake")
    assert done.exit_code == 1
    assert "two samples of kafka_cluster_Partition_Value belong to MBean" in done.output
    assert recorded(tmp_path / "lake") == 0


def test_older_samples_widen_bounds_oldest_are_ignored(tmp_path: Path) -> None:
    """As with merged responses of two servers, or a series without a stale marker."""

    def older(seconds: float) -> Callable[[list[dict[str, Any]]], list[dict[str, Any]]]:
        def change(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
            return [
                {
                    **one,
                    "values": [[at, str(float(value) - seconds)] for at, value in one["values"]],
                }
                if one["metric"].get("name") == "kafka_cluster_Partition_Value"
                and "__name__" not in one["metric"]
                else one
                for one in found
            ]

        return change

    lake, late = tmp_path / "lake", tmp_path / "late" / "lake"
    with changing(older(10.0)) as fake:
        assert run(fake, lake).exit_code == 0
    ((first,),) = rows(
        lake,
        'SELECT min(epoch_us("start") - lead_us) FROM runs'
        " WHERE metric = 'kafka.partition.under_min_isr' AND value > 0",
    )
    assert first == (START + 20 * 60 - 15 - 10) * 1_000_000 + 500_000
    with changing(older(100.0)) as fake:
        done = run(fake, late)
    assert done.exit_code == 1
    assert "longer than the interval" in done.output
    assert recorded(late) == 0


def test_node_id_must_be_known(tmp_path: Path) -> None:
    def nameless(one: Scrape) -> Scrape:
        own = {key: value for key, value in one.samples.items() if "app_info" not in key[0]}
        return replace(one, samples=own)

    lake = tmp_path / "lake"
    with FakePrometheus(edited(nameless)) as fake:
        done = run(fake, lake)
        assert done.exit_code == 78
        assert "set --node 'b-1:11001'=ID" in done.output
        done = run(fake, lake, "--node", "b-1:11001=9")
        assert done.exit_code == 0, done.output
    assert rows(lake, "SELECT DISTINCT source FROM runs") == [("broker-9",)]


def test_restart_resets_counters_and_is_an_event(tmp_path: Path) -> None:
    half = START + MINUTES * 30

    def restarted(one: Scrape) -> Scrape:
        late = one.at >= half
        again = page(0.0, one.at - half, 1.75e12) if late else page(0.0, one.at - START)
        return replace(one, samples=one.samples and again)

    lake = tmp_path / "lake"
    with FakePrometheus(edited(restarted)) as fake:
        assert run(fake, lake).exit_code == 0
    ((total,),) = rows(
        lake, "SELECT sum(value) FROM runs WHERE metric = 'kafka.broker.isr_shrinks'"
    )
    assert total == 2 * (MINUTES * 30 - EVERY) + 0.5  # of the second JVM since its start
    assert rows(lake, "SELECT count(*) FROM events WHERE kind = 'source_restart'") == [(1,)]


def test_login_and_tenant_are_sent(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("secret-one\n")
    password.chmod(0o600)
    with FakePrometheus(kept()) as fake:
        done = run(
            fake, tmp_path / "lake", "--user", "sre", "--password-file", str(password),
            "--tenant", "team-a",
        )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "secret-one" not in done.output
    assert {one["Authorization"].partition(" ")[0] for one in fake.headers} == {"Basic"}
    assert {one["X-Scope-OrgID"] for one in fake.headers} == {"team-a"}


def test_target_labels_are_removed() -> None:
    of_series = {"__name__": "x", "topic": "a", "exported_job": "b", **TARGET}
    assert own_labels(of_series, TARGET) == {"topic": "a", "job": "b"}


@pytest.mark.parametrize(
    ("more", "why", "code"),
    [
        (["--label", "pod"], "no target with a label pod", 78),
        (["--family", "nonsense"], "--family nonsense: unknown. Use one of", 78),
        (["--to", iso(START - 5)], "--to must be after --from", 78),
        (["--step", "3m"], "window", 78),
        (["--from", "yesterday"], "does not match the formats", 2),
    ],
)
def test_wrong_options_are_a_one_line_error(
    tmp_path: Path, more: list[str], why: str, code: int
) -> None:
    with FakePrometheus(kept()) as fake:
        done = run(fake, tmp_path / "lake", *more)
    assert done.exit_code == code, done.output
    assert why in done.output


def labelled(only: str = "", **more: str) -> list[Scrape]:
    """Return scrapes in which relabelling added a label to all samples, or to some."""

    def change(one: Scrape) -> Scrape:
        return replace(
            one,
            samples={
                (name, labels(**dict(own), **more) if not only or only in dict(own) else own): value
                for (name, own), value in one.samples.items()
            },
        )

    return edited(change)


@pytest.mark.edge(5)
@pytest.mark.parametrize(
    ("scrapes", "label"),
    [
        (labelled("topic", team="payments"), "team"),
        (labelled("partition", customerid="7"), "customerid"),
        (labelled(env="prod"), "env"),
        (labelled("name", dc="eu-1", rack="a"), "dc"),
    ],
    ids=["team of a topic", "customer of a partition", "env of all", "two of most"],
)
def test_label_of_relabelling_is_named(scrapes: list[Scrape], label: str, tmp_path: Path) -> None:
    with FakePrometheus(scrapes) as fake:
        done = run(fake, tmp_path / "lake", "--node", "b-1:11001=7")
    assert done.exit_code == 1
    assert f"label {label} of " in done.output
    assert recorded(tmp_path / "lake") == 0, "the corrected import reads it"


@pytest.mark.edge(5)
def test_added_label_of_app_info_is_named(tmp_path: Path) -> None:
    with FakePrometheus(labelled(env="prod")) as fake:
        done = run(fake, tmp_path / "lake")
    assert done.exit_code == 78
    assert "label env of kafka.server:type=app-info" in done.output


def without_series(name: str) -> list[Scrape]:
    """Return scrapes without the samples of an MBean, dropped by metric_relabel_configs."""

    def change(one: Scrape) -> Scrape:
        kept_ = {key: value for key, value in one.samples.items() if ("name", name) not in key[1]}
        return replace(one, samples=kept_)

    return edited(change)


@pytest.mark.edge(4)
@pytest.mark.parametrize("name", ["InSyncReplicasCount", "UnderMinIsr", "AtMinIsr", "LeaderCount"])
def test_dropped_samples_make_history_unknown(name: str, tmp_path: Path) -> None:
    """The broker's own count is kept: it was 1 for ten minutes."""
    lake = tmp_path / "lake"
    with FakePrometheus(without_series(name)) as fake:
        done = run(fake, lake)
    assert done.exit_code == 0, done.output
    assert rows(lake, "SELECT count(*) FROM runs WHERE metric LIKE 'kafka.partition.%'") == [(0,)]
    assert {one for (one,) in rows(lake, "SELECT outcome FROM scrapes")} == {"error"}
    ((counted,),) = rows(
        lake,
        'SELECT sum(epoch_us("end") - epoch_us("start")) FROM runs'
        " WHERE metric = 'kafka.broker.under_min_isr_partitions' AND value = 1",
    )
    assert counted == pytest.approx(600_000_000, abs=31_000_000)
    ((why,),) = rows(
        lake, "SELECT new FROM events WHERE kind = 'partition_metrics_hidden' AND new <> ''"
    )
    assert "LeaderCount is hidden" in why or "the broker leads 1 partitions" in why


@pytest.mark.edge(5)
def test_time_without_scrapes_is_refused(tmp_path: Path) -> None:
    up_alone = [Scrape(START + 0.5, {})]
    with FakePrometheus(up_alone) as fake:
        done = run(fake, tmp_path / "lake", "--node", "b-1:11001=7")
    assert done.exit_code == 1
    assert "broker-7: no data imported" in done.output
