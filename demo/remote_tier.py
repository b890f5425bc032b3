"""A tiered topic as the file system shows it, independent of what a broker says."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from demo.cluster import Cluster

_OFFSET_DIGITS = 20


class RemoteTier:
    """The local and remote segments of a topic; ``leaders`` are its partitions' leaders."""

    def __init__(self, cluster: Cluster, topic: str, leaders: Sequence[int]) -> None:
        self._remote = cluster.remote_folder
        self._local = [
            cluster.nodes[leader].plan.log_dir / f"{topic}-{partition}"
            for partition, leader in enumerate(leaders)
        ]

    def segments(self) -> int:
        """How many segments lie in the remote tier."""
        return sum(len(self._uploaded(folder)) for folder in self._local)

    def local_segments(self) -> int:
        """How many segments lie on the leaders, the active ones among them."""
        return sum(len(list(folder.glob("*.log"))) for folder in self._local)

    def copy_lag(self) -> int:
        """Bytes in closed segments that are on a leader only; the active segment never counts."""
        lag = 0
        for folder in self._local:
            closed = sorted(folder.glob("*.log"))[:-1]
            uploaded = {path.name[:_OFFSET_DIGITS] for path in self._uploaded(folder)}
            lag += sum(_size(log) for log in closed if log.name[:_OFFSET_DIGITS] not in uploaded)
        return lag

    def _uploaded(self, local: Path) -> list[Path]:
        """The segments' own files, which the storage plugin writes last."""
        return list(self._remote.glob(f"{local.name}/*/*.log"))


def _size(log: Path) -> int:
    try:
        return log.stat().st_size
    except FileNotFoundError:  # retention was faster
        return 0
