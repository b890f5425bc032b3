"""Which process is meant, told from recorded trees of /proc and from our own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from collector.errors import SourceRefusedError
from collector.sources.jmx.attach import check_jvm, find_pid

if TYPE_CHECKING:
    from pathlib import Path

MAPS = "7f00-7f01 r-xp 0 fe:01 1 /usr/lib/jvm/java-17/lib/server/libjvm.so\n"
OF_UNIT = "0::/system.slice/kafka.service\n"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    return tmp_path / "proc"


def process(
    proc: Path, pid: int, command: str, *, cgroup: str = "0::/\n", maps: str = MAPS
) -> None:
    folder = proc / str(pid)
    (folder / "root" / "etc").mkdir(parents=True)
    (folder / "cwd").mkdir()
    (folder / "cmdline").write_bytes(command.replace(" ", "\0").encode() + b"\0")
    (folder / "cgroup").write_text(cgroup)
    (folder / "maps").write_text(maps)


def broker(proc: Path, pid: int, node: int, *, cgroup: str = "0::/\n") -> None:
    command = "java -Xmx1g -cp /opt/libs/* kafka.Kafka /etc/server.properties"
    process(proc, pid, command, cgroup=cgroup)
    file = proc / str(pid) / "root" / "etc" / "server.properties"
    file.write_text(f"# node.id=9\nprocess.roles=broker\nnode.id = {node}\n")


def test_of_several_brokers_the_node_is_found(proc: Path) -> None:
    broker(proc, 11, 1)
    broker(proc, 12, 2)
    assert find_pid("2", proc=proc) == 12
    with pytest.raises(
        SourceRefusedError, match=r"attaching: 0 .* run kafka.Kafka as node 3; check"
    ):
        find_pid("3", proc=proc)
    with pytest.raises(SourceRefusedError, match=r"2 processes .*\(pids 11, 12\); set unit"):
        find_pid(None, proc=proc)


def test_an_override_goes_before_the_properties_and_a_relative_file_is_read_too(proc: Path) -> None:
    process(proc, 11, "java kafka.Kafka my.properties --override node.id=7 --override a=b")
    (proc / "11" / "cwd" / "my.properties").write_text("node.id=1\n")
    assert find_pid("7", proc=proc) == 11


def test_only_a_jvm_counts(proc: Path) -> None:
    process(proc, 11, "bash run kafka.Kafka", maps="/usr/bin/bash\n")
    process(proc, 12, "/usr/bin/java kafka.Kafka")
    process(proc, 13, "/usr/bin/java org.Other kafka.KafkaX")
    assert find_pid(None, proc=proc) == 12


@pytest.mark.parametrize("main", ["org.shop.Billing", "billing.jar"])
def test_a_client_is_found_by_its_class_or_its_jar(proc: Path, main: str) -> None:
    broker(proc, 11, 1)
    process(proc, 12, "java -Dx=y org.shop.Billing --fast")
    process(proc, 13, "java -jar /opt/shop/billing.jar")
    assert find_pid(None, main, proc=proc) == {"org.shop.Billing": 12, "billing.jar": 13}[main]


@pytest.mark.parametrize(
    ("cgroup", "unit"),
    [
        (OF_UNIT, "kafka"),
        (OF_UNIT, "kafka.service"),
        ("12:pids:/x\n1:name=systemd:/system.slice/kafka.service/inner\n0::/\n", "kafka"),
        ("0::/system.slice/system-kafka.slice/kafka@1.2.service\n", "kafka@1.2.service"),
        ("0::/user.slice/user-9.slice/user@9.service/app.slice/kafka.service\n", "kafka.service"),
        ("0::/system.slice/_cpu.service\n", "cpu.service"),
        ("0::/machine.slice/kafka.scope\n", "kafka.scope"),
    ],
)
def test_a_unit_is_told_from_the_control_group(proc: Path, cgroup: str, unit: str) -> None:
    process(proc, 10, "bash kafka-server-start.sh", cgroup=cgroup, maps="")
    process(proc, 11, "java whatever.Main", cgroup=cgroup)
    process(proc, 12, "java kafka.Kafka", cgroup="0::/system.slice/not-kafka.service\n")
    assert find_pid("1", unit=unit, proc=proc) == 11


def test_of_several_jvms_in_a_unit_the_main_class_and_the_node_decide(proc: Path) -> None:
    process(proc, 10, "java sidecar.Main", cgroup=OF_UNIT)
    broker(proc, 11, 1, cgroup=OF_UNIT)
    assert find_pid("1", unit="kafka", proc=proc) == 11
    broker(proc, 12, 2, cgroup=OF_UNIT)
    assert find_pid("2", unit="kafka", proc=proc) == 12
    with pytest.raises(SourceRefusedError, match=r"0 .* of unit kafka and run .* as node 3"):
        find_pid("3", unit="kafka", proc=proc)


def test_a_process_that_ends_meanwhile_or_may_not_be_read_is_passed_over(proc: Path) -> None:
    broker(proc, 11, 1)
    process(proc, 12, "java kafka.Kafka /etc/server.properties")
    (proc / "12" / "maps").unlink()
    (proc / "13").mkdir()
    process(proc, 14, "java kafka.Kafka")
    assert find_pid("1", proc=proc) == 11


def test_the_agent_does_not_take_itself_for_a_broker(proc: Path) -> None:
    process(proc, os.getpid(), "python jmxlake-agent kafka.Kafka")  # Java's library is in it
    with pytest.raises(SourceRefusedError, match="0 processes"):
        find_pid(None, proc=proc)


def test_a_pid_that_is_gone_or_no_jvm_is_told_before_java_is_asked(proc: Path) -> None:
    process(proc, 11, "java kafka.Kafka")
    process(proc, 12, "sleep 9", maps="/usr/bin/sleep\n")
    check_jvm(11, proc)
    with pytest.raises(SourceRefusedError, match="process 12: not a JVM"):
        check_jvm(12, proc)
    with pytest.raises(SourceRefusedError, match="process 13: not a JVM"):
        check_jvm(13, proc)


def test_what_we_may_not_look_into_is_never_attached_to(
    proc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process(proc, 11, "init")

    def denied(*_: object, **__: object) -> str:  # root may read any file of a test
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.read_text", denied)
    with pytest.raises(SourceRefusedError, match="process 11: not a JVM"):
        check_jvm(11, proc)
