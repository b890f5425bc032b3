"""The account of the demo's storage plugin, as files of brokers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from demo.properties import NodePlan
from demo.tier_plugin import Fault, TierEvent, account, broker_account, fault

if TYPE_CHECKING:
    from pathlib import Path

    from demo.cluster import Cluster
    from demo.node import Node

SEGMENT = "copy_finished\torders\t0\tAAAA\tBBBB\t0\t99\t1048000\t2500\ttask-1\t-"


def node(folder: Path, text: str | None) -> Node:
    folder.mkdir()
    if text is not None:
        (folder / "remote-account.tsv").write_text(text)
    plan = NodePlan(1, "broker", folder, 1, None, None)
    return cast("Node", SimpleNamespace(plan=plan))


def test_lines_of_all_brokers_are_sorted_by_time(tmp_path: Path) -> None:
    first = node(tmp_path / "1", f"1000\t{SEGMENT}\n3000\t{SEGMENT}\n")
    second = node(tmp_path / "2", f"2000\t{SEGMENT}\n")
    third = node(tmp_path / "3", None)
    assert [event.at_ms for event in account([first, second, third])] == [1000, 2000, 3000]
    event = "copy_finished", "orders", 0, "AAAA", "BBBB", 0, 99, 1_048_000, 2500, "task-1", "-"
    assert account([second]) == [TierEvent(2000, *event)]


def test_unfinished_line_is_left_out(tmp_path: Path) -> None:
    lines = broker_account(node(tmp_path / "1", f"1000\t{SEGMENT}\n2000\tcopy_fin"))
    assert [event.at_ms for event in lines] == [1000]


def test_fault_ends_with_its_block(tmp_path: Path) -> None:
    cluster = cast("Cluster", SimpleNamespace(remote_folder=tmp_path / "remote"))
    file = tmp_path / "remote-faults" / "fail-delete"
    with fault(cluster, Fault.FAIL_DELETE):
        assert file.exists()
    assert not file.exists()
