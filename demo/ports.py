from __future__ import annotations

import random
import socket

from demo.errors import DemoError

# Below the range from which Linux takes ports for outgoing connections: a port found free here
# is not taken by a client before the node binds it.
_LOWEST, _HIGHEST = 20_000, 32_000
_ATTEMPTS = 1_000
_RANDOM = random.SystemRandom()  # a seed that tests set must not give all of them the same ports
_given: set[int] = set()  # not bound yet, perhaps


def free_ports(count: int) -> list[int]:
    """Ports on which nobody listens on loopback, all different, and none that was given before.

    Raises:
        DemoError: Too few were found.
    """
    found: set[int] = set()
    for _ in range(_ATTEMPTS):
        if len(found) == count:
            return list(found)
        port = _RANDOM.randint(_LOWEST, _HIGHEST)
        if port not in _given and _is_free(port):
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
