"""Ports that two processes pick at one time: neither gets the other's."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from demo import ports

if TYPE_CHECKING:
    import pytest

_PICKS = "from demo.ports import free_ports; print(*free_ports(40), flush=True); input()"


def test_no_port_is_given_to_two_processes_before_anybody_binds_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _PICKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        theirs = {int(port) for port in other.stdout.readline().split()}
        assert len(theirs) == 40
        assert not any(map(ports._is_ours, theirs))
        both = iter([*theirs, *range(ports._LOWEST, ports._HIGHEST)])
        monkeypatch.setattr(ports._RANDOM, "randint", lambda *_: next(both))
        assert not theirs & {*ports.free_ports(5)}
        other.communicate("\n")
    assert any(map(ports._is_ours, theirs)), "it has ended"
