"""What is brought to the disk, and what need not be; PermissionError stands in for another user."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from collector.delivery.commit_safety import fsync_commits

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    table = tmp_path / "data" / "lake" / "bronze" / "runs"
    (table / "_delta_log").mkdir(parents=True)
    (table / "date=2026-11-22").mkdir()
    (table / "date=2026-11-22" / "a.parquet").write_bytes(b"rows")
    commit = {"add": {"path": "date%3D2026-11-22/a.parquet"}}
    (table / "_delta_log" / f"{0:020}.json").write_text(json.dumps(commit))
    return table


def refused(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    """From now on that folder may be passed, but not listed; what is opened in spite of that."""
    opened: list[str] = []
    real = os.open

    def refusing(path: Any, *flags: Any, **more: Any) -> int:
        if str(path) == str(folder):
            raise PermissionError(13, "Permission denied", str(path))
        opened.append(str(path))
        return real(path, *flags, **more)

    monkeypatch.setattr(os, "open", refusing)
    return opened


def test_the_folder_of_the_lake_s_folder_may_be_another_user_s(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = refused(monkeypatch, table.parents[2])
    fsync_commits(table, None, 0)
    assert {str(table / "date=2026-11-22" / "a.parquet"), str(table / "date=2026-11-22")} <= {
        *opened
    }
    assert {str(table), str(table.parents[0]), str(table.parents[1])} <= {*opened}


def test_what_the_agent_has_written_must_be_its_own(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(monkeypatch, table / "date=2026-11-22")
    with pytest.raises(PermissionError):
        fsync_commits(table, None, 0)


def test_path_of_log_outside_table_is_not_opened(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = table.parent / "other.parquet"
    other.write_bytes(b"rows")
    added = {"add": {"path": "../other.parquet"}}
    (table / "_delta_log" / f"{1:020}.json").write_text(json.dumps(added))
    opened = refused(monkeypatch, table.parents[2])
    fsync_commits(table, None, 1)
    assert not any("other.parquet" in one for one in opened)


def test_pipe_that_log_names_does_not_block(table: Path) -> None:
    os.mkfifo(table / "pipe.parquet")
    (table / "_delta_log" / f"{1:020}.json").write_text('{"add": {"path": "pipe.parquet"}}')
    fsync_commits(table, None, 1)
