"""Rules on objectives, played by Prometheus's own tool: they burn when the report says so."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import subprocess
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final
from urllib.error import URLError
from urllib.request import urlopen

import pytest
import yaml
from click.testing import CliRunner

from collector.catalogue import load
from collector.model import Answer, Identity, Reading, Scrape, Series
from collector.telemetry.agent_stats import AgentStats
from collector.telemetry.health import HealthServer
from collector.telemetry.live_metrics import Live
from demo.ports import free_ports
from lakehouse.cli.main import main
from lakehouse.core import lake as lakes, periods
from lakehouse.core.metrics import known
from lakehouse.core.periods import Period
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.rollup.run import rollup
from lakehouse.slo import attainment, burn_rate
from lakehouse.slo.openslo import objective_files
from lakehouse.tables.agent_names import METRIC_KNOWN, UNSHOWN_SERIES, live_name
from tests import rollups
from tests.lake_builder import BASE, CLUSTER, Batch
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse.core.objective import Objective

STEP: Final = burn_rate.EVERY_SECONDS
WINDOW: Final = 300
HOURS: Final = 5 * 3600
MINUTE: Final = 60
UNDER: Final = "kafka.partition.under_min_isr"
THROTTLE: Final = "kafka.client.produce.throttle_time"
LAG: Final = "kafka.group.lag"
LOST: Final = "kafka.group.non_consumed"
ODD: Final = 'c"\\\n\t\r\0\u2028{{ $labels.x }}[*'
LOSSES: Final = f"{LOST}.low"
BURNS: Final = "JmxlakeBudgetBurns"
UNKNOWN: Final = "JmxlakeObjectiveUnknown"


def objectives(names: str = "min-isr produce-throttling lost-before-read") -> list[Objective]:
    found = [one for one in objective_files.load() if one.name in names]
    return [
        *found,
        *(
            one
            for one in objective_files.load(objective_files.OPTIONAL)
            if one.name == "consumers-keep-up"
        ),
    ]


@dataclasses.dataclass(frozen=True)
class Story:
    """A series, and what it was from when to when; between these it was zero. Seconds."""

    metric: str
    source: str
    subject: dict[str, Any]
    spans: tuple[tuple[int, int, float], ...]

    def bronze(self, batch: Batch) -> None:
        """Its runs, cut at windows, and zeros between them."""
        edges = {0, HOURS, *(edge for start, end, _ in self.spans for edge in (start, end))}
        cuts = sorted(edges | set(range(0, HOURS, WINDOW)))
        for start, end in pairwise(cuts):
            batch.run(self.metric, start, end, self.at(start), source=self.source, **self.subject)
        # It was there before, so that the whole of each length is expected.
        began = -4 * 86_400
        batch.run(self.metric, began, began + WINDOW, 0.0, source=self.source, **self.subject)

    def prometheus(self) -> dict[str, str]:
        """What an agent shows at each evaluation: only what is above zero."""
        labels = {"cluster": CLUSTER, "source": self.source, "job": "j", "instance": self.source}
        shown = ",".join(f'{key}="{value}"' for key, value in (labels | self.subject).items())
        values = (self.at(second) for second in range(0, HOURS + STEP, STEP))
        text = " ".join(f"{value:g}" if value else "stale" for value in values)
        return {"series": f"{live_name(self.metric)}{{{shown}}}", "values": text}

    def at(self, second: int) -> float:
        return next((value for start, end, value in self.spans if start <= second < end), 0.0)


def part(topic: str, partition: int) -> dict[str, Any]:
    return {"topic": topic, "partition": partition}


@dataclasses.dataclass(frozen=True)
class Loss:
    """Offsets that a group lost at a second, in a window of the agent's counters."""

    group: str
    second: int

    def bronze(self, batch: Batch) -> None:
        subject = {"source": "broker-1", "group": self.group, **part("orders", 0)}
        for start in (-4 * 86_400, *range(0, HOURS, WINDOW)):
            lost = 7.0 if start <= self.second < start + WINDOW else 0.0
            for bound in ("low", "high"):
                batch.counter(f"{LOST}.{bound}", start, start + WINDOW, lost, **subject)

    def prometheus(self) -> dict[str, str]:
        """The agent's total: it is there from its first loss on."""
        shown = f'cluster="{CLUSTER}",job="j",instance="broker-1",group="{self.group}"'
        values = ("7" if second >= self.second else "_" for second in range(0, HOURS + STEP, STEP))
        series = f"{live_name(LOST)}_low_total{{{shown}}}"
        return {"series": series, "values": " ".join(values)}


