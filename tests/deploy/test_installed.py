"""The Debian package on a host of its own: its units under a real systemd, beside a real JVM."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.deploy.host import PASSWORD, by_port, configure, start_jvm
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.deploy.conftest import Bundle
    from tests.deploy.machine import Machine

AGENT = "jmxlake-agent"
DROP_INS = f"/etc/systemd/system/{AGENT}.service.d"
SECONDS = 90


@pytest.fixture
def host(machine: Machine, bundle: Bundle) -> Iterator[Machine]:
    package = f"/srv/bundle/{bundle.package.name}"
    machine.run("sh", "-c", f"dpkg --status jmxlake 2>&1 || dpkg --install {package}")
    yield machine
    machine.run("systemctl", "stop", AGENT, "jmxlake-maintain", "kafka", check=False)
    machine.run("systemctl", "reset-failed", check=False)
    machine.run("sh", "-c", f"rm -rf {DROP_INS} /var/lib/jmxlake/*")
    machine.run("systemctl", "daemon-reload")


def start(host: Machine) -> None:
    """Start the agent and wait until it has answers: READY alone says that it has tried."""
    host.run("systemctl", "start", AGENT)
    wait_for(lambda: readiness(host).get("ready") is True, SECONDS, lambda: host.log(AGENT))


def readiness(host: Machine) -> dict[str, object]:
    told = host.run("curl", "--silent", "127.0.0.1:9464/readyz", check=False)
    answer: dict[str, object] = json.loads(told) if told.startswith("{") else {}
    return answer


def delivered(host: Machine) -> bool:
    found = host.run("find", "/var/lib/jmxlake/lake/bronze/runs", "-name", "*.parquet", check=False)
    return ".parquet" in found


def test_the_agent_reads_a_port_and_delivers(host: Machine) -> None:
    start_jvm(host)
    configure(host, by_port())
    check = ("runuser", "-u", "jmxlake", "--", "jmxlake-agent", "check")
    checked: list[str] = []

    def well() -> bool:  # Java, or the Kafka client in it, may still be starting
        checked.append(host.run(*check, check=False))
        return "FAILED" not in checked[-1]

    wait_for(well, SECONDS, lambda: checked[-1])
    start(host)
    wait_for(lambda: delivered(host), SECONDS, lambda: host.log(AGENT))
    status = host.run("cat", f"/proc/{host.shows(AGENT, 'MainPID')}/status")
    assert re.search(r"^CapEff:\t0+$", status, re.MULTILINE)
    assert re.search(r"^NoNewPrivs:\t1$", status, re.MULTILINE)
    assert re.search(r"^Seccomp:\t2$", status, re.MULTILINE)
    before = host.shows(AGENT, "MainPID")
    host.run("systemctl", "reload", AGENT)
    wait_for(lambda: host.shows(AGENT, "ActiveState") == "active", SECONDS)
    assert host.shows(AGENT, "MainPID") == before
    host.run("systemctl", "stop", AGENT)
    assert host.shows(AGENT, "Result") == "success"
    log = host.log(AGENT)
    assert "not permitted" not in log
    assert PASSWORD not in log


@pytest.mark.parametrize("private_tmp", [False, True])
def test_the_agent_attaches_as_the_broker_s_user(host: Machine, *, private_tmp: bool) -> None:
    start_jvm(host, private_tmp=private_tmp)
    configure(host, {"attach": {"unit": "kafka"}}, owner="kafka")
    shipped = host.run("cat", "/opt/jmxlake/share/jmxlake/systemd/attach.conf")
    if private_tmp:  # as the file itself says
        shipped = re.sub(r"^(PrivateTmp=no|ReadWritePaths=/tmp)\n", "", shipped, flags=re.MULTILINE)
    host.write(f"{DROP_INS}/attach.conf", shipped)
    host.run("systemctl", "daemon-reload")
    start(host)
    wait_for(lambda: delivered(host), SECONDS, lambda: host.log(AGENT))


def test_a_hang_is_ended_and_begun_again(host: Machine) -> None:
    start_jvm(host)
    configure(host, by_port())
    host.write(
        f"{DROP_INS}/quick.conf", "[Service]\nWatchdogSec=4\nTimeoutAbortSec=2\nRestartSec=1\n"
    )
    host.run("systemctl", "daemon-reload")
    start(host)
    host.run("kill", "-STOP", host.shows(AGENT, "MainPID"))
    wait_for(lambda: host.shows(AGENT, "NRestarts") == "1", SECONDS)
    assert "Watchdog timeout" in host.log(AGENT)
    wait_for(lambda: readiness(host).get("ready") is True, SECONDS, lambda: host.log(AGENT))


def test_maintenance_runs_as_a_service(host: Machine) -> None:
    start_jvm(host)
    configure(host, by_port())
    start(host)
    wait_for(lambda: delivered(host), SECONDS, lambda: host.log(AGENT))
    host.write("/etc/jmxlake/maintain.env", "LAKE=/var/lib/jmxlake/lake\n")
    host.write(
        "/etc/systemd/system/jmxlake-maintain.service.d/lake.conf",
        "[Service]\nReadWritePaths=/var/lib/jmxlake\n",
    )
    host.run("systemctl", "daemon-reload")
    host.run("systemctl", "start", "jmxlake-maintain")
    wait_for(
        lambda: '"runs"' in host.log("jmxlake-maintain"), SECONDS,
        lambda: host.log("jmxlake-maintain"),
    )  # fmt: skip
    assert host.shows("jmxlake-maintain", "ActiveState") == "active"
    assert "not permitted" not in host.log("jmxlake-maintain")


def older(bundle: Bundle, folder: Path) -> Path:
    """The same package under a version that came before."""
    stage = folder / "older"
    subprocess.run(["dpkg-deb", "-R", str(bundle.package), str(stage)], check=True)
    control = stage / "DEBIAN/control"
    control.write_text(
        re.sub(r"^Version: .+$", "Version: 0.0.9", control.read_text(), flags=re.MULTILINE)
    )
    package = folder / "jmxlake_0.0.9.deb"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-Znone", "--build", str(stage), str(package)],
        check=True, capture_output=True,
    )  # fmt: skip
    return package


def test_upgrade_way_back_removal_and_what_each_leaves(
    machine: Machine, bundle: Bundle, tmp_path: Path
) -> None:
    package = older(bundle, tmp_path)
    (machine.shared / package.name).write_bytes(package.read_bytes())
    old, new = f"/srv/shared/{package.name}", f"/srv/bundle/{bundle.package.name}"
    start_jvm(machine)
    machine.run("dpkg", "-i", old)
    configure(machine, by_port())
    start(machine)
    spool = machine.run("stat", "--format=%i", "/var/lib/jmxlake/spool.db")
    for other in (new, old):  # an upgrade, and the way back
        before = machine.shows(AGENT, "MainPID")
        machine.run("dpkg", "-i", other)
        assert machine.shows(AGENT, "MainPID") not in {before, "0"}
        wait_for(lambda: readiness(machine).get("ready") is True, SECONDS)
        assert machine.run("stat", "--format=%i", "/var/lib/jmxlake/spool.db") == spool
    machine.run("dpkg", "-r", "jmxlake")
    assert machine.shows(AGENT, "ActiveState") == "inactive"
    machine.run("test", "!", "-e", "/opt/jmxlake")
    machine.run("test", "!", "-e", "/usr/bin/jmxlake-agent")
    machine.run("test", "-f", "/etc/jmxlake/agent.yaml")
    machine.run("test", "-f", "/var/lib/jmxlake/spool.db")
    told = machine.run("dpkg", "-P", "jmxlake")
    assert "/var/lib/jmxlake and the user jmxlake stay" in told
    machine.run("test", "!", "-e", "/etc/jmxlake")
    machine.run("test", "-f", "/var/lib/jmxlake/spool.db")
    machine.run("id", "jmxlake")
