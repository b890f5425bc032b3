"""Reports of the agent's state to systemd, as datagrams to NOTIFY_SOCKET."""

import os
import socket
import time
from collections.abc import Callable, Mapping
from typing import Final

from collector.telemetry.agent_stats import AgentStats

BEAT_SECONDS: Final = 2.0
"""Interval of the main loop."""
_TIMEOUT_SECONDS: Final = 1.0  # a full socket must not block the main loop


class Service:
    """Readiness, status and watchdog of the agent as a service.

    Without a service manager it does nothing.

    Args:
        stats: Agent counters.
        environ: Environment with NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID of systemd.
        monotonic: Steady clock (seconds).
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
        """Report the state. The main loop calls it."""
        if not self._ready and self._stats.tried_all():
            # Repeat until it is received: systemd stops a service that is never ready.
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
        """Report the start of a reload."""
        microseconds = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000  # systemd's clock
        self.send(RELOADING=1, MONOTONIC_USEC=microseconds)

    def reloaded(self) -> None:
        """Report the end of a reload."""
        self.send(READY=1)

    def stopping(self) -> None:
        """Report the stop of the agent."""
        self.send(STOPPING=1, STATUS="delivering the last batches")

    def send(self, **states: str | int) -> bool:
        """Send states such as ``READY=1``. Return False if they were not received."""
        if not self._address:
            return False
        text = "\n".join(f"{name}={value}" for name, value in states.items())
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.settimeout(_TIMEOUT_SECONDS)
                sender.connect(self._address)
                sender.send(text.encode())
        except OSError:
            return False  # the agent works without a service manager
        return True

    def _tell_status(self) -> None:
        # Without ages, which would need a datagram every time.
        unseen = ", ".join(self._stats.silent_sources())
        reading = f"no answer from {unseen}" if unseen else "every source answers"
        status = f"{reading}; {self._stats.delivered} batches delivered"
        if status != self._status and self.send(STATUS=status):  # otherwise repeat, as with READY
            self._status = status


def _watchdog_seconds(environ: Mapping[str, str]) -> float:
    """Return the watchdog interval of this process. 0 without a watchdog."""
    if environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0
    text = environ.get("WATCHDOG_USEC", "0")
    return int(text) / 1e6 if text.isdecimal() else 0.0
