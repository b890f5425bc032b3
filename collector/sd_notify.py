"""Tells systemd how the agent is, by datagrams to the socket that it names in NOTIFY_SOCKET."""

from __future__ import annotations

import os
import socket
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from collector.vitals import Vitals

_TIMEOUT_SECONDS: Final = 1.0  # a full socket must not hold up the main loop


class Notifier:
    """Sends states to a service manager; does nothing where there is none.

    Args:
        address: Path of a datagram socket, or ``@name`` of an abstract one; None: there is none.
    """

    def __init__(self, address: str | None) -> None:
        self._address = f"\0{address[1:]}" if address and address.startswith("@") else address

    def send(self, **states: str | int) -> bool:
        """Send states such as ``READY=1``; False where nobody took them."""
        if not self._address:
            return False
        text = "\n".join(f"{name}={value}" for name, value in states.items())
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.settimeout(_TIMEOUT_SECONDS)
                sender.connect(self._address)
                sender.send(text.encode())
        except OSError:
            return False  # whoever asked for news does not listen; the agent's work goes on
        return True


class Service:
    """The agent as a service: when it is ready, how it is, and whether it is alive.

    Args:
        vitals: What the agent counts.
        environ: Where systemd leaves NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID.
        monotonic: A steady clock, in seconds.
    """

    def __init__(
        self,
        vitals: Vitals,
        environ: Mapping[str, str] = os.environ,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._vitals, self._monotonic = vitals, monotonic
        self._notifier = Notifier(environ.get("NOTIFY_SOCKET"))
        self._watchdog_seconds = _watchdog_seconds(environ)
        self._petted: float | None = None
        self._ready = False
        self._status = ""

    def beat(self) -> None:
        """The main loop went round, about every second."""
        if not self._ready and self._vitals.tried_all():
            self._ready = True
            self._notifier.send(READY=1)
        self._tell_status()
        now = self._monotonic()
        due = self._petted is None or now - self._petted >= self._watchdog_seconds / 2 - 1
        if self._watchdog_seconds and due and self._vitals.sick() is None:
            self._petted = now
            self._notifier.send(WATCHDOG=1)

    def reloading(self) -> None:
        """The configuration is being read anew."""
        microseconds = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000  # systemd compares it
        self._notifier.send(RELOADING=1, MONOTONIC_USEC=microseconds)

    def reloaded(self) -> None:
        """That is over, well or not."""
        self._notifier.send(READY=1)

    def stopping(self) -> None:
        """The agent is about to end."""
        self._notifier.send(STOPPING=1, STATUS="delivering what is left")

    def _tell_status(self) -> None:
        unseen = ", ".join(self._vitals.unseen())  # without ages: each would be one more datagram
        reading = f"no answer from {unseen}" if unseen else "every source answers"
        status = f"{reading}; {self._vitals.commits} batches delivered"
        if status != self._status:
            self._status = status
            self._notifier.send(STATUS=status)


def _watchdog_seconds(environ: Mapping[str, str]) -> float:
    """How often systemd wants a sign of life; 0: it does not, or not of this process."""
    if environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0
    text = environ.get("WATCHDOG_USEC", "0")
    return int(text) / 1e6 if text.isdecimal() else 0.0
