"""State of one family on one source: open runs, scrape log and coverage.

``polled_family.py`` and ``exact_family.py`` decide when its coverage ends and its windows close.
"""

from collections.abc import Iterator, Mapping

import msgspec

from collector.catalogue.entries import Delays
from collector.encoding.attempts import AttemptTrack
from collector.encoding.closed_runs import Ledger
from collector.encoding.counter import CounterTrack
from collector.encoding.expired_offsets import HIGH, LOW
from collector.encoding.gauge import GaugeTrack
from collector.model import Reading, Scrape


class FamilyTrack(msgspec.Struct):
    """State of one family on one source, as the spool stores it. Times are microseconds.

    Attributes:
        answered_us: Response time of the last successful scrape. None without coverage.
        attempted_us: Request time of the last scrape.
        cut_us: Start of the open window.
        exact: True for an exact family. The attributes below are only for such a family.
        exact_pieces: Its closed pieces: it closes its windows separately.
        sealed_us: End of its closed windows.
        heard_us: Time of its last moment, by the agent's clock.
        failure: The last scrape, if it failed.
    """

    max_gap_us: int
    gauges: dict[str, GaugeTrack] = msgspec.field(default_factory=dict)
    counters: dict[str, CounterTrack] = msgspec.field(default_factory=dict)
    account: AttemptTrack = msgspec.field(default_factory=AttemptTrack)
    answered_us: int | None = None
    attempted_us: int | None = None
    cut_us: int = 0
    exact: bool = False
    exact_pieces: Ledger = msgspec.field(default_factory=Ledger, name="told")
    sealed_us: int = 0
    heard_us: int = 0
    failure: Scrape | None = None

    @property
    def last_us(self) -> int:
        """Time of the last request or response. 0 before the first."""
        return max(self.attempted_us or 0, self.answered_us or 0)

    def tracks(self) -> Iterator[GaugeTrack | CounterTrack]:
        """Yield the state of every metric."""
        yield from self.gauges.values()
        yield from self.counters.values()

    def observe(
        self, scrape: Scrape, started_us: int, delays: Mapping[str, Delays], ledger: Ledger
    ) -> None:
        """Record the readings of a response. A metric without MBeans gets an empty reading.

        Args:
            scrape: The scrape with the response.
            started_us: Start time of the source.
            delays: Delay of the MBean, by metric.
            ledger: The closed pieces.
        """
        asked, answered = scrape.asked_us, scrape.answered_us
        read = scrape.answer.readings if scrape.answer else ()
        for reading in self._with_vanished(read) if scrape.outcome == "ok" else read:
            if reading.kind == "gauge":
                track = self.gauges.setdefault(reading.metric, GaugeTrack())
                track.delays = delays.get(reading.metric, Delays())
                track.observe(reading, asked, answered, ledger)
            else:
                counter = self.counters.setdefault(reading.metric, CounterTrack())
                counter.observe(reading, started_us, asked, answered, ledger)

    def _with_vanished(self, readings: tuple[Reading, ...]) -> Iterator[Reading]:
        """Yield the readings, and an empty reading for each metric that lost all its MBeans."""
        read = {(reading.metric, reading.kind) for reading in readings}
        yield from readings
        for metric in self.gauges:
            if (metric, "gauge") not in read:
                yield Reading(metric, "gauge")
        for metric in self.counters:
            if (metric, "counter") not in read and metric not in (LOW, HIGH):
                yield Reading(metric, "counter")

    def stop_unread(self, scrape: Scrape, ledger: Ledger) -> None:
        """End coverage of each metric that a failed scrape did not read."""
        if scrape.answer is None or scrape.identity is None:
            self.stop(scrape.asked_us, ledger)
            return
        read = {reading.metric for reading in scrape.answer.readings}
        for tracks in (self.gauges, self.counters):
            for metric in tracks.keys() - read:
                tracks[metric].stop(scrape.asked_us, ledger)

    def stop(self, end_us: int, ledger: Ledger) -> None:
        """End coverage."""
        if self.answered_us is not None:
            for track in self.tracks():
                track.stop(end_us, ledger)
            self.answered_us = None

    def end(self, end_us: int, ledger: Ledger) -> None:
        """End coverage and the open interval of the scrape log."""
        self.stop(end_us, ledger)
        self.account.stop(end_us)

    def cut(self, until_us: int, window_us: int, ledger: Ledger) -> None:
        """Split open runs at every window start up to an instant."""
        last = until_us - until_us % window_us
        first = self.cut_us + window_us if self.cut_us else last
        for cut_us in range(first, last + 1, window_us) if self.account.open else ():
            for track in self.tracks():
                track.cut(cut_us, ledger)
            self.account.cut(cut_us)
        self.cut_us = max(self.cut_us, last)
