"""The delivery's thread: brings batches to the lake, and waits longer after each failure."""

import threading
from collections.abc import Callable
from typing import Final

import tenacity

from collector.clock import Clock
from collector.errors import LakeError
from collector.telemetry import memory
from collector.telemetry.agent_stats import AgentStats

# Full jitter: any time between nothing and twice as long as before, so that agents who found the
# lake away together come back apart from each other.
_FIRST_WAIT_SECONDS: Final = 2.0
_LONGEST_WAIT_SECONDS: Final = 600.0
_DRAIN_US: Final = 30_000_000


class DeliveryWorker:
    """Delivers the spool's waiting batches.

    Args:
        take: Takes the oldest batches from the spool into the lake; how many, 0 where none waits.
        clock: Gives the instants.
        stats: Where it is counted.
        say: Called with every failure that is followed by another attempt.
    """

    def __init__(
        self, take: Callable[[], int], clock: Clock, stats: AgentStats, say: Callable[[str], None]
    ) -> None:
        self._take, self._clock, self._stats, self._say = take, clock, stats, say

    def deliver(self, stop: threading.Event) -> None:
        """Deliver all waiting batches, retrying while the lake is away; ``stop`` ends it at once.

        Raises:
            JmxlakeError: What is left stays in the spool.
        """
        patience = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(LakeError),
            wait=tenacity.wait_random_exponential(_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS),
            sleep=tenacity.sleep_using_event(stop), stop=tenacity.stop_when_event_set(stop),
            before_sleep=self._note, reraise=True,
        )  # fmt: skip
        before = self._stats.delivered
        with self._stats.delivery_seconds.time():
            # The waits start over with each group: one that landed shows that the lake is back.
            while not stop.is_set() and patience(self._deliver_next):
                pass
            if self._stats.delivered > before:
                memory.trim()

    def drain(self) -> None:
        """Deliver the waiting batches at an orderly stop, for half a minute at most.

        Raises:
            JmxlakeError: What is left stays in the spool.
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
            # It would keep what was to be written in memory, ten minutes long.
            failure.__traceback__ = failure.__context__ = None
            self._say(str(failure))
