"""Changes to the log of a Delta table that no honest writer makes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from deltalake import CommitProperties, DeltaTable, Field
from deltalake.schema import PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path


def log_of(table: Path) -> list[Path]:
    """The commits of a table, in order."""
    return sorted((table / "_delta_log").glob("*.json"))


def last_add(table: Path) -> Path:
    """The newest commit that adds a file."""
    return next(one for one in reversed(log_of(table)) if '"add"' in one.read_text("utf-8"))


def actions(commit: Path) -> list[dict[str, Any]]:
    """The actions of a commit."""
    return [json.loads(line) for line in commit.read_text("utf-8").splitlines()]


def put(commit: Path, content: Iterable[dict[str, Any]]) -> None:
    """Write the actions of a commit."""
    commit.write_text("".join(f"{json.dumps(one)}\n" for one in content), "utf-8")


def edit(table: Path, change: Callable[[dict[str, Any]], None], kind: str = "add") -> None:
    """Change the first action of a kind in the newest commit that adds a file."""
    commit = last_add(table)
    told = actions(commit)
    change(next(one[kind] for one in told if kind in one))
    put(commit, told)


def append(table: Path, *more: dict[str, Any]) -> None:
    """One more commit."""
    commits = log_of(table)
    version = int(commits[-1].stem) + 1
    info = {"commitInfo": {"timestamp": 1795906222383, "operation": "WRITE", "jmxlake": "agent",
                           "operationParameters": {}}}  # fmt: skip
    put(commits[-1].with_name(f"{version:020}.json"), (info, *more))


def add_columns(table: Path, *names: str) -> None:
    """Add columns of text that nobody declared, as an agent's commit would."""
    mark = CommitProperties(custom_metadata={"jmxlake": "agent"})
    fields = [Field(name, PrimitiveType("string"), nullable=True) for name in names]
    DeltaTable(str(table)).alter.add_columns(fields, commit_properties=mark)
