"""The courier: brings batches to the lake, and after a failure waits longer and longer."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from collector import footprint

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from collector.clock import Clock
    from collector.delivery import Delivery
    from collector.vitals import Vitals

_BACKOFF_LIMIT: Final = 64  # commit intervals: about ten minutes at ten seconds
_FAREWELL_US: Final = 30_000_000


class Courier:
    """Delivers what waits in the spool.

    Args:
        delivery: How a batch gets into the lake.
        interval_us: How often ``deliver`` is called.
        clock: Gives the instants.
        vitals: Where it is counted.
    """

    def __init__(self, delivery: Delivery, interval_us: int, clock: Clock, vitals: Vitals) -> None:
        self._delivery, self._clock, self._vitals = delivery, clock, vitals
        self.interval_us = interval_us
        self._failures = 0
        self._not_before_us = 0
        self._error: Exception | None = None

    def deliver(self, stop: threading.Event) -> None:
        """Deliver what waits, unless it is too early after a failure; jitter spreads the agents.

        Raises:
            JmxlakeError: What is left stays in the spool; while it is too early, the same again.
        """
        if self._error is not None and self._clock.steady_us() < self._not_before_us:
            raise self._error.with_traceback(None)
        self._failures += 1
        wait = min(2**self._failures, _BACKOFF_LIMIT) * self.interval_us
        jitter = random.uniform(0.5, 1)  # noqa: S311 - only to spread agents over time
        self._not_before_us = self._clock.steady_us() + round(wait * jitter)
        try:
            delivered = self._deliver_while(lambda: not stop.is_set())
        except Exception as error:
            self._error = error
            raise
        self._error = None
        self._failures = self._not_before_us = 0
        if delivered:
            footprint.hand_back()

    def farewell(self) -> None:
        """Deliver what there is at an orderly stop, as far as half a minute allows.

        Raises:
            JmxlakeError: What is left stays in the spool.
        """
        until_us = self._clock.steady_us() + _FAREWELL_US
        self._deliver_while(lambda: self._clock.steady_us() < until_us)

    def _deliver_while(self, goes_on: Callable[[], bool]) -> int:
        delivered = 0
        try:
            while goes_on() and self._delivery.deliver_next():
                delivered += 1
                self._vitals.committed()
                self._vitals.lake_reached = True
        except Exception:
            self._vitals.commit_failed()
            raise
        if goes_on():
            self._vitals.lake_reached = True
        return delivered
