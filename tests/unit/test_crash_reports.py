"""A report that a dying JVM left is an event once, and bounded on the disk."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from collector.sources.java import jvm

if TYPE_CHECKING:
    from pathlib import Path

REPORT = """#
# A fatal error has been detected by the Java Runtime Environment:
#
#  SIGSEGV (0xb) at pc=0x00007f, pid=4711, tid=4712
#
Command Line: -Dpassword=hunter2
"""


def test_crash_report_is_new_once_with_cause(tmp_path: Path) -> None:
    spool = tmp_path / "spool.db"
    (tmp_path / "spool.db.hs_err_4711.log").write_text(REPORT)
    os.utime(tmp_path / "spool.db.hs_err_4711.log", (7, 7))
    (tmp_path / "other.db.hs_err_1.log").write_text(REPORT)
    (crash,) = jvm.new_crashes(spool)
    assert (crash.at_us, crash.cause) == (
        7_000_000,
        "SIGSEGV (0xb) at pc=0x00007f, pid=4711, tid=4712",
    )
    assert jvm.new_crashes(spool) == [crash], "not recorded yet"
    crash.seen()
    assert jvm.new_crashes(spool) == []
    assert len(jvm.all_crashes(spool)) == 1


def test_crash_report_without_cause_is_reported(tmp_path: Path) -> None:
    (tmp_path / "spool.db.hs_err_1.log").write_bytes(b"\xff\x00")
    assert jvm.new_crashes(tmp_path / "spool.db")[0].cause == "unknown cause"


def test_newest_twenty_crash_reports_are_kept(tmp_path: Path) -> None:
    for number in range(23):
        path = tmp_path / f"spool.db.crash_{number}.log"
        path.write_text(REPORT)
        os.utime(path, (number, number))
    jvm.new_crashes(tmp_path / "spool.db")
    kept = sorted(one.at_us for one in jvm.all_crashes(tmp_path / "spool.db"))
    assert kept == [number * 1_000_000 for number in range(3, 23)]


def test_crash_report_path_may_have_spaces(tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    assert shlex.split(jvm.crash_report_option(folder / "spool.db")) == [
        f"-XX:ErrorFile={folder}/spool.db.hs_err_%p.log"
    ]
