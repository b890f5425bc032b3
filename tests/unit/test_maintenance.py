"""Planned maintenance: its file, whom it concerns, and which windows are of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from lakehouse.core import periods
from lakehouse.core.periods import without
from lakehouse.core.subjects import Subject
from lakehouse.errors import MaintenanceFileError
from lakehouse.slo import report_calendar
from lakehouse.slo.report_calendar import Maintenance

if TYPE_CHECKING:
    from pathlib import Path

FILE = """\
maintenance:
  - start: 2026-11-17T22:00:00Z
    end: 2026-11-18 01:00:00+01:00
    clusters: [prod-*]
    topics: ["orders-*"]
    groups: [billing]
    reason: disks are exchanged
  - {start: 2026-11-16T00:00:00Z, end: 2026-11-16T01:00:00Z, reason: restart}
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "maintenance.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def subject(kind: str, name: str | None, cluster: str = "prod-1") -> Subject:
    names = dict.fromkeys(("topic", "user", "client_id", "group", "source"))
    return Subject(cluster, kind, **{**names, kind: name}, first_us=0, last_us=0)


def test_a_file_is_read_in_the_order_of_time(tmp_path: Path):
    first, second = report_calendar.load_maintenance(written(tmp_path, FILE))
    assert (first.reason, first.end_us - first.start_us) == ("restart", 3600 * 1_000_000)
    assert second.end_us - second.start_us == 2 * 3600 * 1_000_000
    assert second.to_json() == {
        "start": "2026-11-17T22:00:00Z", "end": "2026-11-18T00:00:00Z",
        "reason": "disks are exchanged", "clusters": ["prod-*"], "topics": ["orders-*"],
        "groups": ["billing"],
    }  # fmt: skip


def test_it_concerns_those_it_names_else_the_whole_cluster(tmp_path: Path):
    everybody, some = report_calendar.load_maintenance(written(tmp_path, FILE))
    assert everybody.concerns(subject("source", "broker-1", "other"))
    assert some.concerns(subject("topic", "orders-eu"))
    assert some.concerns(subject("group", "billing"))
    assert not some.concerns(subject("topic", "payments"))
    assert not some.concerns(subject("source", "broker-1"))
    assert not some.concerns(subject("topic", "orders-eu", "test"))


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("2026-11-17T22:00:00Z", "yesterday", "2:12"),
        ("2026-11-17T22:00:00Z", "2026-11-17T22:00:00", "2:12"),
        ("2026-11-17T22", "2026-11-19T22", "3:10"),
        ("topics", "topic", "5:5"),
        ('["orders-*"]', "orders", "5:13"),
        ("    reason: disks are exchanged\n", "", "2:5"),
        ("maintenance:", "maintenances:", "1:1"),
        ("restart}", "restart", "9:1"),
        ("reason: restart", "reason: restart, reason: more", "8:79"),
    ],
)
def test_what_is_wrong_has_its_place(tmp_path: Path, old: str, new: str, place: str):
    path = written(tmp_path, FILE.replace(old, new, 1))
    with pytest.raises(MaintenanceFileError) as caught:
        report_calendar.load_maintenance(path)
    assert str(caught.value).startswith(f"{path}:{place}: invalid: ")


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path):
    with pytest.raises(MaintenanceFileError, match="No such file"):
        report_calendar.load_maintenance(tmp_path / "nowhere.yaml")


def test_only_windows_that_lie_wholly_in_it_are_of_it():
    assert Maintenance(299, 901, "").windows(300) == (300, 900)
    assert Maintenance(300, 900, "").windows(300) == (300, 900)
    start, end = Maintenance(310, 590, "").windows(300)
    assert start >= end, "none"


def test_it_is_told_where_it_overlaps():
    week = periods.week("2026-W47")
    start = periods.micros(week.start)
    assert Maintenance(start - 5, start + 1, "").overlaps(week)
    assert not Maintenance(start - 5, start, "").overlaps(week)


_SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=5)


@given(_SPANS, _SPANS)
def test_holes_are_cut_out(spans: list[tuple[int, int]], holes: list[tuple[int, int]]):
    apart: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if start < end and (not apart or start >= apart[-1][1]):
            apart.append((start, end))
    left = [rest for span in apart for rest in without(span, holes)]
    assert left == sorted(left)
    covered = {at for s, e in apart for at in range(s, e)}
    gone = {at for s, e in holes for at in range(s, e)}
    assert sorted(at for s, e in left for at in range(s, e)) == sorted(covered - gone)
