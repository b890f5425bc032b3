"""What is Jolokia's alone, against a real controller: TLS, a crippled agent, no JVM of our own."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import httpx
import pytest

from collector import catalogue
from collector.errors import ConfigError, SourceError, SourceRefusedError
from collector.settings import Duration
from collector.sources.base.identity import Expected
from collector.sources.jolokia import JolokiaSource
from collector.sources.transports import Jolokia
from demo.cluster import Cluster
from demo.jars import jolokia_jar
from demo.ports import free_ports
from demo.properties import as_text
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager


pytestmark = pytest.mark.kafka

PASSWORD: Final = "agent-secret-1"
FAMILY: Final = catalogue.load().family("controller")
CONTROLLER: Final = Expected("controller", "3000")


class Agents(NamedTuple):
    """Jolokia agents, each in a controller of its own: over TLS, and with limits on collections.

    Two agents in one JVM would share a static variable as they start (`JvmAgent.server`), and now
    and then only one of them opens its port.
    """

    cluster: Cluster
    folder: Path
    tls_port: int
    short_ports: dict[int, int]

    @property
    def password_file(self) -> Path:
        return self.folder / "password"


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agents]:
    folder = tmp_path_factory.mktemp("jolokia")
    (folder / "password").write_text(f"{PASSWORD}\n")
    _make_keys(folder)
    tls_port, *others = free_ports(3)
    short = dict(zip((2, 500), others, strict=True))
    tls = {
        "protocol": "https",
        "keystore": str(folder / "server.p12"),
        "keyStoreType": "PKCS12",
        "keystorePassword": PASSWORD,
    }
    with ExitStack() as running:
        cluster = running.enter_context(_controller(folder, "tls", tls_port, tls))
        for most, port in short.items():
            limit = {"maxCollectionSize": str(most)}
            running.enter_context(_controller(folder, f"short{most}", port, limit))
        agents = Agents(cluster, folder, tls_port, short)
        wait_for(lambda: _missing(agents) is None, 60, lambda: _missing(agents))
        wait_for(lambda: all(map(_answers, others)), 60, lambda: f"{others}: no answer of all")
        yield agents


def _controller(
    folder: Path, name: str, port: int, settings: dict[str, str]
) -> AbstractContextManager[Cluster]:
    option = _javaagent(folder / f"{name}.properties", port, settings)
    return Cluster.start(folder / name, 0, jvm_options=lambda _: [option])


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/jolokia/", timeout=5).status_code == 401
    except httpx.HTTPError:
        return False


def _javaagent(file: Path, port: int, settings: dict[str, str]) -> str:
    login = {"user": "monitor", "password": PASSWORD, "discoveryEnabled": "false"}
    file.write_text(as_text({"host": "127.0.0.1", "port": str(port), **login, **settings}))
    return f"-javaagent:{jolokia_jar()}=config={file}"


def _make_keys(folder: Path) -> None:
    def keytool(*arguments: str) -> None:
        subprocess.run(
            ["keytool", *arguments, "-storepass", PASSWORD, "-noprompt"],
            cwd=folder, capture_output=True, check=True,
        )  # fmt: skip

    for name in ("server", "stranger"):
        store = ("-keystore", f"{name}.p12", "-alias", name)
        keytool("-genkeypair", *store, "-keyalg", "EC", "-dname", f"CN={name}",
                "-ext", "san=ip:127.0.0.1")  # fmt: skip
        keytool("-exportcert", "-rfc", *store, "-file", f"{name}.pem")


def _source(agents: Agents, url: str, **changed: Any) -> JolokiaSource:
    login = {"user": "monitor", "password_file": agents.password_file, "timeout": Duration("20s")}
    return JolokiaSource(CONTROLLER, Jolokia(url, **{**login, **changed}))


def _over_tls(agents: Agents) -> JolokiaSource:
    url = f"https://127.0.0.1:{agents.tls_port}/jolokia/"
    return _source(agents, url, ca_file=agents.folder / "server.pem")


def _missing(agents: Agents) -> str | None:
    """Why no active controller is read; None where one is."""
    source = _over_tls(agents)
    try:
        answer = source.read(FAMILY)
    except SourceError as error:
        return str(error)
    finally:
        source.close()
    told = {one.metric: set(one.values.values()) for one in answer.readings}
    return None if told["kafka.controller.active"] == {1.0} else f"it told {told}"


def test_a_controller_is_read_over_tls(agents: Agents) -> None:
    with closing(_over_tls(agents)) as source:
        identity = source.identify()
        assert (identity.cluster, identity.node) == (agents.cluster.id, "3000")
        assert source.read(FAMILY).beans > 2
        source.close()
        assert source.identify() == identity


@pytest.mark.parametrize(
    ("host", "ca_file", "told"),
    [
        ("127.0.0.1", "stranger.pem", "self-signed certificate"),
        ("127.0.0.1", None, "self-signed certificate"),
        ("localhost", "server.pem", "Hostname mismatch"),
    ],
)
def test_a_certificate_that_does_not_fit_is_refused(
    agents: Agents, host: str, ca_file: str | None, told: str
) -> None:
    file = agents.folder / ca_file if ca_file else None
    with pytest.raises(SourceRefusedError, match=rf"TLS handshake failed \(.*{told}"):
        _source(agents, f"https://{host}:{agents.tls_port}/jolokia/", ca_file=file).identify()


def test_wrong_password_and_plain_http_to_tls_are_errors(agents: Agents) -> None:
    good = {"ca_file": agents.folder / "server.pem"}
    url = f"https://127.0.0.1:{agents.tls_port}/jolokia/"
    wrong = agents.folder / "wrong"
    wrong.write_text("not-the-password\n")
    with pytest.raises(SourceRefusedError, match="the user or the password was refused") as refused:
        _source(agents, url, password_file=wrong, **good).identify()
    assert "not-the-password" not in str(refused.value)
    with pytest.raises(SourceError, match="does not use HTTP"):
        _source(agents, url.replace("https", "http")).identify()
    with pytest.raises(SourceError, match="status 404"):
        _source(agents, url.replace("jolokia", "other"), **good).identify()


@pytest.mark.parametrize(("most", "told"), [(500, "500"), (2, "not reported")])
def test_jolokia_hiding_beans_silently_is_refused(agents: Agents, most: int, told: str) -> None:
    url = f"http://127.0.0.1:{agents.short_ports[most]}/jolokia/"
    with pytest.raises(SourceError, match=f"maxCollectionSize is {told}, so Jolokia can omit"):
        _source(agents, url).identify()


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "http://", "nonsense", "http://a:b@host/"])
def test_invalid_address_is_refused_by_its_key(url: str) -> None:
    with pytest.raises(ConfigError, match=r"source\.jolokia\.url: must be http"):
        JolokiaSource(CONTROLLER, Jolokia(url))


def test_a_file_without_certificates_is_refused_by_its_key(tmp_path: Path) -> None:
    (tmp_path / "none.pem").write_text("nothing")
    for name, why in (("none.pem", "no certificate"), ("not-there.pem", "No such file")):
        with pytest.raises(ConfigError, match=rf"source\.jolokia\.ca_file: .*{name}: {why}"):
            JolokiaSource(CONTROLLER, Jolokia("https://127.0.0.1/", ca_file=tmp_path / name))


_NO_JVM: Final = """
import json, sys
from collector import catalogue
from collector.config import loader
from collector.agent.plan import open_sources
loaded = loader.parse(json.load(sys.stdin), "probe")
found = open_sources(loaded)
beans = found["jmx"].read(catalogue.load().family("controller")).beans
jvm = "jpype" in sys.modules and __import__("jpype").isJVMStarted()
print(json.dumps({"beans": beans, "jvm": jvm, "java": "libjvm" in open("/proc/self/maps").read()}))
"""


def test_an_agent_that_reads_by_jolokia_starts_no_jvm(agents: Agents) -> None:
    section = {
        "url": f"https://127.0.0.1:{agents.tls_port}/jolokia/",
        "ca_file": str(agents.folder / "server.pem"),
        "user": "monitor",
        "password_file": str(agents.password_file),
    }
    told = subprocess.run(
        [sys.executable, "-c", _NO_JVM],
        input=json.dumps(
            {
                "source": {"node": 3000, "role": "controller", "jolokia": section},
                "lake": {"path": "none"},
                "spool": {"path": "none"},
            }
        ),
        capture_output=True, text=True, check=False, timeout=180,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)
    assert found["beans"] > 2
    assert not found["jvm"]
    assert not found["java"]
