"""What a counter's increases should be, window by window, and what the lake tells of them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from collector.model import Reading, Scrape, Series
    from tests.rig.spans import Spans
    from tests.rig.told import Held


class Counts:
    """The increases of one counter metric as they follow from all that was read of it.

    A count that falls, a broker started anew and a bean that came back begin at zero again, as does
    a bean that is new on a broker that was being watched; the first reading only sets a baseline.
    """

    def __init__(self, metric: str, window_us: int) -> None:
        self._metric, self._window_us = metric, window_us
        self._before: dict[Series, float] | None = None
        self._started_us = 0
        self._increases: defaultdict[Series, defaultdict[int, float]] = defaultdict(
            lambda: defaultdict(float)
        )

    def read(self, scrape: Scrape) -> None:
        """Take in one scrape that was kept; they come in order."""
        if scrape.answer is None or scrape.identity is None:
            return
        counts: dict[Series, float] = {}
        for reading in scrape.answer.readings:
            counts |= _counts(reading) if reading.metric == self._metric else {}
        window = scrape.answered_us // self._window_us
        for series, count in counts.items():
            before = (self._before or {}).get(series)
            anew = scrape.identity.started_us != self._started_us
            if self._before is None:
                rise = 0.0
            elif before is None or anew or count < before:
                rise = count
            else:
                rise = count - before
            self._increases[series][window] += rise
        self._before, self._started_us = counts, scrape.identity.started_us

    def compare(
        self, runs: Mapping[Series, Sequence[Held]], zones: Spans
    ) -> Iterator[tuple[str, bool, bool]]:
        """Windows that tell too little or too much: what, whether it is lost, whether doubled.

        In ``zones`` increases may be missing; some of those may be told after the zone, since the
        baseline was kept.
        """
        told_of = {series for series in runs if series.metric == self._metric}
        for series in sorted(told_of | self._increases.keys(), key=repr):
            expected: Mapping[int, float] = self._increases.get(series, {})
            told: defaultdict[int, float] = defaultdict(float)
            for run in runs.get(series, ()):
                told[run.start // self._window_us] += run.value or 0.0
            debt = 0.0
            for window in sorted(told.keys() | expected.keys()):
                missing = expected.get(window, 0.0) - told[window]
                text = f"{series} in window {window * self._window_us}: {told[window]} is told, "
                text += f"{expected.get(window, 0.0)} is right"
                at_us = window * self._window_us
                if missing > 0 and not zones.touches(at_us, at_us + self._window_us):
                    yield text, True, False
                elif missing < 0 and -missing > debt:
                    yield text, False, True
                else:
                    debt += missing


def _counts(reading: Reading) -> dict[Series, float]:
    counts = {series: value for series, value in reading.values.items() if value is not None}
    return {**counts, **dict.fromkeys(reading.zeros, 0.0)}
