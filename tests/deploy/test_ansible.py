"""The role: linted, tried in check mode, then really, on a host of its own."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from deploy import tools
from tests.deploy.host import PASSWORD, by_port, configuration, start_jvm

if TYPE_CHECKING:
    from tests.deploy.bundles import Bundle
    from tests.deploy.machine import Machine

FOLDER = Path(__file__).parents[2] / "deploy/ansible"
AGENT = "jmxlake-agent"


def test_the_role_and_the_example_are_clean(tmp_path: Path) -> None:
    found = tools.program("ansible-lint")
    environ = {**os.environ, "PATH": f"{found.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    ran = subprocess.run(
        [str(found), "--offline", "--strict", "--profile", "production", "--nocolor"],
        cwd=FOLDER, env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Passed: 0 failure(s), 0 warning(s)" in ran.stdout + ran.stderr


def play(machine: Machine, *options: str, **variables: Any) -> str:
    """Run the role on the machine itself; what Ansible said."""
    told = [{
        "name": "Try", "hosts": "localhost", "connection": "local", "gather_facts": False,
        "vars": {"ansible_python_interpreter": "/usr/bin/python3", **variables},
        "roles": ["jmxlake_agent"],
    }]  # fmt: skip
    machine.write("/root/play.yml", yaml.safe_dump(told))
    return machine.run(
        *("env", "ANSIBLE_ROLES_PATH=/srv/deploy/ansible/roles", "ANSIBLE_NOCOLOR=1"),
        *("/srv/tools/bin/python", "/srv/tools/bin/ansible-playbook", "-i", "localhost,"),
        *(*options, "/root/play.yml"),
    )


def changed(told: str) -> int:
    (number,) = re.findall(r"changed=(\d+)", told)
    assert "failed=0" in told
    return int(number)


def test_it_is_installed_kept_and_changed(machine: Machine, bundle: Bundle) -> None:
    start_jvm(machine)
    version = bundle.tarball.name.split("-")[1]
    wanted: dict[str, Any] = {
        "jmxlake_agent_tarball": f"/srv/bundle/{bundle.tarball.name}",
        "jmxlake_agent_version": version,
        "jmxlake_agent_config": configuration(by_port()),
        "jmxlake_agent_files": {"jmx.password": f"{PASSWORD}\n"},
    }

    assert changed(play(machine, "--check", **wanted)) > 0
    machine.run("test", "!", "-e", "/opt/jmxlake")  # a check changes nothing

    first = play(machine, "--diff", **wanted)
    assert changed(first) > 5
    assert PASSWORD not in first
    assert machine.shows(AGENT, "ActiveState") == "active"
    assert machine.shows(AGENT, "UnitFileState") == "enabled"
    assert machine.run("stat", "--format=%U %G %a", "/etc/jmxlake/jmx.password").strip() == (
        "jmxlake jmxlake 400"
    )
    assert changed(play(machine, **wanted)) == 0
    assert changed(play(machine, "--check", **wanted)) == 0

    # Another version beside it, and back: the link, and a restart.
    machine.run("cp", "-r", f"/opt/jmxlake-{version}", "/opt/jmxlake-9.9.9")
    for other in ("9.9.9", version):
        before = machine.shows(AGENT, "MainPID")
        assert changed(play(machine, **{**wanted, "jmxlake_agent_version": other})) == 2
        assert machine.run("readlink", "/opt/jmxlake").strip() == f"jmxlake-{other}"
        assert machine.shows(AGENT, "MainPID") not in {before, "0"}
    play(machine, **{**wanted, "jmxlake_agent_kept_versions": 1})
    left = machine.run("sh", "-c", "ls -d /opt/jmxlake*").split()
    assert left == ["/opt/jmxlake", f"/opt/jmxlake-{version}"]


def test_a_broker_s_user_is_put_in_and_taken_out(machine: Machine, bundle: Bundle) -> None:
    wanted: dict[str, Any] = {
        "jmxlake_agent_tarball": f"/srv/bundle/{bundle.tarball.name}",
        "jmxlake_agent_version": bundle.tarball.name.split("-")[1],
        "jmxlake_agent_config": configuration({"attach": {"unit": "kafka"}}),
        "jmxlake_agent_service": False,
    }
    file = f"/etc/systemd/system/{AGENT}.service.d/attach.conf"
    play(machine, **wanted, jmxlake_agent_attach_user="kafka-broker")
    told = machine.run("cat", file)
    assert "\nUser=kafka-broker\nGroup=kafka-broker\n" in told
    assert "\nPrivateUsers=no\n" in told
    assert changed(play(machine, **wanted, jmxlake_agent_attach_user="kafka-broker")) == 0
    play(machine, **wanted)
    machine.run("test", "!", "-e", file)


def test_the_weekly_report_has_a_timer_where_it_is_configured(
    machine: Machine, bundle: Bundle
) -> None:
    wanted: dict[str, Any] = {
        "jmxlake_agent_tarball": f"/srv/bundle/{bundle.tarball.name}",
        "jmxlake_agent_version": bundle.tarball.name.split("-")[1],
        "jmxlake_agent_config": configuration(by_port()),
        "jmxlake_agent_files": {"jmx.password": f"{PASSWORD}\n"},
    }
    report = {"lake": "/var/lib/jmxlake/sample", "html": "/var/lib/jmxlake/reports/{week}.html"}
    start_jvm(machine)
    play(machine, **wanted)
    timer = "jmxlake-weekly.timer"
    assert machine.shows(timer, "UnitFileState") in {"", "disabled"}
    play(machine, "--check", **wanted, jmxlake_agent_weekly=report)
    play(machine, **wanted, jmxlake_agent_weekly=report)
    assert changed(play(machine, **wanted, jmxlake_agent_weekly=report)) == 0
    assert yaml.safe_load(machine.run("cat", "/etc/jmxlake/weekly.yaml")) == report
    assert machine.shows(timer, "UnitFileState") == "enabled"
    assert machine.shows(timer, "ActiveState") == "active"
    play(machine, **wanted)
    assert machine.shows(timer, "UnitFileState") == "disabled"
    assert machine.shows(timer, "ActiveState") == "inactive"
