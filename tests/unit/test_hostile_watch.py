"""Each figure of ``make test-hostile`` counts what it is for: a bad command trips it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Final

import pytest

from tests.hostile import __main__ as hostile, watch
from tests.hostile.canary import Canary
from tests.hostile.case import NEIGHBOUR, OUTSIDE, REFUSED, SECRET, TAKEN, Case, Command, Room
from tests.hostile.rooms import furnish

if TYPE_CHECKING:
    from pathlib import Path

BAD: Final = {
    "tracebacks": "raise ValueError('no')",
    "hangs": "import time; time.sleep(600)",
    "code_run": "open('outside/ran', 'w').close()",
    "files_outside": "open('outside/other', 'w').close()",
    "connections": "import socket; socket.create_connection('@CANARY@'.split(':'), 9).close()",
    "ports_opened": "import socket, time; s = socket.create_server(('', 0)); time.sleep(1)",
    "secrets_seen": "import os; print(os.environ['HOSTILE_PASSWORD'])",
    "wrong_codes": "raise SystemExit(1)",
}
"""Python that does what no command may."""


@pytest.fixture(autouse=True)
def _python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "program", lambda _: sys.executable)


def given(tmp_path: Path, code: str, **more: object) -> hostile.Shown:
    settings = {"codes": REFUSED if "ValueError" in code else TAKEN, "seconds": 20.0, "lines": 99}
    command = Command(("jmxlake-agent", "-c", code), **{**settings, **more})  # type: ignore[arg-type]
    case = Case("place", "name", lambda _: None, (command,))
    (shown,) = hostile._give(case, tmp_path / "room", keep=True)
    return shown


@pytest.mark.parametrize("figure", BAD)
def test_bad_command_is_counted_in_its_figure(figure: str, tmp_path: Path) -> None:
    shown = given(tmp_path, BAD[figure], seconds=2.0 if figure == "hangs" else 20.0)
    assert {one.figure for one in shown.found} == {figure}
    assert hostile.Findings([shown]).missed(whole=False) == [figure]


def test_good_command_misses_no_bar(tmp_path: Path) -> None:
    shown = given(tmp_path, "open('out/x', 'w').close()")
    assert shown.found == ()
    assert hostile.Findings([shown]).missed(whole=False) == []
    assert hostile.Findings([shown]).missed(whole=True) == ["inputs"]


def test_large_agent_misses_the_bar_of_memory(tmp_path: Path) -> None:
    shown = given(tmp_path, "import time; x = b'x' * 600_000_000; time.sleep(0.5)")
    assert hostile.Findings([shown]).missed(whole=False) == ["peak_mb"]


def test_long_error_counts_as_traceback(tmp_path: Path) -> None:
    code = "import sys; sys.stderr.write('what\\n' * 20)"
    assert {one.figure for one in given(tmp_path, code, lines=6).found} == {"tracebacks"}


@pytest.mark.parametrize("trace", [
    "thread 'main' panicked at src/lib.rs", "   1: <unknown>",
    "\tat java.base/java.lang.Thread.run(Thread.java:840)", "\tat Main.main(Main.java:3)",
])  # fmt: skip
def test_trace_of_another_language_is_counted(trace: str, tmp_path: Path) -> None:
    shown = given(tmp_path, f"print({trace!r})")
    assert {one.figure for one in shown.found} == {"tracebacks"}


@pytest.mark.parametrize("marker", [OUTSIDE, NEIGHBOUR])
def test_content_from_outside_is_counted(marker: str, tmp_path: Path) -> None:
    shown = given(tmp_path, f"open('out/x', 'w').write({marker!r})")
    assert {one.figure for one in shown.found} == {"files_outside"}


def test_secret_in_parquet_is_counted(tmp_path: Path) -> None:
    code = (
        "import pyarrow as pa, pyarrow.parquet as pq;"
        f"pq.write_table(pa.table({{'a': [{SECRET!r}] * 9}}), 'out/x.parquet')"
    )
    assert {one.figure for one in given(tmp_path, code).found} == {"secrets_seen"}


def test_call_over_udp_is_counted(tmp_path: Path) -> None:
    code = (
        "import socket; h, p = '@CANARY@'.split(':');"
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', (h, int(p)));"
        "import time; time.sleep(0.5)"
    )
    assert {one.figure for one in given(tmp_path, code).found} == {"connections"}


def test_port_of_a_child_is_counted(tmp_path: Path) -> None:
    child = "import socket, time; s = socket.create_server(('', 0)); time.sleep(1)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    assert {one.figure for one in given(tmp_path, code).found} == {"ports_opened"}


def test_permitted_port_is_not_counted(tmp_path: Path) -> None:
    assert given(tmp_path, BAD["ports_opened"], listens=1).found == ()


def test_canary_counts_each_call_once(tmp_path: Path) -> None:
    with Canary() as canary, (room := Room(tmp_path, canary.where)).stack:
        furnish(room)
        command = Command(("x", "-c", BAD["connections"]))
        watch.watched(command, room)
        assert len(canary.taken()) == 1
        assert canary.taken() == []


def test_last_line_is_json_with_every_figure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = Command(("jmxlake", "-c", BAD["files_outside"]), TAKEN)
    case = Case("place", "name", lambda _: None, (command,))
    monkeypatch.setattr(hostile.places, "every", lambda: iter([case]))
    assert hostile.main(["--only", "place", "--jobs", "1"]) == 1
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told.keys() == {"claim", "figures", "ratios"}
    assert told["figures"]["inputs"] == told["figures"]["files_outside"] == 1
    assert told["figures"]["by_place"] == {"place": 1}


def test_every_case_has_a_name_of_its_own() -> None:
    cases = hostile._chosen(hostile.places.every(), None)
    assert sum(len(case.commands) for case in cases) >= hostile.INPUTS_AT_LEAST
