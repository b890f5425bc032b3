"""The steps of docs/connect.md to a JMX port, on a host of its own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.deploy.host import configuration
from tests.waiting import wait_for

if TYPE_CHECKING:
    from tests.deploy.bundles import Bundle
    from tests.deploy.machine import Machine

DOCS = Path(__file__).parents[2] / "docs/connect.md"
BLOCK = re.compile(r"^```(sh|yaml) title=[^\n]+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Kafka's start script hands KAFKA_JMX_OPTS to java; a client JVM stands for the broker here.
KAFKA = """\
[Service]
User=kafka
ExecStart=/usr/bin/java -Xmx64m -XX:TieredStopAtLevel=1 $KAFKA_JMX_OPTS -cp /srv/libs/* \
  /srv/java/Producer.java
"""


def blocks() -> list[tuple[str, str]]:
    (_, steps) = DOCS.read_text("utf-8").split("\n## JMX port\n")
    return BLOCK.findall(steps.split("\n## ")[0])


@pytest.fixture(scope="module")
def followed(machine: Machine, bundle: Bundle) -> Machine:
    """The host after all steps but the last."""
    machine.run("dpkg", "-i", f"/srv/bundle/{bundle.deb.name}")
    machine.run("useradd", "--system", "--user-group", "--no-create-home", "kafka")
    machine.write("/etc/systemd/system/kafka.service", KAFKA)
    for kind, text in blocks()[:-1]:
        if kind == "sh":
            machine.run("bash", "-euo", "pipefail", "-c", text)
        else:
            source = {**yaml.safe_load(text)["source"], **configuration({})["source"]}
            told = {**configuration({}), "source": source}
            machine.write("/etc/jmxlake/agent.yaml", yaml.safe_dump(told))
    return machine


def test_the_steps_lead_to_an_agent_that_reads(followed: Machine) -> None:
    (_, last) = blocks()[-1]
    assert "jmxlake-agent check" in last
    told = ""

    def checked() -> bool:
        nonlocal told
        told = followed.run("sh", "-c", f"{last.strip()}; echo ended with $?", check=False)
        return "ended with 0" in told

    wait_for(checked, 60, lambda: told + followed.log("kafka"))
    assert "ok      jmx: node billing" in told


def test_the_port_speaks_tls_and_nothing_else(followed: Machine) -> None:
    text = followed.run("cat", "/etc/jmxlake/agent.yaml")
    told = yaml.safe_load(text)
    del told["source"]["jmx"]["tls"]
    followed.write("/root/plain.yaml", yaml.safe_dump(told))
    said = followed.run("jmxlake-agent", "check", "--config", "/root/plain.yaml", check=False)
    assert "check whether it requires TLS" in said


def test_no_secret_is_on_a_command_line_and_java_has_hashed_its_own(followed: Machine) -> None:
    password = followed.run("cat", "/etc/jmxlake/jmx.password").strip()
    store = followed.run("cat", "/etc/kafka/jmx/store.password").strip()
    processes = followed.run("ps", "-eo", "args")
    assert "management.properties" in processes
    for secret in (password, store):
        assert len(secret) == 48
        assert secret not in processes
    assert password not in followed.run("cat", "/etc/kafka/jmx/password")


def test_the_role_may_change_nothing(followed: Machine) -> None:
    followed.run(
        "keytool", "-importcert", "-noprompt", "-alias", "jmx", "-file", "/etc/jmxlake/jmx.pem",
        "-keystore", "/root/trust.p12", "-storepass", "changeit",
    )  # fmt: skip
    trust = "-Djavax.net.ssl.trustStore"
    told = followed.run(
        "sh", "-c", f"java {trust}=/root/trust.p12 {trust}Password=changeit /srv/java/Write.java"
        " < /etc/jmxlake/jmx.password", check=False,
    )  # fmt: skip
    assert "read" in told
    assert "Access denied! Invalid access level" in told
