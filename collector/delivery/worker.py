"""Thread of the delivery: it delivers batches, and waits longer after each failure."""

import threading
from collections.abc import Callable
from typing import Final

import tenacity

from collector.clock import Clock
from collector.errors import LakeError
from collector.telemetry import memory
from collector.telemetry.agent_stats import AgentStats

# Full jitter: a random wait between 0 and a maximum that doubles, so that agents that lost the lake
# at the same time do not return at the same time.
_FIRST_WAIT_SECONDS: Final = 2.0
_LONGEST_WAIT_SECONDS: Final = 600.0
_DRAIN_US: Final = 30_000_000


class DeliveryWorker:
    """Delivers the undelivered batches of the spool.

    Args:
        take: Delivers the oldest batches and returns their number. 0: the spool is empty.
        clock: Clock.
        stats: Agent counters.
        report: Called with the text of every failure before another attempt.
    """

    def __init__(
        self,
        take: Callable[[], int],
        clock: Clock,
        stats: AgentStats,
        report: Callable[[str], None],
    ) -> None:
        self._take, self._clock, self._stats, self._report = take, clock, stats, report

    def deliver(self, stop: threading.Event) -> None:
        """Deliver all batches, and retry while the lake is unavailable. ``stop`` ends it at once.

        Raises:
            JmxlakeError: The delivery failed; undelivered batches stay in the spool.
        """
        patience = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(LakeError),
            wait=tenacity.wait_random_exponential(_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS),
            sleep=tenacity.sleep_using_event(stop), stop=tenacity.stop_when_event_set(stop),
            before_sleep=self._note, reraise=True,
        )  # fmt: skip
        before = self._stats.delivered
        with self._stats.delivery_seconds.time():
            # A delivered group shows that the lake is available, so the next group has short waits.
            while not stop.is_set() and patience(self._deliver_next):
                pass
            if self._stats.delivered > before:
                memory.trim()

    def drain(self) -> None:
        """Deliver batches at an orderly stop, for half a minute at most.

        Raises:
            JmxlakeError: The delivery failed; undelivered batches stay in the spool.
        """
        until_us = self._clock.steady_us() + _DRAIN_US
        while self._clock.steady_us() < until_us and self._deliver_next():
            pass

    def _deliver_next(self) -> int:
        try:
            batches = self._take()
        except Exception as error:
            self._stats.commit_failed()
            if isinstance(error, LakeError):
                self._stats.lake_reached = False
            raise
        self._stats.committed(batches)
        self._stats.lake_reached = True
        return batches

    def _note(self, attempt: tenacity.RetryCallState) -> None:
        failure = attempt.outcome.exception() if attempt.outcome else None
        if failure is not None:
            # The traceback would keep the batches' rows in memory for up to ten minutes.
            failure.__traceback__ = failure.__context__ = None
            self._report(str(failure))
