"""Sources that a configuration leaves to be found, by fakes that answer who they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from collector.agent import plan
from collector.agent.reload import Discovery
from collector.cli import support_bundle
from collector.config.loader import parse
from collector.errors import ConfigError, SettingError, SourceTimeoutError
from collector.model import Identity
from collector.sources.admin.client import Cluster

if TYPE_CHECKING:
    from pathlib import Path

    from collector.config.schema import Config

JMX = {"jmx": {"host": "{host}", "port": 9999, "user": "monitor"}}
ADMIN = {"bootstrap": "kafka:9092", "libs": "/opt/kafka/libs"}


class FakeCluster:
    """Brokers of a cluster. None: no response."""

    def __init__(self) -> None:
        self.hosts: dict[int, str] | None = {1: "kafka-1", 2: "kafka-2"}
        self.with_fenced = True

    def identify(self) -> None:
        if self.hosts is None:
            raise SourceTimeoutError("Admin of kafka:9092: no answer in time")

    def cluster(self) -> Cluster:
        hosts = self.hosts or {}
        return Cluster("c", tuple(hosts), (), {}, self.with_fenced, hosts)


class FakeProcesses:
    """Node IDs of processes by address."""

    def __init__(self) -> None:
        self.nodes: dict[str, str] = {}
        self.asked: list[str] = []
        self.closed = 0

    def __call__(self, config: Config) -> FakeProcesses:
        section = config.source.jmx or config.source.prometheus
        self._at = getattr(section, "host", "") or getattr(section, "url", "")
        return self

    def identify(self) -> Identity:
        self.asked.append(self._at)
        if self._at not in self.nodes:
            raise SourceTimeoutError(f"{self._at}: no answer in time")
        return Identity("c", self.nodes[self._at], None, 1)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    fake = FakeCluster()
    monkeypatch.setattr(plan, "open_admin", lambda *_: fake)
    return fake


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> FakeProcesses:
    fake = FakeProcesses()
    monkeypatch.setattr(plan, "open_transport", fake)
    return fake


def config_of(*sources: dict[str, Any], **sections: Any) -> Config:
    base = {"lake": {"path": "/lake"}, "spool": {"path": "/spool.db"}}
    return parse({**base, "sources": list(sources), **sections}, "agent.yaml")


def names(config: Config) -> list[str]:
    return [one.source.name for one in config.each()]


def test_every_broker_of_the_cluster_is_a_source_at_its_own_address(cluster: FakeCluster) -> None:
    config = config_of({"node": "every", **JMX}, admin=ADMIN)
    found = Discovery()
    assert names(found.found(config)) == []
    found.look(config)
    assert [
        (one.source.name, one.source.jmx and (one.source.jmx.host, one.source.jmx.user))
        for one in found.found(config).each()
    ] == [("broker-1", ("kafka-1", "monitor")), ("broker-2", ("kafka-2", "monitor"))]
    found.look(config)
    cluster.hosts = {2: "kafka-2", 3: "kafka-3"}
    found.look(config)
    assert names(found.found(config)) == ["broker-2", "broker-3"]


@pytest.mark.parametrize(
    "host", ["evil.test/x?", "evil.test#", "127.0.0.1:22/", "a b", "{port}", "evil.test:1"]
)
def test_host_of_a_broker_adds_no_port_and_path(cluster: FakeCluster, host: str) -> None:
    jolokia = {"jolokia": {"url": "http://{host}:8778/jolokia"}}
    config = config_of({"node": "every", **jolokia}, admin=ADMIN)
    cluster.hosts = {1: host, 2: "kafka-2", 3: "fe80::1%eth0"}
    found = Discovery()
    found.look(config)
    assert [one.source.address for one in found.found(config).each()] == [
        "http://{host}:8778/jolokia", "http://kafka-2:8778/jolokia",
        "http://[fe80::1%eth0]:8778/jolokia",
    ]  # fmt: skip


def test_while_nothing_answers_those_are_read_who_were_there(cluster: FakeCluster) -> None:
    config = config_of({"node": "every", **JMX}, admin=ADMIN)
    kept: list[str] = []
    Discovery(None, kept.append).look(config)
    cluster.hosts = None
    found = Discovery(kept[-1])
    found.look(config)
    assert found.problems == {"broker every {host}": "Admin of kafka:9092: no answer in time"}
    assert names(found.found(config)) == ["broker-1", "broker-2"]
    assert names(found.found(config_of({"node": "every", "jolokia": {"url": "http://{host}/"}},
        admin=ADMIN))) == [], "another address: found anew"  # fmt: skip


def test_a_cluster_that_lists_no_fenced_brokers_lists_none_that_went(cluster: FakeCluster) -> None:
    """A broker that is down must stay: that it is down is what is to be known."""
    config = config_of({"node": "every", **JMX}, admin=ADMIN)
    cluster.with_fenced, found = False, Discovery()
    found.look(config)
    cluster.hosts = {1: "kafka-1", 3: "kafka-3"}
    found.look(config)
    assert names(found.found(config)) == ["broker-1", "broker-2", "broker-3"]


def test_a_process_is_asked_for_its_id_until_it_says_so(processes: FakeProcesses) -> None:
    auto = {"node": "auto", "role": "combined", "jmx": {"host": "kafka-7", "port": 1}}
    config = config_of({"node": 3, **JMX}, auto)
    found = Discovery()
    found.look(config)
    assert found.problems == {"combined auto kafka-7": "kafka-7: no answer in time"}
    processes.nodes["kafka-7"] = "7"
    found.look(config)
    assert names(found.found(config)) == ["broker-3", "broker-7", "controller-7"]
    found.look(config)
    assert processes.asked == ["kafka-7"] * 2
    assert processes.closed == 2


def test_each_target_of_a_file_sd_is_a_source(processes: FakeProcesses, tmp_path: Path) -> None:
    file = tmp_path / "kafka.json"
    file.write_text('[{"targets": ["kafka-1:9404", "[::1]:9405"], "labels": {"env": "test"}}]')
    config = config_of({
        "node": "auto", "cluster": "c", "targets_file": str(file),
        "prometheus": {"url": "http://{host}:{port}/metrics"},
    })  # fmt: skip
    urls = ("http://kafka-1:9404/metrics", "http://[::1]:9405/metrics")
    processes.nodes = dict(zip(urls, "12", strict=True))
    found = Discovery()
    found.look(config)
    assert names(found.found(config)) == ["broker-1", "broker-2"]
    assert tuple(p.url for o in found.found(config).each() if (p := o.source.prometheus)) == urls
    file.write_text("- targets: ['kafka-1:9404']\n")
    found.look(config)
    assert names(found.found(config)) == ["broker-1"]
    wrong = {
        "{": "kafka.json:1:2: not YAML",
        '[{"targets": "kafka-1"}]': r"not a file_sd file: \[0\].targets: Expected `array`",
        '[{"targets": ["kafka-1:none"]}]': "kafka.json is not a file_sd file: Port",
        '[{"targets": [], "targets": []}]': "kafka.json:1:18: duplicate key 'targets'",
    }
    for text, told in wrong.items():
        file.write_text(text)
        with pytest.raises(SettingError, match=rf"targets_file: .*{told}"):
            found.look(config)
    assert names(Discovery().found(config_of({"node": 5, **JMX}))) == ["broker-5"]


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ([{"node": "every", **JMX}], "sources[0].node: every requires section admin"),
        ([{"node": 1, **JMX}, {"node": "1", **JMX}], "sources[0]: duplicate source broker-1"),
        ([{"node": 1, **JMX}, {"node": "all", "role": "cluster"}],
         "sources[1].role: role cluster needs a separate agent"),
        ([{"node": 1, **JMX}, {"node": "one", **JMX}],
         "sources[1].node: expected a node id, auto or every, got 'one'"),
        ([{"node": 1, "cluster": "a", **JMX}, {"node": 2, "cluster": "b", **JMX}],
         "sources: an agent reads one cluster"),
        ([{"node": 1, "jmx": {"port": 1, "tls": {}}}, {"node": 2, **JMX}],
         "sources: all jmx sections must have the same tls"),
        ([{"node": 1, "targets_file": "/x", **JMX}], "sources[0].node: set auto"),
        ([{"node": 1, "jmx": {"port": "x"}}], "sources[0].jmx.port: Expected `int`, got `str`"),
        ([{"node": 1, **JMX}, {"node": 2, "jmx": {"prt": 1}}], "sources[1].jmx.prt: unknown key"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_one_line_with_its_place(
    sources: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        config_of(*sources)
    assert str(caught.value).startswith("agent.yaml: ")
    assert message in str(caught.value)


def test_several_brokers_have_no_metadata_log_and_source_stands_alone() -> None:
    log = {"folder": "/data", "libs": "/libs"}
    both = {"node": 1, "role": "combined", "jmx": {"port": 1}}
    assert names(Discovery().found(config_of(both, metadata_log=log))) == [
        "broker-1", "controller-1",
    ]  # fmt: skip
    with pytest.raises(ConfigError, match="metadata_log: belongs to one broker"):
        config_of({"node": 1, **JMX}, {"node": 2, **JMX}, metadata_log=log)
    remote, admin = {"log_dirs": ["/data"]}, {"bootstrap": "k:1", "libs": "/libs"}
    with pytest.raises(ConfigError, match="remote_log: belongs to one broker"):
        config_of({"node": 1, **JMX}, {"node": 2, **JMX}, remote_log=remote, admin=admin)
    with pytest.raises(ConfigError, match="remote_log: requires section admin"):
        config_of({"node": 1, **JMX}, remote_log=remote)
    with pytest.raises(ConfigError, match="set either source or sources"):
        config_of({"node": 1, **JMX}, source={"node": 1, **JMX})


def test_a_bundle_for_who_helps_has_no_secret_of_any_source() -> None:
    one, other = ({"node": n, "jolokia": {"url": f"http://k/?token=s3cret{n}"}} for n in (1, 2))
    shown = support_bundle._configuration(config_of(one, other))
    assert shown.count("/?***") == 3, "the first, and each of the list"
    assert "s3cret" not in shown
