"""What a broker host has besides us: a JVM as a service, with a JMX port for who may read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import yaml

from tests.waiting import wait_for

if TYPE_CHECKING:
    from tests.deploy.machine import Machine

AGENT: Final = "jmxlake-agent"
SECONDS: Final = 90
INSTALL: Final = {
    "deb": ("dpkg", "--install"),
    # A Debian host does not have the packages of rpm, and its rpm asks whether that is intended.
    "rpm": ("rpm", "--force-debian", "--nodeps", "--upgrade", "--oldpackage"),
}
REMOVE: Final = {"deb": ("dpkg", "--remove"), "rpm": ("rpm", "--force-debian", "--erase")}
"""Commands by the suffix of a package."""
PASSWORD: Final = "monitor-secret-1"
_JMX: Final = "-Dcom.sun.management.jmxremote"
_UNIT: Final = f"""\
[Service]
User=kafka
PrivateTmp={{private_tmp}}
ExecStart=/usr/bin/java -Xmx64m -XX:TieredStopAtLevel=1 \\
  {_JMX}.port=9999 {_JMX}.rmi.port=9999 {_JMX}.host=127.0.0.1 \\
  -Djava.rmi.server.hostname=127.0.0.1 {_JMX}.ssl=false {_JMX}.authenticate=true \\
  {_JMX}.password.file=/etc/kafka/jmx.password {_JMX}.access.file=/etc/kafka/jmx.access \\
  -cp /srv/libs/* /srv/java/Producer.java
"""


def start_jvm(machine: Machine, *, private_tmp: bool = False) -> None:
    """A client JVM as the service kafka, with a JMX port for the user monitor."""
    machine.run("sh", "-c", "id kafka || useradd --system --user-group --no-create-home kafka")
    machine.write("/etc/kafka/jmx.password", f"monitor {PASSWORD}\n", "kafka", "0600")
    machine.write("/etc/kafka/jmx.access", "monitor readonly\n", "kafka")
    unit = _UNIT.format(private_tmp="yes" if private_tmp else "no")
    machine.write("/etc/systemd/system/kafka.service", unit)
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "restart", "kafka")


def configuration(way: dict[str, Any]) -> dict[str, Any]:
    """An agent of that JVM that delivers often."""
    return {
        "source": {"node": "billing", "role": "client", "cluster": "test", **way},
        "lake": {"path": "/var/lib/jmxlake/lake", "commit_interval": "2s"},
        "spool": {"path": "/var/lib/jmxlake/spool.db"},
        "window": "5s",
        "families": {"client": {"interval": "1s"}},
    }


def by_port() -> dict[str, Any]:
    """The section that reads the port."""
    file = "/etc/jmxlake/jmx.password"
    return {"jmx": {"port": 9999, "user": "monitor", "password_file": file}}


def configure(machine: Machine, way: dict[str, Any], owner: str = "jmxlake") -> None:
    """Write what the agent needs."""
    machine.write("/etc/jmxlake/agent.yaml", yaml.safe_dump(configuration(way)))
    machine.write("/etc/jmxlake/jmx.password", f"{PASSWORD}\n", owner, "0400")


def start_agent(machine: Machine) -> None:
    """Start the agent and wait for responses: systemd's READY only means that it has tried."""
    machine.run("systemctl", "start", AGENT)
    wait_ready(machine)


def wait_ready(machine: Machine) -> None:
    """Wait until the agent has responses of every family."""
    wait_for(lambda: readiness(machine).get("ready") is True, SECONDS, lambda: machine.log(AGENT))


def readiness(machine: Machine) -> dict[str, object]:
    """Return the agent's answer about its readiness, or an empty one."""
    told = machine.run("curl", "--silent", "127.0.0.1:9464/readyz", check=False)
    answer: dict[str, object] = json.loads(told) if told.startswith("{") else {}
    return answer


def wait_delivered(machine: Machine) -> None:
    """Wait until the lake has runs."""
    found = ("find", "/var/lib/jmxlake/lake/bronze/runs", "-name", "*.parquet")
    wait_for(
        lambda: ".parquet" in machine.run(*found, check=False), SECONDS, lambda: machine.log(AGENT)
    )