STORIES: Final = (
    # A minute, then again and again: the fast pair, then the middle one.
    Story(UNDER, "broker-1", part("orders", 0), ((630, 690, 1), (5430, 5580, 1), (9090, 9150, 1))),
    # At the same time on another broker: the topic is bad once, not twice.
    Story(UNDER, "broker-2", part("orders", 1), ((640, 685, 1),)),
    # Under the fast pair's limit, whichever way the two partitions are counted.
    Story(UNDER, "broker-1", part("calm", 0), ((630, 660, 1), (7230, 7260, 1))),
    Story(UNDER, "broker-2", part("calm", 1), ((630, 660, 1),)),
    Story(THROTTLE, "broker-1", {"client_id": "billing"}, ((915, 1380, 50), (1920, 2370, 50))),
    Story(THROTTLE, "broker-2", {"client_id": "billing"}, ((1350, 1710, 70),)),
    Story(THROTTLE, "broker-1", {"client_id": "quick"}, ((915, 1320, 50),)),
    # Too far behind only where both brokers' parts are added up.
    Story(LAG, "broker-1", {"topic": "orders", "group": "g"}, ((1230, 9030, 60_000),)),
    Story(LAG, "broker-2", {"topic": "orders", "group": "g"}, ((2430, 12_030, 60_000),)),
    Loss("late", 930),
    Loss("before", -WINDOW),
)  # fmt: skip


@pytest.fixture(scope="module")
def burning(tmp_path_factory: pytest.TempPathFactory) -> dict[int, set[tuple[str, str, str]]]:
    """Objective, subject and windows of which the report says ``burning``, by second."""
    root = tmp_path_factory.mktemp("lake")
    batch = Batch()
    for story in STORIES:
        story.bronze(batch)
    for start in (-4 * 86_400, *range(0, HOURS, WINDOW)):
        for family in ("min_isr", "quotas", "offsets"):
            for source in ("broker-1", "broker-2"):
                batch.scrape(family, start, start + WINDOW, source=source)
    batch.commit(root)
    engine = LocalEngine(lakes.at(str(root)))
    rollup(engine, tuple(objectives()), rollups.Wanted(tidy="never"))
    return {second: set(_burning(engine, second)) for second in range(WINDOW, HOURS, WINDOW)}


def _burning(engine: LocalEngine, second: int) -> Iterator[tuple[str, str, str]]:
    at = BASE + dt.timedelta(seconds=second)
    options = attainment.Options(burns=True)
    period, now = Period(BASE, at, ""), periods.micros(at + dt.timedelta(days=1))
    for one in attainment.read(engine, objectives(), period, now, options=options):
        for alert in one.alerts:
            if alert.verdict == "burning":
                pair = alert.pair
                names = one.subject.names
                who = names["topic"] or names["client_id"] or names["group"] or ""
                yield one.objective.name, who, f"{pair.long}/{pair.short}"


def played(
    folder: Path, series: list[dict[str, str]], *tests: dict[str, Any], of: Any = None
) -> None:
    """Let ``promtool`` play the rules; it says what is otherwise than a test has it."""
    (folder / "rules.yaml").write_text(burn_rate.to_yaml(of or objectives(), known()))
    file = folder / "test.yaml"
    file.write_text(yaml.safe_dump({
        "rule_files": ["rules.yaml"], "evaluation_interval": f"{STEP}s",
        "tests": [{"interval": f"{STEP}s", "input_series": series, "promql_expr_test": [*tests]}],
    }))  # fmt: skip
    promtool("check", "rules", folder / "rules.yaml")
    promtool("test", "rules", file)


