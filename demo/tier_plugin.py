"""The storage plugin of demo and tests: settings, faults on demand, and its own account.

The account is the truth about remote storage: it has every copy and deletion, whatever a broker or
a bean reports.
"""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from demo.jars import cache_folder, kafka_libs
from demo.java import compile_jar
from demo.locked import locked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from demo.cluster import Cluster
    from demo.node import Node
    from demo.properties import NodePlan

CLASS: Final = "FolderTier"

_ROOT: Final = Path(__file__).parents[1]
SOURCES: Final = sorted((_ROOT / "deploy/kafka/src/main/java/jmxlake/kafka").glob("*.java"))
"""The product's plugin for brokers, which the same jar contains."""


class Fault(StrEnum):
    """A fault of the store, for all brokers of a cluster.

    A copy that hangs continues when the fault ends.
    """

    HANG_COPY = "hang-copy"
    FAIL_COPY = "fail-copy"
    FAIL_DELETE = "fail-delete"


class TierEvent(NamedTuple):
    """A line of the account.

    Attributes:
        at_ms: Time of the line, by the broker's clock (Unix milliseconds).
        event: ``copy_started``, ``copy_finished``, ``copy_failed``, the same of ``delete``,
            ``index_fetched``, ``index_failed``.
        segment: Id of the remote segment.
        first: First offset of the segment.
        last: Last offset of the segment.
        size: Bytes of the segment, or of the index. -1 if the index was not fetched.
        nanos: Duration of the work (ns). 0 when it starts.
        index_type: Type of the index. ``-`` for work on a segment.
    """

    at_ms: int
    event: str
    topic: str
    partition: int
    topic_id: str
    segment: str
    first: int
    last: int
    size: int
    nanos: int
    thread: str
    index_type: str


def plugins_jar() -> Path:
    """Return the jar with the product's plugin and the demo's plugin, compiled if it is missing.

    Raises:
        DemoError: javac refused the sources.
    """
    sources = [*SOURCES, *sorted((_ROOT / "demo/plugins").glob("*.java"))]
    content = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    jar = cache_folder() / f"plugins-{content}.jar"
    with locked(jar.parent / "lock", "Jars"):
        if not jar.exists():
            compile_jar(sources, [kafka_libs()], jar)
    return jar


def storage_settings(plan: NodePlan, remote: Path) -> dict[str, str]:
    """Return a broker's settings of the plugin; ``remote`` is the folder of the segments."""
    manager = "remote.log.storage.manager"
    return {
        f"{manager}.class.path": str(plugins_jar()),
        f"{manager}.class.name": CLASS,
        f"{manager}.impl.prefix": "rsm.config.",
        "rsm.config.dir": str(remote),
        "rsm.config.faults.dir": str(_faults(remote)),
        "rsm.config.account.file": str(_account(plan)),
    }


@contextmanager
def fault(cluster: Cluster, kind: Fault) -> Iterator[None]:
    """Cause a fault of the store while the block runs."""
    file = _faults(cluster.remote_folder) / kind
    file.parent.mkdir(exist_ok=True)
    file.touch()
    try:
        yield
    finally:
        file.unlink()


def account(brokers: Iterable[Node]) -> list[TierEvent]:
    """Return the lines of these brokers, by time."""
    return sorted(event for node in brokers for event in broker_account(node))


def broker_account(node: Node) -> list[TierEvent]:
    """Return the lines of one broker, in their order."""
    file = _account(node.plan)
    text = file.read_text("utf-8") if file.exists() else ""
    complete = text.splitlines() if text.endswith("\n") else text.splitlines()[:-1]
    return [_event(line) for line in complete]


def _event(line: str) -> TierEvent:
    at, event, topic, partition, topic_id, segment, first, last, *rest = line.split("\t")
    size, nanos, thread, index_type = rest
    return TierEvent(
        int(at), event, topic, int(partition), topic_id, segment, int(first), int(last),
        int(size), int(nanos), thread, index_type,
    )  # fmt: skip


def _faults(remote: Path) -> Path:
    return remote.with_name(f"{remote.name}-faults")


def _account(plan: NodePlan) -> Path:
    return plan.folder / "remote-account.tsv"
