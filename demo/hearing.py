"""How long leaders take to hear of what the controllers decided, from the brokers' own logs.

The truth of a partition is the controllers'. A bean shows it once the leader has heard of it: after
some hundredths of a second, and tenths on a busy machine.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    # Topic, partition, partition epoch: every decision of a partition has an epoch of its own.
    Decision = tuple[str, int, int]

_HEARD = re.compile(
    r"^(?P<at>\S+) INFO \[Broker id=\d+\] (?:Leader|Skipped the become-leader state change for) "
    r"(?P<topic>\S+)-(?P<partition>\d+) with topic id "
    r".*?(?:with partition epoch |partitionEpoch=)(?P<epoch>\d+)"
)


def slowest_us(
    records: Iterable[tuple[float, dict[str, Any]]],
    logs: Iterable[Path],
    start: float,
    end: float,
) -> int:
    """The longest that a leader took, in microseconds; 0 if the logs tell of none.

    Args:
        records: Of the controllers' log, with their instants.
        logs: Of the brokers, with log4j2.properties' pattern.
        start: Of the period in which the controllers decided; seconds since the epoch.
        end: Of it.
    """
    decided = {what: at for what, at in _decisions(records) if start <= at < end}
    took = [
        round((at - decided[what]) * 1_000_000)
        for log in logs
        for what, at in _heard(log)
        if what in decided
    ]
    return max(took, default=0)


def _decisions(records: Iterable[tuple[float, dict[str, Any]]]) -> Iterator[tuple[Decision, float]]:
    topics: dict[str, str] = {}
    epochs: dict[tuple[str, int], int] = {}
    for at, record in records:
        kind, data = record["type"], record["data"]
        if kind == "TOPIC_RECORD":
            topics[data["topicId"]] = data["name"]
        elif kind in {"PARTITION_RECORD", "PARTITION_CHANGE_RECORD"}:
            key = topics[data["topicId"]], data["partitionId"]
            epochs[key] = data["partitionEpoch"] if kind == "PARTITION_RECORD" else epochs[key] + 1
            yield (*key, epochs[key]), at


def _heard(log: Path) -> Iterator[tuple[Decision, float]]:
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if match := _HEARD.match(line):
                at = datetime.strptime(match["at"], "%Y-%m-%dT%H:%M:%S,%f").replace(tzinfo=UTC)
                what = match["topic"], int(match["partition"]), int(match["epoch"])
                yield what, at.timestamp()
