"""The plan of maintenance: how a table stands goes in, actions come out."""

from __future__ import annotations

import datetime as dt
from typing import Any

from lakehouse.ops.maintain.plan import (
    Checkpoint,
    Comment,
    Compact,
    Drop,
    Expire,
    NoteCleaned,
    Vacuum,
    day_of,
    plan,
)
from lakehouse.ops.maintain.table_state import DataFile, ReadPosition, TableState

NOW = dt.datetime(2026, 11, 18, 12, tzinfo=dt.UTC)
TODAY = NOW.date()
DAY = dt.timedelta(days=1)
HOUR = dt.timedelta(hours=1)


def files(count: int, date: dt.date | None = TODAY, age: dt.timedelta = HOUR) -> list[DataFile]:
    return [DataFile(date, 20_000, NOW - age)] * count


def state(**changed: Any) -> TableState:
    stands: dict[str, Any] = {
        "uncheckpointed": 10,
        "cleaned": day_of(NOW),
        "files": (),
        "read": ReadPosition(1000),
    }
    return TableState(**{**stands, **changed, "files": tuple(changed.get("files", ()))})


def actions(keep_days: int = 400, **changed: Any) -> list[Any]:
    return list(plan(state(**changed), NOW, keep_days).actions)


def test_where_nothing_is_due_nothing_is_done() -> None:
    assert plan(state(), NOW, 400).actions == ()
    assert actions(files=files(31)) == []
    assert actions(files=files(1, TODAY - DAY, 2 * DAY)) == []


def test_columns_without_a_comment_come_first_in_one_commit() -> None:
    assert actions(uncommented=17) == [Comment(17)]
    drop, *_ = actions(uncommented=17, cleaned=0, keep_days=1, files=files(2, TODAY - 9 * DAY))[1:]
    assert isinstance(drop, Drop)
    assert actions(uncommented=1, uncheckpointed=49) == [Comment(1), Checkpoint(50, NOW)]


def test_a_checkpoint_is_due_well_before_a_hundred_commits() -> None:
    assert actions(uncheckpointed=49) == []
    assert actions(uncheckpointed=50) == [Checkpoint(50, NOW)]


def test_the_commits_of_this_very_round_count() -> None:
    found = actions(uncheckpointed=49, files=files(32))
    assert found == [Compact(TODAY, 640_000, 32, 640_000), Checkpoint(50, NOW)]


def test_an_open_date_is_compacted_by_count() -> None:
    assert actions(files=files(32)) == [Compact(TODAY, 640_000, 32, 640_000)]
    assert actions(files=files(2)) == []


def test_a_closed_date_becomes_one_file_when_it_is_quiet() -> None:
    yesterday = TODAY - DAY
    assert actions(files=files(2, yesterday, HOUR * 2)) == [Compact(yesterday, 40_000, 2, 40_000)]
    assert actions(files=files(2, yesterday, HOUR / 2)) == [], "late data is still coming"


def test_dates_are_compacted_apart() -> None:
    mixed = [one for pair in zip(files(40), files(40, TODAY + DAY), strict=True) for one in pair]
    found = actions(files=mixed)
    assert [one.date for one in found] == [TODAY, TODAY + DAY]


def test_a_table_without_dates_is_compacted_by_count() -> None:
    found = actions(files=files(40, None, 9 * DAY))
    assert found == [Compact(None, 800_000, 40, 800_000)]
    assert actions(files=files(31, None, 9 * DAY)) == []


def test_once_a_day_what_is_old_is_cleaned_away() -> None:
    found = actions(cleaned=day_of(NOW) - 1)
    assert found == [Expire(1000), Vacuum(720, full=False), NoteCleaned(day_of(NOW))]


def test_once_a_week_orphans_too() -> None:
    weeks = day_of(NOW) // 7 * 7
    assert actions(cleaned=weeks - 1)[1] == Vacuum(720, full=True)
    assert actions(cleaned=-1)[1] == Vacuum(720, full=True)
    assert actions(cleaned=day_of(NOW)) == []


def test_what_was_not_read_is_kept_with_a_day_for_clocks() -> None:
    read = ReadPosition(500, NOW - 50 * DAY)
    found = actions(cleaned=0, read=read)
    assert found[:2] == [Expire(500), Vacuum(51 * 24, full=True)]
    assert actions(cleaned=0, read=ReadPosition(500, NOW - 10 * DAY))[1] == Vacuum(720, full=True)


def test_without_progress_only_checkpoints_and_compaction_are_done_and_it_says_why() -> None:
    old = TODAY - 500 * DAY
    found = plan(
        state(
            read="gold is not there",
            cleaned=-1,
            uncheckpointed=1010,
            files=[*files(32), *files(1, old, 500 * DAY)],
        ),
        NOW,
        400,
    )
    assert [type(one) for one in found.actions] == [Compact, Checkpoint]
    assert found.not_done == ("log, removed files and old dates are kept: gold is not there",)


def test_dates_beyond_retention_go_whole() -> None:
    last, first = TODAY - 400 * DAY, TODAY - 401 * DAY
    found = actions(
        cleaned=0, files=[*files(1, last, 400 * DAY), *files(3, first, 401 * DAY)], keep_days=400
    )
    assert found[0] == Drop(last, 3, 60_000)
    assert not [one for one in found if isinstance(one, Compact)], "what goes is not compacted"


def test_an_old_date_with_rows_that_may_be_unread_stays() -> None:
    old = files(1, TODAY - 500 * DAY, HOUR)
    assert not any(
        isinstance(one, Drop)
        for one in actions(cleaned=0, files=old, read=ReadPosition(9, NOW - HOUR))
    )
    read = ReadPosition(9, NOW - HOUR)
    before = files(1, TODAY - 500 * DAY, 3 * DAY)
    assert any(isinstance(one, Drop) for one in actions(cleaned=0, files=before, read=read))


def test_a_table_beyond_its_budget_of_files_is_told() -> None:
    days = [one for back in range(3_100) for one in files(1, TODAY - back * DAY, 9 * DAY)]
    left = plan(state(files=days), NOW, 4_000).not_done
    assert len(left) == 1
    assert left[0].startswith("3100 live files will remain")


def test_commits_of_unknown_engines_are_told() -> None:
    assert plan(state(), NOW, 400, 2).not_done == ("2 commits without the name of an engine",)