def promtool(*arguments: str | Path) -> None:
    command = ["promtool", *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def firing(
    second: int, *wanted: dict[str, str], alert: str = BURNS, of: str = ".*"
) -> dict[str, Any]:
    """That just these alerts fire at a second, by some of their labels."""
    by = sorted({key for labels in wanted for key in labels})
    which = f'alertname="{alert}",alertstate="firing",objective=~"{of}"'
    expr = f"count by ({', '.join(by)}) (ALERTS{{{which}}})"
    samples = [
        {"labels": "{" + ", ".join(f'{k}="{v}"' for k, v in labels.items()) + "}", "value": 1}
        for labels in wanted
    ]
    return {"expr": expr, "eval_time": f"{second}s", "exp_samples": samples}


def alike(objective: str, who: str, windows: str) -> dict[str, str]:
    key = {"min-isr": "topic", "produce-throttling": "client_id"}.get(objective, "group")
    return {"objective": objective, key: who, "windows": windows}


def test_the_pager_rings_while_the_report_says_burning(
    burning: dict[int, set[tuple[str, str, str]]], tmp_path: Path
) -> None:
    seen = {one for found in burning.values() for one in found}
    assert {(name, who) for name, who, _ in seen} == {
        ("min-isr", "orders"), ("produce-throttling", "billing"), ("consumers-keep-up", "g"),
        ("lost-before-read", "late"),
    }  # fmt: skip
    assert {windows for *_, windows in seen} == {"1h/5m", "6h/30m", "3d/6h"}
    assert [] in (sorted(found) for found in burning.values()), "at times nothing burns"
    series = [story.prometheus() for story in STORIES]
    played(tmp_path, [*series, known_from(LOSSES)], *_wanted(burning))


def _wanted(burning: dict[int, set[tuple[str, str, str]]]) -> Iterator[dict[str, Any]]:
    """What is to fire: what burns. A loss is bad for five minutes, in gold those of its window."""
    for second, found in burning.items():
        before = burning.get(second - WINDOW, set())
        losses = {one for one in before if one[0] == "lost-before-read"}
        yield firing(second, *(alike(*one) for one in sorted(found | losses)))


def known_from(metric: str, values: str = f"1x{HOURS // STEP}", agent: str = "broker-1") -> Any:
    labels = f'metric="{metric}",cluster="{CLUSTER}",job="j",instance="{agent}"'
    return {"series": f"{METRIC_KNOWN}{{{labels}}}", "values": values}


def test_what_is_not_known_is_an_alert_of_its_own_and_no_page(tmp_path: Path) -> None:
    steps = 1800 // STEP
    series = [
        known_from(UNDER, f"1x{steps} 0x{steps} 1x{4 * steps}"),
        known_from(UNDER, f"1x{3 * steps} stale _x{2 * steps}", "broker-2"),
        known_from("kafka.partition.leaderless", f"1x{6 * steps}"),
        {
            "series": f'{UNSHOWN_SERIES}{{metric="{UNDER}",job="j",instance="broker-3"}}',
            "values": f"0x{5 * steps} 9x{steps}",
        },
    ]
    wanted = {
        1500: (),
        2400: ("broker-1",),
        4500: (),
        6000: ("broker-2",),
        9900: ("broker-2", "broker-3"),
    }
    played(
        tmp_path, series,
        *(
            firing(at, *({"instance": one} for one in agents), alert=UNKNOWN, of="min-isr")
            for at, agents in wanted.items()
        ),
        firing(9900),
        firing(9900, {"objective": "produce-throttling"}, alert=UNKNOWN, of="produce-throttling"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "matched", "others"),
    [
        ("a.b*", ["a.b", "a.bc\n"], ["axb", "za.b"]),
        ("?[!x-z]", ["aa"], ["ax", "a"]),
        ('c"\\{{ $x }}*', ['c"\\{{ $x }}'], ["c"]),
        ("[]|]", ["]", "|"], ["[", ""]),
        ("[", ["["], ["x"]),
    ],
)
def test_a_pattern_is_the_same_to_prometheus(
    pattern: str, matched: list[str], others: list[str], tmp_path: Path
) -> None:
    """As fnmatchcase has it, which the report goes by."""
    (usual,) = (one for one in objective_files.load() if one.name == "min-isr")
    odd = dataclasses.replace(usual, match={"topic": (pattern,)}, labels={"a.b": ('{{x"\\',)})
    assert [odd.matches({"topic": name}) for name in matched + others] == [
        *[True] * len(matched), *[False] * len(others),
    ]  # fmt: skip
    series = [
        {
            "series": f"{live_name(UNDER)}{{topic={json.dumps(name)},source={json.dumps(name)}}}",
            "values": f"1x{3600 // STEP}",
        }
        for name in matched + others
    ]
    shown = [{"labels": f"{{topic={json.dumps(name)}}}", "value": 1} for name in matched]
    expr = 'count by (topic) (ALERTS{alertname="JmxlakeBudgetBurns",windows="1h/5m"})'
    test = {"expr": expr, "eval_time": "3600s", "exp_samples": shown}
    played(tmp_path, series, test, of=[odd])


def test_the_shipped_objectives_have_rules_and_what_has_none_is_named(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    run = CliRunner().invoke(main, ["slo", "rules", "--out", str(file)])
    assert (run.exit_code, run.output) == (0, "")
    promtool("check", "rules", file)
    run = CliRunner().invoke(
        main, ["slo", "rules", str(objective_files.OPTIONAL), "--out", str(file)]
    )
    assert run.exit_code == 3
    assert [line.rpartition(": no rules for ")[2] for line in run.stderr.splitlines()] == [
        "clean-elections: agents do not show kafka.partition.unclean_leader in /metrics",
        "consumers-in-time: agents do not show kafka.group.time_lag.low in /metrics",
        "deletion-lag: agents do not show kafka.partition.delete_lag.segments in /metrics",
        "fetch-availability: burn rates are of time, not of events",
        "produce-availability: burn rates are of time, not of events",
        "spare-replicas: agents do not show kafka.partition.without_spare in /metrics",
    ]
    promtool("check", "rules", file)


def test_a_real_prometheus_reads_every_name_and_rings(tmp_path: Path) -> None:
    """Names as clients choose them, from /metrics to an alert that the API gives."""
    stats, live, port = AgentStats(), Live(dict), free_ports(1)[0]
    live.expect({("broker-1", "quotas"): (load().family("quotas"), 600_000_000)})
    values = {Series(THROTTLE, user=user, client_id=ODD): 5.0 for user in ("", None, "u")}
    answer = Answer((Reading(THROTTLE, "gauge", values=dict(values)),), 3)
    identity = Identity(CLUSTER, "1", None, 1)
    live.scraped(Scrape("quotas", 0, 0, 1, 600_000_000, "ok", identity, answer, source="broker-1"))
    live.most = 10
    stats.registry.register(live)
    (usual,) = (one for one in objective_files.load() if one.name == "produce-throttling")
    never = dataclasses.replace(usual, target=0.9999, match={"client_id": (f"*{ODD[:4]}*",)})
    text = burn_rate.to_yaml([never], known()).replace("15s", "1s").replace("1m", "1s")
    (tmp_path / "rules.yaml").write_text(text)
    health = HealthServer("127.0.0.1", 0, stats)
    (tmp_path / "prometheus.yaml").write_text(yaml.safe_dump({
        "rule_files": ["rules.yaml"],
        "scrape_configs": [{
            "job_name": "jmxlake-agent", "scrape_interval": "1s",
            "static_configs": [{"targets": [f"127.0.0.1:{health.server_address[1]}"]}],
        }],
    }))  # fmt: skip
    flags = ("config.file", tmp_path / "prometheus.yaml"), ("storage.tsdb.path", tmp_path / "data")
    listen = f"--web.listen-address=127.0.0.1:{port}"
    command = ["prometheus", *(f"--{name}={value}" for name, value in flags), listen]
    alerts = f"http://127.0.0.1:{port}/api/v1/alerts"

    def firing_for() -> set[tuple[str | None, str | None]]:
        """User and client id of the alerts that fire."""
        with (
            suppress(URLError),
            urlopen(alerts, timeout=10) as told,
        ):
            return {
                (one["labels"].get("user"), one["labels"].get("client_id"))
                for one in json.load(told)["data"]["alerts"]
                if (one["labels"]["alertname"], one["state"]) == (BURNS, "firing")
            }
        return set()

    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_for(firing_for, 60)
            shown = ODD.replace("\0", "\u2400")
            assert firing_for() == {(None, shown), ("u", shown)}
        finally:
            server.terminate()
            server.wait(60)
            health.close()
