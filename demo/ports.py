from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from functools import cache
from pathlib import Path

from demo.errors import DemoError

# Below the range from which Linux takes ports for outgoing connections: a port found free here
# is not taken by a client before the node binds it.
_LOWEST, _HIGHEST = 20_000, 32_000
_ATTEMPTS = 1_000
_RANDOM = random.SystemRandom()  # a seed that tests set must not give all of them the same ports
_given: set[int] = set()  # not bound yet, perhaps


def free_ports(count: int) -> list[int]:
    """Ports on which nobody listens on loopback, all different, and none that was given before.

    Nor does another process get them from here before this one ends: between the look and the
    node that binds one seconds pass, and a node that was killed wants its own again.

    Raises:
        DemoError: Too few were found.
    """
    found: set[int] = set()
    for _ in range(_ATTEMPTS):
        if len(found) == count:
            return list(found)
        port = _RANDOM.randint(_LOWEST, _HIGHEST)
        if port not in _given and _is_free(port) and _is_ours(port):
            found.add(port)
            _given.add(port)
    raise DemoError(f"No {count} free ports between {_LOWEST} and {_HIGHEST}: is all in use?")


def is_listening(port: int) -> bool:
    """Whether somebody accepts connections on this loopback port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _is_ours(port: int) -> bool:
    """Whether no other process was given the port: each locks a byte of one file for it."""
    try:
        fcntl.lockf(_given_to_any(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


@cache
def _given_to_any() -> int:
    """The file, open as long as we live: the locks end with it."""
    file = Path(tempfile.gettempdir(), f"jmxlake-ports-{os.getuid()}")
    return os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
