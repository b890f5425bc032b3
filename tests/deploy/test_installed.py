"""The packages on a host of its own: their units under a real systemd, next to a real JVM."""

from __future__ import annotations

import re
import tarfile
from typing import TYPE_CHECKING

import pytest
import yaml

from deploy.bundle import packages, tree
from tests.deploy.host import (
    AGENT,
    INSTALL,
    PASSWORD,
    REMOVE,
    SECONDS,
    by_port,
    configuration,
    configure,
    start_agent,
    start_jvm,
    wait_delivered,
    wait_ready,
)
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.deploy.bundles import Bundle
    from tests.deploy.machine import Machine

SECOND = f"{AGENT}@second"
DROP_INS = f"/etc/systemd/system/{AGENT}.service.d"


@pytest.fixture
def host(machine: Machine, bundle: Bundle) -> Iterator[Machine]:
    package = f"/srv/bundle/{bundle.deb.name}"
    machine.run("sh", "-c", f"dpkg --status jmxlake 2>&1 || dpkg --install {package}")
    yield machine
    machine.run("systemctl", "stop", AGENT, "jmxlake-maintain", "kafka", check=False)
    machine.run("systemctl", "reset-failed", check=False)
    machine.run("sh", "-c", f"rm -rf {DROP_INS} /var/lib/jmxlake/*")
    machine.run("systemctl", "daemon-reload")


def test_the_agent_reads_a_port_and_delivers(host: Machine) -> None:
    start_jvm(host)
    configure(host, by_port())
    check = ("runuser", "-u", "jmxlake", "--", "jmxlake-agent", "check")
    checked: list[str] = []

    def well() -> bool:  # Java, or the Kafka client in it, may still be starting
        checked.append(host.run(*check, check=False))
        return "FAILED" not in checked[-1]

    wait_for(well, SECONDS, lambda: checked[-1])
    start_agent(host)
    wait_delivered(host)
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
    start_agent(host)
    wait_delivered(host)


def test_a_hang_is_ended_and_begun_again(host: Machine) -> None:
    start_jvm(host)
    configure(host, by_port())
    host.write(
        f"{DROP_INS}/quick.conf", "[Service]\nWatchdogSec=4\nTimeoutAbortSec=2\nRestartSec=1\n"
    )
    host.run("systemctl", "daemon-reload")
    start_agent(host)
    host.run("kill", "-STOP", host.shows(AGENT, "MainPID"))
    wait_for(lambda: host.shows(AGENT, "NRestarts") == "1", SECONDS)
    assert "Watchdog timeout" in host.log(AGENT)
    wait_ready(host)


def test_maintenance_runs_as_a_service(host: Machine) -> None:
    start_jvm(host)
    configure(host, by_port())
    start_agent(host)
    wait_delivered(host)
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


def test_weekly_report_of_the_timer(host: Machine) -> None:
    """The package has the timer and its configuration; the lake is the only value to set."""
    template = host.run("cat", "/etc/jmxlake/weekly.yaml")
    assert template == host.run("jmxlake", "weekly", "--print-config")
    lake, reports = "/var/lib/jmxlake/sample", "/var/lib/jmxlake/reports"
    host.run("runuser", "-u", "jmxlake", "--", "jmxlake", "sample", lake)
    changed = template.replace("\nlake: s3://bucket/kafka\n", f"\nlake: {lake}\n")
    host.write("/etc/jmxlake/weekly.yaml", f"{changed}html: {reports}/report.html\n")
    host.write(
        "/etc/systemd/system/jmxlake-weekly.service.d/lake.conf",
        f"[Service]\nReadWritePaths={lake}\n",
    )
    host.run("systemctl", "daemon-reload")
    host.run("systemctl", "enable", "--now", "jmxlake-weekly.timer")
    assert "jmxlake-weekly.service" in host.run("systemctl", "list-timers")
    host.run("systemctl", "start", "jmxlake-weekly")
    wait_for(
        lambda: host.shows("jmxlake-weekly", "ActiveState") in {"inactive", "failed"},
        4 * SECONDS, lambda: host.log("jmxlake-weekly"),
    )  # fmt: skip
    assert host.shows("jmxlake-weekly", "Result") == "success", host.log("jmxlake-weekly")
    assert "objectives" in host.run("cat", f"{reports}/report.html")
    host.run("systemctl", "disable", "--now", "jmxlake-weekly.timer")


def older(bundle: Bundle, folder: Path) -> dict[str, Path]:
    """Return the same packages under an earlier version, by suffix."""
    with tarfile.open(bundle.tarball) as archive:
        archive.extractall(folder, filter="tar")
    (unpacked,) = folder.iterdir()
    (folder / "out").mkdir()
    made = packages.build(
        tree.Tree(unpacked, "0.0.9", "x86_64", "2.17"), folder / "out", 1_700_000_000
    )
    return {one.suffix[1:]: one for one in made}


def start_second(machine: Machine) -> None:
    """Start a second agent on the host, as docs/install.md describes."""
    template = machine.run("jmxlake-agent", "systemd-unit", "--template")
    machine.write(f"/etc/systemd/system/{AGENT}@.service", template)
    settings = configuration(by_port()) | {"health": {"port": 9465}}
    del settings["spool"]  # the unit sets it
    machine.write("/etc/jmxlake/second.yaml", yaml.safe_dump(settings))
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "start", SECOND)


def test_upgrade_way_back_removal_and_what_each_leaves(
    machine: Machine, bundle: Bundle, tmp_path: Path
) -> None:
    earlier = older(bundle, tmp_path)
    start_jvm(machine)
    for kind, package in (("deb", bundle.deb), ("rpm", bundle.rpm)):
        (machine.shared / "older").write_bytes(earlier[kind].read_bytes())
        old, new = "/srv/shared/older", f"/srv/bundle/{package.name}"
        machine.run(*INSTALL[kind], old)
        configure(machine, by_port())
        start_agent(machine)
        start_second(machine)
        spool = machine.run("stat", "--format=%i", "/var/lib/jmxlake/spool.db")
        for other in (new, old):  # an upgrade, and the way back
            before = {unit: machine.shows(unit, "MainPID") for unit in (AGENT, SECOND)}
            machine.run(*INSTALL[kind], other)
            for unit, process in before.items():
                assert machine.shows(unit, "MainPID") not in {process, "0"}
            wait_ready(machine)
            assert machine.run("stat", "--format=%i", "/var/lib/jmxlake/spool.db") == spool
        machine.run("systemctl", "enable", AGENT, SECOND, "jmxlake-weekly.timer")
        told = machine.run(*REMOVE[kind], "jmxlake")
        for unit in (AGENT, SECOND):
            assert machine.shows(unit, "ActiveState") == "inactive"
        for gone in ("/opt/jmxlake", "/usr/bin/jmxlake-agent",
                     f"/etc/systemd/system/multi-user.target.wants/{SECOND}.service",
                     "/usr/lib/systemd/system/jmxlake-weekly.timer",
                     "/etc/systemd/system/timers.target.wants/jmxlake-weekly.timer"):  # fmt: skip
            machine.run("test", "!", "-e", gone)
        machine.run("test", "-f", "/etc/jmxlake/agent.yaml")
        machine.run("test", "-f", "/var/lib/jmxlake/spool.db")
        if kind == "deb":
            told = machine.run("dpkg", "-P", "jmxlake")
            machine.run("test", "!", "-e", "/etc/jmxlake")
        assert "/var/lib/jmxlake and the user jmxlake stay" in told
        machine.run("test", "-f", "/var/lib/jmxlake/spool.db")
        machine.run("id", "jmxlake")
