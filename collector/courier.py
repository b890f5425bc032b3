"""The courier: brings batches to the lake, and after a failure waits longer and longer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    stop_when_event_set,
    wait_random_exponential,
)

from collector import footprint
from collector.errors import LakeError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from collector.clock import Clock
    from collector.vitals import Vitals

# Full jitter: any time between nothing and twice as long as before, so that agents who found the
# lake away together come back apart from each other.
_FIRST_WAIT_SECONDS: Final = 2.0
_LONGEST_WAIT_SECONDS: Final = 600.0
_FAREWELL_US: Final = 30_000_000


class Deliverer(Protocol):
    """What takes batches from the spool."""

    def deliver_next(self) -> int:
        """Take the oldest batches; how many, 0 where none waits."""


class Courier:
    """Delivers what waits in the spool.

    Args:
        delivery: How batches get into the lake.
        interval_us: How often ``deliver`` is called.
        clock: Gives the instants.
        vitals: Where it is counted.
        complain: Told of every failure that is followed by another attempt.
    """

    def __init__(
        self,
        delivery: Deliverer,
        interval_us: int,
        clock: Clock,
        vitals: Vitals,
        complain: Callable[[str], None],
    ) -> None:
        self._delivery, self._clock, self._vitals = delivery, clock, vitals
        self._complain = complain
        self.interval_us = interval_us

    def deliver(self, stop: threading.Event) -> None:
        """Deliver what waits, with patience as long as the lake is away; ``stop`` ends it at once.

        Raises:
            JmxlakeError: What is left stays in the spool.
        """
        patience = Retrying(
            retry=retry_if_exception_type(LakeError),
            wait=wait_random_exponential(_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS),
            sleep=sleep_using_event(stop),
            stop=stop_when_event_set(stop),
            before_sleep=self._say,
            reraise=True,
        )
        # Each group anew: one that landed shows that the lake is back.
        if self._deliver_while(lambda: patience(self._deliver_next), lambda: not stop.is_set()):
            footprint.hand_back()

    def farewell(self) -> None:
        """Deliver what there is at an orderly stop, as far as half a minute allows.

        Raises:
            JmxlakeError: What is left stays in the spool.
        """
        until_us = self._clock.steady_us() + _FAREWELL_US
        self._deliver_while(self._deliver_next, lambda: self._clock.steady_us() < until_us)

    def _deliver_while(self, deliver: Callable[[], int], goes_on: Callable[[], bool]) -> int:
        delivered = 0
        while goes_on() and (batches := deliver()):
            delivered += batches
        return delivered

    def _deliver_next(self) -> int:
        try:
            batches = self._delivery.deliver_next()
        except Exception as error:
            self._vitals.commit_failed()
            if isinstance(error, LakeError):
                self._vitals.lake_reached = False
            raise
        self._vitals.committed(batches)
        self._vitals.lake_reached = True
        return batches

    def _say(self, attempt: RetryCallState) -> None:
        failure = attempt.outcome.exception() if attempt.outcome else None
        if failure is not None:
            # It would keep what was to be written in memory, ten minutes long.
            failure.__traceback__ = failure.__context__ = None
            self._complain(str(failure))
