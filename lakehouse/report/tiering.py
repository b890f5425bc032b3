"""What topics hold and move in the remote store: what tiered storage is paid for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lakehouse import tables
from lakehouse.report.gather import COPY_LAG
from lakehouse.report.sums import unknown_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.gold_rows import Row
    from lakehouse.report.gather import Gold
    from lakehouse.sla import Statement

_STORED: Final = "kafka.topic.remote_log_size.bytes"
_RISING: Final = {
    "uploaded_bytes": "kafka.topic.remote_copy.bytes",
    "read_bytes": "kafka.topic.remote_fetch.bytes",
}


def tiering(gold: Gold, stated: Sequence[Statement]) -> Row:
    """Per topic of which anything was told: bytes uploaded and read, and byte-seconds stored."""
    found: dict[str, dict[str, Row]] = {}
    for row in gold.sums(tables.TOPICS, ("metric", "topic")):
        if row["metric"] in (_STORED, *_RISING.values()):
            found.setdefault(str(row["topic"]), {})[row["metric"]] = row
    unknown = {key[0]: us for key, us in unknown_of(stated, COPY_LAG).items()}
    return {
        "topics": [
            {
                "topic": topic,
                **{key: told.get(metric, {}).get("increase") for key, metric in _RISING.items()},
                "stored_byte_seconds": told.get(_STORED, {}).get("value_seconds"),
                "unknown_us": unknown.get(topic),
            }
            for topic, told in sorted(found.items())
            if any(row.get("increase") or row.get("value_seconds") for row in told.values())
        ]
    }
