"""The log: whoever speaks, a line is a line and has event, level and time."""

from __future__ import annotations

import json
import subprocess
import sys

SPEAKERS = """
import logging, threading, warnings
import structlog
from collector.logs import configure
configure(as_json={as_json})
structlog.get_logger().warning("ours\\nof two lines", what="x")
try:
    raise ValueError("of a\\nlibrary")
except ValueError:
    logging.getLogger("apscheduler").exception("Job %s raised", "y")
logging.getLogger("apscheduler").warning("not an error")
thread = threading.Thread(target=lambda: int("z"), name="worker")
thread.start()
thread.join()
warnings.warn("for developers")
"""


def said(*, as_json: bool) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-c", SPEAKERS.format(as_json=as_json)],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert ran.stdout == ""
    return ran.stderr.splitlines()


def test_every_line_is_json_with_event_level_and_time() -> None:
    lines = [json.loads(line) for line in said(as_json=True)]
    assert [line["event"] for line in lines] == [
        "ours of two lines", "Job y raised", "a thread ended"
    ]  # fmt: skip
    assert [line["level"] for line in lines] == ["warning", "error", "error"]
    for line in lines:
        assert line["time"].endswith("Z")
    assert lines[1]["error"] == "ValueError: of a library"
    assert lines[2]["thread"] == "worker"


def test_who_speaks_to_a_full_disk_goes_on() -> None:
    code = """
import logging, structlog
from collector.logs import configure
configure(as_json=False)
for number in range(3):
    structlog.get_logger().warning("failed", what="spool")
print("goes on")
"""
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        ran = subprocess.run(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=full, text=True,
            timeout=60, check=False,
        )  # fmt: skip
    assert ran.stdout == "goes on\n"


def test_for_people_it_is_a_line_each_too() -> None:
    lines = said(as_json=False)
    assert len(lines) == 3
    assert all(
        level in line for level, line in zip(("warning", "error", "error"), lines, strict=True)
    )
