"""Reports the agent's state to systemd, by datagrams to the socket of NOTIFY_SOCKET."""

import os
import socket
import time
from collections.abc import Callable, Mapping
from typing import Final

from collector.telemetry.agent_stats import AgentStats

BEAT_SECONDS: Final = 2.0
"""How often the main loop goes round."""
_TIMEOUT_SECONDS: Final = 1.0  # a full socket must not hold up the main loop


class Service:
    """The agent as a service: when it is ready, how it is, and whether it is alive.

    Where no service manager listens, nothing happens.

    Args:
        stats: What the agent counts.
        environ: Where systemd leaves NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID.
        monotonic: A steady clock, in seconds.
    """

    def __init__(
        self,
        stats: AgentStats,
        environ: Mapping[str, str] = os.environ,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stats, self._monotonic = stats, monotonic
        address = environ.get("NOTIFY_SOCKET", "")
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._watchdog_seconds = _watchdog_seconds(environ)
        self._petted: float | None = None
        self._ready = False
        self._status = ""

    def beat(self) -> None:
        """The main loop went round."""
        if not self._ready and self._stats.tried_all():
            # Sent again until it is received: systemd ends a service that never is ready.
            self._ready = self.send(READY=1) or not self._address
        self._tell_status()
        now = self._monotonic()
        due = (
            self._petted is None or now - self._petted >= self._watchdog_seconds / 2 - BEAT_SECONDS
        )
        if self._watchdog_seconds and due and self._stats.stalled_thread() is None:
            self._petted = now
            self.send(WATCHDOG=1)

    def reloading(self) -> None:
        """The configuration is being read again."""
        microseconds = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000  # systemd compares it
        self.send(RELOADING=1, MONOTONIC_USEC=microseconds)

    def reloaded(self) -> None:
        """That is over, well or not."""
        self.send(READY=1)

    def stopping(self) -> None:
        """The agent is about to end."""
        self.send(STOPPING=1, STATUS="delivering what is left")

    def send(self, **states: str | int) -> bool:
        """Send states such as ``READY=1``; False if they were not received."""
        if not self._address:
            return False
        text = "\n".join(f"{name}={value}" for name, value in states.items())
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.settimeout(_TIMEOUT_SECONDS)
                sender.connect(self._address)
                sender.send(text.encode())
        except OSError:
            return False  # the service manager does not listen; the agent goes on
        return True

    def _tell_status(self) -> None:
        # Without ages: each would be one more datagram.
        unseen = ", ".join(self._stats.silent_sources())
        reading = f"no answer from {unseen}" if unseen else "every source answers"
        status = f"{reading}; {self._stats.delivered} batches delivered"
        if status != self._status and self.send(STATUS=status):  # else again, as READY
            self._status = status


def _watchdog_seconds(environ: Mapping[str, str]) -> float:
    """How often systemd wants a sign of life; 0: it does not, or not of this process."""
    if environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0
    text = environ.get("WATCHDOG_USEC", "0")
    return int(text) / 1e6 if text.isdecimal() else 0.0
