"""The agent's own numbers: what its threads count, and what health is judged by.

Ages are of a steady clock that stands still while the host sleeps, so that waking up is no failure.
"""

from __future__ import annotations

import copy
import math
import threading
import time
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from lakehouse.tables import MAX_GAP_INTERVALS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from collector.samples import Scrape

BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds, in seconds, of the buckets of scrape times; one more counts what is above."""
STALE_SECONDS: Final = 30.0
"""A thread that ticks every ten seconds at least and has not for this long is taken for dead."""
_THREADS: Final = ("main", "keeper")
_MOST_SILENT_DELIVERIES: Final = 3


@dataclass(slots=True)
class FamilyVitals:
    """What is counted for one family since the agent started.

    Attributes:
        source: The source it is read from.
        interval_seconds: The cadence in force.
        outcomes: Attempts by outcome.
        buckets: Attempts by duration, one more than there are ``BUCKETS``.
        seconds: Duration of all attempts.
        beans: Beans in the last answer; None before the first.
        dropped_series: Series beyond the cap, of all answers.
        missed: Ticks at which the attempt before was still under way.
        answered: When the last answer came, by the steady clock; None before the first.
    """

    source: str
    interval_seconds: float
    outcomes: Counter[str] = field(default_factory=Counter)
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    seconds: float = 0.0
    beans: int | None = None
    dropped_series: int = 0
    missed: int = 0
    answered: float | None = None


class Vitals:
    """Counts; every method may be called from any thread.

    Args:
        monotonic: A steady clock, in seconds.

    Attributes:
        commit_interval_seconds: How often a delivery should end.
        unexpected_errors: Faults of the agent itself.
        crashes: Reports of a JVM's crash that are beside the spool.
        seal_seconds: How long the last sealing of a window took.
        delivery_seconds: How long the last delivery of all that waited took, its pauses included.
        factors: By family, how many times as long as configured its interval is; 0: not read.
        window_rows: Rows of bronze/runs of the window that was sealed last, by family.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._families: dict[str, FamilyVitals] = {}
        self._ticks: dict[str, float] = {}
        self._delivery_ended = 0.0
        self.commit_interval_seconds = math.inf
        self.commits = 0
        self.commit_failures = 0
        self.clock_steps = 0
        self.reloads = 0
        self.reload_failures = 0
        self.unexpected_errors = 0
        self.crashes = 0
        self.seal_seconds = 0.0
        self.delivery_seconds = 0.0
        self.factors: Mapping[str, int] = {}
        self.window_rows: Mapping[str, int] = {}
        self.lake_reached = False
        self.spool_writable = True

    def begin(self) -> None:
        """The threads begin to tick; what comes before may take its time."""
        self._ticks = dict.fromkeys(_THREADS, self._monotonic())

    def expect(self, families: Mapping[str, tuple[str, int]]) -> None:
        """What is read from now on.

        Args:
            families: Source and cadence in microseconds, by family.
        """
        with self._lock:
            before, self._families = self._families, {}
            for name, (source, interval_us) in families.items():
                known = before.get(name, FamilyVitals(source, 0))
                if known.source != source:
                    known.answered = None
                known.source, known.interval_seconds = source, interval_us / 1e6
                self._families[name] = known

    def scraped(self, scrape: Scrape) -> None:
        """An attempt has ended."""
        seconds = (scrape.answered_us - scrape.asked_us) / 1e6
        with self._lock:
            family = self._families.get(scrape.family)
            if family is None:
                return  # it was taken out of the configuration meanwhile
            family.outcomes[scrape.outcome] += 1
            family.buckets[bisect_left(BUCKETS, seconds)] += 1
            family.seconds += seconds
            if scrape.answer is not None:
                family.beans = scrape.answer.beans
                family.dropped_series += scrape.answer.dropped_series
                family.answered = self._monotonic()

    def missed(self, family: str) -> None:
        """A tick came while the attempt before was still under way."""
        with self._lock:
            if family in self._families:
                self._families[family].missed += 1

    def committed(self, batches: int) -> None:
        """A delivery has ended, and so many batches reached the lake."""
        with self._lock:
            self.commits += batches
            self._delivery_ended = self._monotonic()

    def commit_failed(self) -> None:
        """An attempt to deliver went wrong."""
        with self._lock:
            self.commit_failures += 1
            self._delivery_ended = self._monotonic()

    def met_unexpected(self) -> None:
        """The agent itself has a fault."""
        with self._lock:
            self.unexpected_errors += 1

    def clock_stepped(self) -> None:
        """The wall clock was set."""
        with self._lock:
            self.clock_steps += 1

    def reloaded(self, *, well: bool) -> None:
        """The configuration was read anew, and taken or not."""
        with self._lock:
            self.reloads += 1
            self.reload_failures += not well

    def tick(self, thread: str) -> None:
        """The main loop or the keeper is alive."""
        self._ticks[thread] = self._monotonic()

    def families(self) -> dict[str, FamilyVitals]:
        """A copy of what is counted, by family."""
        with self._lock:
            return copy.deepcopy(dict(sorted(self._families.items())))

    def sick(self) -> str | None:
        """Why the agent does not work, in one line; None where it does."""
        now = self._monotonic()
        for thread, ticked in list(self._ticks.items()):
            if now - ticked > STALE_SECONDS:
                return f"the {thread} thread has not ticked for {now - ticked:.0f} s"
        return None

    def tried_all(self) -> bool:
        """Whether every family was tried at least once."""
        with self._lock:
            return all(family.outcomes for family in self._families.values())

    def missing_lake(self) -> str | None:
        """Why the lake is not known to take what is delivered; None where it is."""
        if not self.lake_reached:
            return "the last delivery failed" if self.commit_failures else "not reached yet"
        silent = self._monotonic() - self._delivery_ended
        if silent > _MOST_SILENT_DELIVERIES * self.commit_interval_seconds:
            return f"no delivery has ended for {silent:.0f} s"
        return None

    def unseen(self) -> dict[str, str]:
        """The sources that have not answered lately, and since when.

        Lately: a scrape of one of its families still vouches for what it saw.
        """
        now, silent = self._monotonic(), self.silent()
        families = self.families().values()
        seen = {family.source for family in families if _vouches(family, now)}
        return {
            source: f"no answer for {silent[source]:.0f} s" if source in silent else "no answer yet"
            for source in {family.source: None for family in families}
            if source not in seen
        }

    def silent(self) -> dict[str, float]:
        """How long ago the last answer of each source came, in seconds; without those of none."""
        now, found = self._monotonic(), dict[str, float]()
        for family in self.families().values():
            if family.answered is not None:
                age = now - family.answered
                found[family.source] = min(age, found.get(family.source, age))
        return found


def _vouches(family: FamilyVitals, now: float) -> bool:
    if family.answered is None:
        return False
    return now - family.answered <= family.interval_seconds * MAX_GAP_INTERVALS
