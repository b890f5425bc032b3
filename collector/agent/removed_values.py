"""Values that brokers report wrongly, removed from responses.

``HeldUploads``: with ``remote.copy.lag.ms`` and ``remote.copy.lag.bytes`` (KIP-1241, Kafka 4.4) a
topic keeps closed segments local, and the broker's copy lag counts them too. The lag of such a
topic is unknown, and 0 is still 0. ``StaleValues``: a copy lag is not updated while a copy to the
remote storage is running.
"""

from dataclasses import replace
from typing import Final, NamedTuple

from collector.catalogue import Family
from collector.catalogue.entries import version_key
from collector.model import Answer, Reading, Series
from lakehouse.tables import FLAG_KNOWN_WRONG

_LAGS: Final = frozenset(
    {"kafka.topic.remote_copy_lag.bytes", "kafka.topic.remote_copy_lag.segments"}
)
_FIRST: Final = version_key("4.4.0")
_Counts = dict[Series, float]


class HeldUploads:
    """Topics of one broker that hold uploads back. All scrapers of the broker share it.

    Args:
        by_admin: True if the Admin API returns the settings of the topics.
    """

    def __init__(self, *, by_admin: bool) -> None:
        self._by_admin = by_admin
        self._topics: frozenset[str] | None = None

    def learned_from(self, answer: Answer) -> Answer:
        """Store the topics of a response. Return the response without them."""
        if answer.held_back is None:
            return answer
        self._topics = answer.held_back
        return replace(answer, held_back=None)

    def removed_from(self, answer: Answer, family: Family, version: str | None) -> Answer:
        """Return the response without the lags whose held-back part is unknown.

        Without the Admin API the topics are unknown, so every lag gets a flag.
        """
        held = self._topics
        has_setting = version is not None and version_key(version) >= _FIRST
        if not any(metric.name in _LAGS for metric in family.metrics):
            return answer
        if not self._by_admin and has_setting:
            return answer.mapped(lambda readings: tuple(map(_flagged, readings)))
        if held is None and not (self._by_admin and has_setting):
            return answer
        return answer.mapped(
            lambda readings: tuple(_without_held(reading, held) for reading in readings)
        )


class _Work(NamedTuple):
    """The last values of the counters of a kind of work, by subject without a metric."""

    started: _Counts
    ended: _Counts
    running: frozenset[Series]


class StaleValues:
    """Removes values that a metric's own counters prove stale.

    Work that has started and not ended is running. If several works are running, the end of one
    counts as the end of all, because counters do not identify them. So every removed value is
    stale, and a kept value can be stale. Work that started before the first reading is unknown.
    """

    def __init__(self) -> None:
        self._before: dict[tuple[str, ...], _Work] = {}

    def removed_from(self, answer: Answer, family: Family) -> Answer:
        """Return the response without the values that running work has made stale."""
        waits = {
            metric.name: metric.written_after for metric in family.metrics if metric.written_after
        }
        if not waits:
            return answer
        by_name = {reading.metric: reading for reading in answer.readings}
        stale = {work: self._running(work, by_name) for work in set(waits.values())}
        readings = tuple(
            _without_stale(reading, stale[waits[reading.metric]])
            if reading.metric in waits
            else reading
            for reading in answer.readings
        )
        return replace(answer, readings=readings)

    def _running(self, work: tuple[str, ...], readings: dict[str, Reading]) -> frozenset[Series]:
        first, *others = work
        started, ended = _counts(first, readings), dict[Series, float]()
        for name in others:
            for subject, count in _counts(name, readings).items():
                ended[subject] = ended.get(subject, 0.0) + count
        before = self._before.get(work, _Work(started, ended, frozenset()))
        running = frozenset(
            subject
            for subject, count in started.items()
            if ended.get(subject, 0.0) == before.ended.get(subject, 0.0)
            and (count > before.started.get(subject, 0.0) or subject in before.running)
        )
        self._before[work] = _Work(started, ended, running)
        return running


def _flagged(reading: Reading) -> Reading:
    if reading.metric not in _LAGS or FLAG_KNOWN_WRONG in reading.flags:
        return reading
    return replace(reading, flags=(*reading.flags, FLAG_KNOWN_WRONG))


def _without_held(reading: Reading, held: frozenset[str] | None) -> Reading:
    """Return the reading without positive values of these topics. None means all topics."""
    if reading.metric not in _LAGS or not reading.values or held == frozenset():
        return reading
    kept = {
        series: value
        for series, value in reading.values.items()
        if not (value and value > 0 and (held is None or series.topic in held))
    }
    return replace(reading, values=kept) if len(kept) < len(reading.values) else reading


def _counts(metric: str, readings: dict[str, Reading]) -> _Counts:
    reading = readings.get(metric)
    values = reading.values.items() if reading else ()
    return {series._replace(metric=""): count or 0.0 for series, count in values}


def _without_stale(reading: Reading, stale: frozenset[Series]) -> Reading:
    if not stale:
        return reading
    series = {one._replace(metric=reading.metric) for one in stale}
    values = {one: value for one, value in reading.values.items() if one not in series}
    return replace(reading, zeros=reading.zeros - series, values=values)
