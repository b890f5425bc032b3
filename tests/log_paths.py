"""Paths that lead out of a table, and logs that name them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE: Final = (
    "../other/x.parquet", "%2E%2E/other/x.parquet", "..%2Fother%2Fx.parquet",
    "%252E%252E/other/x.parquet", "%25252e%25252e%25252fother", "date=1/../../other/x.parquet",
    "date=1/%2e%2e/%2E./other/x.parquet", "./../other/x.parquet", "/other/x.parquet",
    "%2Fother/x.parquet", "///other/x.parquet", "file:///other/x.parquet",
    "file%3A/other/x.parquet", "s3://bucket/x.parquet", "C:/other/x.parquet", "C%3Ax.parquet",
    "..\\other\\x.parquet", "..%5Cother%5Cx.parquet", "a\0.parquet", "a%00.parquet",
    "a%2500.parquet", "a\n.parquet", "%FF.parquet",
)  # fmt: skip
"""Paths that no log may name; of those that a file system resolves, all lead to ``other``."""


def name_file(table: Path, path: str, size: int = 1000, rows: int = 1) -> None:
    """Commit a file to a table's log by hand, whatever its path."""
    log = table / "_delta_log"
    version = max(int(one.stem) for one in log.glob("*.json")) + 1
    columns = json.loads(_last(log, "metaData"))["metaData"]["partitionColumns"]
    add = {
        "path": path, "size": size, "modificationTime": 0, "dataChange": True,
        "partitionValues": dict.fromkeys(columns, "2026-11-16"),
        "stats": json.dumps({"numRecords": rows}),
    }  # fmt: skip
    lines = [{"commitInfo": {"timestamp": 0, "engineInfo": "delta-rs:1.6.6"}}, {"add": add}]
    (log / f"{version:020}.json").write_text("\n".join(map(json.dumps, lines)))


def _last(log: Path, action: str) -> str:
    lines = (line for one in sorted(log.glob("*.json")) for line in one.read_text().splitlines())
    return [line for line in lines if line.startswith(f'{{"{action}"')][-1]
