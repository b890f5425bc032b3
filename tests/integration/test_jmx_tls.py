"""JMX over TLS against real brokers: what works, and what each fault is told as."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from demo.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from demo.node import Node
    from demo.properties import NodePlan

pytestmark = pytest.mark.kafka

TIMEOUT = 30.0  # to tell a fault takes no time, but on a busy machine a first handshake seconds
STORE_PASSWORD = "store-secret-1"
JMX = "-Dcom.sun.management.jmxremote"

PLAIN, GOOD, EXPIRED, ASKING = 3000, 1, 2, 3
"""Nodes: TLS behind a plain registry (as Java does by default); TLS all over; with an expired
certificate; asking for requires a client certificate."""


class Keys(NamedTuple):
    """The stores of the test, made by keytool, all with one password."""

    folder: Path

    def __call__(self, name: str) -> str:
        return str(self.folder / name)

    @property
    def password(self) -> str:
        return self("store.password")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    folder = tmp_path_factory.mktemp("keys")
    (folder / "store.password").write_text(f"{STORE_PASSWORD}\n")

    def keytool(*arguments: str) -> None:
        fast = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-noprompt")
        ran = subprocess.run(
            ["keytool", *arguments, "-storepass", STORE_PASSWORD, *fast],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout + ran.stderr

    def pair(store: str, alias: str, *options: str) -> None:
        keytool("-genkeypair", "-keystore", store, "-alias", alias, "-keyalg", "EC",
                "-dname", f"CN={alias}", *options)  # fmt: skip

    def extract(alias: str, *options: str) -> None:
        keytool("-importkeystore", "-srckeystore", "all.p12", "-srcstorepass", STORE_PASSWORD,
                "-srcalias", alias, "-destkeystore", f"{alias}.p12", *options)  # fmt: skip

    pair("all.p12", "ca", "-ext", "bc:c", "-startdate", "-30d")
    pair("stranger.p12", "stranger", "-ext", "bc:c")
    keytool("-exportcert", "-rfc", "-keystore", "all.p12", "-alias", "ca", "-file", "ca.pem")
    keytool("-exportcert", "-rfc", "-keystore", "stranger.p12", "-alias", "stranger",
            "-file", "stranger.pem")  # fmt: skip
    signed = ("-signer", "ca", "-ext", "san=ip:127.0.0.1")
    pair("all.p12", "server", *signed)
    pair("all.p12", "expired", *signed, "-startdate", "-20d", "-validity", "10")
    pair("all.p12", "client", *signed)
    for alias in ("server", "expired", "client"):
        extract(alias)
    for store, kind in (("trust.jks", "JKS"), ("trust.p12", "PKCS12")):
        keytool("-importcert", "-file", "ca.pem", "-alias", "ca", "-keystore", store,
                "-storetype", kind)  # fmt: skip
    return Keys(folder)


@pytest.fixture(scope="module")
def cluster(keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    def options(plan: NodePlan) -> list[str]:
        store = "expired.p12" if plan.id == EXPIRED else "server.p12"
        return [
            f"{JMX}.ssl=true",
            f"{JMX}.registry.ssl={'false' if plan.id == PLAIN else 'true'}",
            # One port cannot speak both: beside a plain registry the connector needs its own.
            f"{JMX}.rmi.port={0 if plan.id == PLAIN else plan.jmx_port}",
            f"{JMX}.ssl.need.client.auth={'true' if plan.id == ASKING else 'false'}",
            f"-Djavax.net.ssl.keyStore={keys(store)}",
            f"-Djavax.net.ssl.keyStorePassword={STORE_PASSWORD}",
            f"-Djavax.net.ssl.trustStore={keys('trust.p12')}",
            f"-Djavax.net.ssl.trustStorePassword={STORE_PASSWORD}",
        ]

    folder = tmp_path_factory.mktemp("tls")
    with Cluster.start(folder / "kafka", 3, jvm_options=options) as running:
        yield running


def section(node: Node, tls: dict[str, Any] | None, **changed: Any) -> dict[str, Any]:
    jmx = {
        "port": node.jmx_port,
        "user": "monitor",
        "password_file": str(node.password_file),
        "timeout": f"{TIMEOUT:g}s",
        **({"tls": tls} if tls else {}),
        **changed,
    }
    return {"node": node.plan.id, "role": node.plan.role, "jmx": jmx}


def probe(*sections: dict[str, Any]) -> list[dict[str, Any]]:
    ran = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("jmx_probe.py"))],
        input=json.dumps(sections), capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}, timeout=300,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert STORE_PASSWORD not in ran.stdout + ran.stderr
    told: list[dict[str, Any]] = json.loads(ran.stdout)
    for one in told:
        assert one["seconds"] < TIMEOUT + 1
        assert "\n" not in one.get("text", "")
    return told


def probe_all(*calls: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda sections: probe(*sections), calls))


def assert_refused(
    told: dict[str, Any], node: Node, text: str, *, other_port: bool = False
) -> None:
    kind = "CredentialsError" if "password" in text else "SourceRefusedError"
    assert told.get("error") == kind, told
    where = " (its registry names port " if other_port else ": "
    assert told["text"].startswith(f"JMX of 127.0.0.1:{node.jmx_port}{where}")
    assert text in told["text"]


def test_a_ca_is_trusted_as_pem_pkcs12_or_jks(cluster: Cluster, keys: Keys) -> None:
    good = cluster.nodes[GOOD]
    stores = [
        {"trust_store": keys("ca.pem")},
        *(
            {"trust_store": keys(name), "trust_store_password_file": keys.password}
            for name in ("trust.p12", "trust.jks")
        ),
    ]
    for told in probe_all(*([section(good, tls)] for tls in stores)):
        assert told[0].get("node") == "1", told


def test_each_broker_tls_fault_has_its_own_error(cluster: Cluster, keys: Keys) -> None:
    nodes, tls = cluster.nodes, {"trust_store": keys("ca.pem")}
    wrong = Path(keys("wrong.password"))
    wrong.write_text("not-the-password\n")
    expired, asking, plain, refused = probe(
        section(nodes[EXPIRED], tls),
        section(nodes[ASKING], tls),
        section(nodes[PLAIN], tls),
        section(nodes[GOOD], tls, password_file=str(wrong)),
    )
    assert_refused(expired, nodes[EXPIRED], "the server's certificate has expired; renew it")
    assert_refused(asking, nodes[ASKING], "requires a client certificate")
    assert_refused(plain, nodes[PLAIN], "the port does not use TLS")
    assert_refused(refused, nodes[GOOD], "the user or the password was refused")
    assert "not-the-password" not in refused["text"]


def test_each_own_tls_fault_has_its_own_error(cluster: Cluster, keys: Keys) -> None:
    nodes = cluster.nodes
    without, plain, stranger = probe_all(
        [section(nodes[GOOD], None), section(nodes[PLAIN], None)],
        [section(nodes[node], {"trust_store": keys("ca.pem"), "registry": False})
         for node in (PLAIN, GOOD)],
        [section(nodes[GOOD], {"trust_store": keys("stranger.pem")})],
    )  # fmt: skip
    assert_refused(without[0], nodes[GOOD], "check whether it requires TLS, and that it is")
    # A registry without TLS has another port than the server that has it.
    untrusted = "not signed by a trusted CA; add its CA to"
    assert_refused(without[1], nodes[PLAIN], untrusted, other_port=True)
    assert plain[0].get("node") == "3000"
    assert_refused(plain[1], nodes[GOOD], "check whether it requires TLS")
    assert_refused(stranger[0], nodes[GOOD], "not signed by a trusted CA; add its CA to")


def test_silent_port_costs_one_timeout(keys: Keys) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and shakes no hand
        jmx = {"port": silent.getsockname()[1], "tls": {"trust_store": keys("ca.pem")},
               "timeout": "5s"}  # fmt: skip
        (told,) = probe({"node": 1, "jmx": jmx})
    assert told["error"] == "SourceTimeoutError"
    assert told["seconds"] < 9, "two would be ten seconds"


def test_a_certificate_of_ours_is_shown_where_one_is_asked_for(
    cluster: Cluster, keys: Keys
) -> None:
    asking = cluster.nodes[ASKING]

    def ours(store: str) -> dict[str, str]:
        return {
            "trust_store": keys("ca.pem"),
            "key_store": keys(store),
            "key_store_password_file": keys.password,
        }

    known, stranger = probe_all(
        [section(asking, ours("client.p12"))], [section(asking, ours("stranger.p12"))]
    )
    assert known[0].get("node") == "3"
    assert_refused(stranger[0], asking, "requires a client certificate")


def test_useless_store_is_an_error_before_any_request(cluster: Cluster, keys: Keys) -> None:
    wrong = Path(keys("other.password"))
    wrong.write_text("not-the-password\n")
    damaged = Path(keys("damaged.pem"))
    damaged.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    p12, own = {"trust_store": keys("trust.p12")}, {"key_store_password_file": keys.password}
    faults: list[tuple[dict[str, str], str]] = [
        (p12, "trust.p12: no trusted certificate found"),
        ({**p12, "trust_store_password_file": str(wrong)}, "has another password"),
        ({**p12, "trust_store_password_file": keys("none")}, "cannot read the password file"),
        ({"trust_store": keys("none.pem")}, "none.pem: No such file or directory; use a file"),
        ({"trust_store": keys("store.password")}, "neither PEM nor PKCS12 nor JKS"),
        ({"trust_store": str(damaged)}, "a certificate is damaged"),
        ({"key_store": keys("ca.pem"), **own}, "no private key found; create a PKCS12"),
        ({"key_store": keys("trust.p12"), **own}, "no private key found"),
    ]
    told = probe(*(section(cluster.nodes[GOOD], tls) for tls, _ in faults))
    for one, (_, text) in zip(told, faults, strict=True):
        assert one["error"] == "ConfigError"
        assert one["text"].startswith("source.jmx.tls.")
        assert text in one["text"]
        assert "not-the-password" not in one["text"]
