"""Fetches of indexes: our plugin counts them for JMX, and the one that it wraps notes them.

What the wrapped plugin notes is the truth: what really reached the store, whatever a bean says.
One broker fetches the indexes of a segment at once, the others one by one.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from demo.jars import TEST_JARS, cache_folder, kafka_libs
from demo.java import compile_jar
from demo.locked import locked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from demo.node import Node
    from demo.properties import NodePlan

FAMILY: Final = "index_fetches"
AT_ONCE: Final = 3
"""The broker that fetches all indexes of a segment at once."""

_ROOT: Final = Path(__file__).parents[1]
SOURCES: Final = sorted((_ROOT / "deploy/kafka/src/main/java/jmxlake/kafka").glob("*.java"))
"""Our plugin."""

AIVEN_SOURCES: Final = sorted((_ROOT / "deploy/kafka/aiven/src/main/java").rglob("*.java"))
"""Our storage backend for Aiven's plugin, and declarations of that plugin's interface."""

_AHEAD: Final = "jmxlake-index-fetch"  # the threads of our plugin; all others are the broker's own
_DELAY_MS: Final = 40  # as an object store takes to answer


def plugins_jar() -> Path:
    """The jar with our plugin and the one that it wraps here, compiled if it is not there yet.

    Raises:
        DemoError: They could not be compiled.
    """
    sources = [*SOURCES, *sorted((_ROOT / "demo/plugins").glob("*.java"))]
    content = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    jar = cache_folder() / f"plugins-{content}.jar"
    with locked(jar.parent / "lock", "Jars"):
        if not jar.exists():
            compile_jar(sources, [kafka_libs(), kafka_libs() / TEST_JARS], jar)
    return jar


def plugin_settings(plan: NodePlan) -> dict[str, str]:
    """Settings of a broker that counts its fetches of indexes, and notes them in its folder."""
    return {
        "remote.log.storage.manager.class.path": str(plugins_jar()),
        "remote.log.storage.manager.class.name": "jmxlake.kafka.CountingRemoteStorageManager",
        "rsm.config.wrapped.class.name": "DistantTieredStorage",
        "rsm.config.fetch.indexes.at.once": str(plan.id == AT_ONCE).lower(),
        "rsm.config.notes.file": str(_notes(plan)),
        "rsm.config.delay.ms": str(_DELAY_MS),
    }


def noted(brokers: Iterable[Node], start: float, end: float) -> Iterator[dict[str, Any]]:
    """What the wrapped plugins noted between two instants (seconds), of each broker.

    A request by a thread of the broker itself is a round trip that it waited for.
    """
    for node in brokers:
        notes = _notes(node.plan)
        lines = notes.read_text().splitlines() if notes.exists() else []
        rows = [line.split("\t") for line in lines]
        rows = [row for row in rows if start <= int(row[0]) / 1000 < end]
        waited = [row for row in rows if row[1] != _AHEAD]
        yield {
            "source": node.plan.name,
            "at_once": node.plan.id == AT_ONCE,
            "segments": len({row[2] for row in rows}),
            "requests": len(rows),
            "round_trips": len(waited),
            "seconds": sum(int(row[4]) for row in waited) / 1e9,
            "bytes": sum(max(0, int(row[5])) for row in rows),
            "not_found": sum(int(row[5]) < 0 for row in rows),
        }


def _notes(plan: NodePlan) -> Path:
    return plan.folder / "index-fetches.tsv"
