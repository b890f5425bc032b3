"""The log: every line has event, level and time, for every writer."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys

import pytest

from collector.telemetry import logs

SPEAKERS = """
import logging, threading, warnings
from collector.telemetry import logs
logs.configure(as_json={as_json}, level="{level}")
logs.debug("not said unless asked for")
logs.warning("ours\\nof two lines", what="x\\x1b[2J", families=["a", "b"], left_out=None)
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
    logs.warning("spool_failed", error="x")
print("goes on")
"""
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        ran = subprocess.run(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=full, text=True,
            timeout=60, check=False,
        )  # fmt: skip
    assert ran.stdout == "goes on\n"


def test_text_log_is_one_line_of_logfmt_per_event() -> None:
    lines = [line.split(" ", 1) for line in said(as_json=False)]
    assert all(re.fullmatch(r"time=\d{4}-\d\d-\d\dT[\d:.]+Z", time) for time, _ in lines)
    assert [rest for _, rest in lines] == [
        r'level=warning event="ours of two lines" what="x\u001b[2J" families=a,b',
        'level=error event="Job y raised" error="unexpected ValueError: of a library (<string>:8)"',
        "level=error event=thread_died thread=worker"
        """ error="unexpected ValueError: invalid literal for int() with base 10: 'z'"""
        ' (<string>:12)"',
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain/path:1", "plain/path:1"),
        ("two words", '"two words"'),
        ('say "x"', r'"say \"x\""'),
        ("a=b", '"a=b"'),
        (r"c:\x", r'"c:\\x"'),
        ("", '""'),
        ("a\nb", r'"a\nb"'),
        ([], '""'),
    ],
)
def test_logfmt_quotes_values_that_are_not_one_word(value: object, text: str) -> None:
    assert logs.logfmt({"key": value}) == f"key={text}"


def test_job_is_logged_when_its_result_changes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "jmxlake")
    log = logs.DedupLog()
    for error in (None, "no space", "no space", None, None):
        log.report("spool", error)
    log.report("discovery", "no answer", source="broker auto h")
    log.report("discovery", None, source="another")
    assert caplog.messages == [
        'event=spool_failed error="no space"',
        "event=spool_recovered",
        'event=discovery_failed source="broker auto h" error="no answer"',
    ]
