"""How long leaders took to hear of a decision, read from lines as Kafka 4.3 writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from demo.hearing import slowest_us

if TYPE_CHECKING:
    from pathlib import Path

T0 = 1_700_000_000.0  # 2023-11-14T22:13:20
_REGISTRATION = "PartitionRegistration(replicas=[2, 3], isr=[3], leader=3, partitionEpoch={epoch})"


def record(at: float, kind: str, **data: Any) -> tuple[float, dict[str, Any]]:
    return T0 + at, {"type": kind, "data": {"topicId": "id", **data}}


RECORDS = [
    record(0, "TOPIC_RECORD", name="my-topic"),
    record(0, "PARTITION_RECORD", partitionId=4, partitionEpoch=0),
    record(1, "PARTITION_CHANGE_RECORD", partitionId=4, isr=[3]),
    record(2, "PARTITION_CHANGE_RECORD", partitionId=4, isr=[3, 2]),
]


def line(second: str, epoch: int, deed: str) -> str:
    said = {
        "leads": (
            "Leader my-topic-4 with topic id Some(id) starts at leader epoch 9 from offset 7 "
            f"with partition epoch {epoch}, high watermark 5, ISR [3], adding replicas []"
        ),
        "goes on": (
            "Skipped the become-leader state change for my-topic-4 with topic id Some(id), "
            f"partition registration {_REGISTRATION.format(epoch=epoch)} and isNew=false"
        ),
        "follows": (
            f"Follower my-topic-4 starts at leader epoch 9 with partition epoch {epoch} and so on"
        ),
    }
    return f"2023-11-14T22:13:{second} INFO [Broker id=3] {said[deed]} (state.change.logger)\n"


def heard(folder: Path, *lines: str, start: float = 0, end: float = 10) -> int:
    log = folder / "node.log"
    log.write_text("".join(lines))
    return slowest_us(RECORDS, [log], T0 + start, T0 + end)


def test_the_slowest_leader_counts_whether_new_or_not(tmp_path: Path) -> None:
    both = line("21,070", 1, "leads"), line("22,335", 2, "goes on")
    assert heard(tmp_path, *both) == 335_000
    assert heard(tmp_path, *both[:1]) == 70_000


def test_only_decisions_of_the_period_count(tmp_path: Path) -> None:
    both = line("21,070", 1, "leads"), line("22,335", 2, "goes on")
    assert heard(tmp_path, *both, end=2) == 70_000
    assert heard(tmp_path, *both, start=1.5) == 335_000


def test_followers_and_other_lines_are_not_leaders(tmp_path: Path) -> None:
    assert heard(tmp_path, line("29,000", 1, "follows"), "anything else\n") == 0
