"""The log: every line has event, level and time, for every writer."""

from __future__ import annotations

import json
import subprocess
import sys

SPEAKERS = """
import logging, threading, warnings
from collector.telemetry import logs
logs.configure(as_json={as_json}, level="{level}")
logs.debug("not said unless asked for")
logs.warning("ours\\nof two lines", what="x\\x1b[2J")
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


def said(*, as_json: bool, level: str = "info") -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-c", SPEAKERS.format(as_json=as_json, level=level)],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert ran.stdout == ""
    return ran.stderr.splitlines()


def test_every_line_is_json_with_event_level_and_time() -> None:
    lines = [json.loads(line) for line in said(as_json=True)]
    assert [line["event"] for line in lines] == [
        "ours of two lines", "Job y raised", "thread_died"
    ]  # fmt: skip
    assert [line["level"] for line in lines] == ["warning", "error", "error"]
    for line in lines:
        assert line["time"].endswith("Z")
    assert lines[1]["error"] == "unexpected ValueError: of a library (<string>:8)"
    assert lines[2]["thread"] == "worker"
    assert lines[0]["what"] == "x\x1b[2J"


def test_lower_level_is_not_logged() -> None:
    assert len(said(as_json=True, level="debug")) == 4
    assert len(said(as_json=True, level="error")) == 2


def test_unexpected_error_is_traced_at_debug() -> None:
    code = """
from collector.telemetry import logs
logs.configure(as_json=True, level="debug")
def inner(): raise KeyError("a value")
def outer(): inner()
try: outer()
except KeyError as error: logs.trace(error)
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    line = json.loads(ran.stderr)
    assert line["places"] == "<string>:6 <module> > <string>:5 outer > <string>:4 inner"
    assert "a value" not in ran.stderr


def test_log_on_full_disk_is_ignored() -> None:
    code = """
from collector.telemetry import logs
logs.configure(as_json=False)
for number in range(3):
    logs.warning("failed", what="spool")
print("goes on")
"""
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        ran = subprocess.run(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=full, text=True,
            timeout=60, check=False,
        )  # fmt: skip
    assert ran.stdout == "goes on\n"


def test_text_log_has_one_line_per_event() -> None:
    lines = said(as_json=False)
    assert len(lines) == 3
    assert "\x1b" not in "".join(lines)
    assert all(
        level in line for level, line in zip(("warning", "error", "error"), lines, strict=True)
    )
