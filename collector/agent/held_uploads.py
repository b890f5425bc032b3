"""Upload lag that topics hold back on purpose (KIP-1241, Kafka 4.4), left out of answers.

With ``remote.copy.lag.ms`` and ``remote.copy.lag.bytes`` a topic keeps closed segments local, and
the broker's copy lag counts them as well. The lag of such a topic is unknown, and 0 is still 0.
"""

from dataclasses import replace
from typing import Final

from collector.catalogue import Family
from collector.catalogue.entries import version_key
from collector.model import Answer, Reading
from lakehouse.tables import FLAG_KNOWN_WRONG

_LAGS: Final = frozenset(
    {"kafka.topic.remote_copy_lag.bytes", "kafka.topic.remote_copy_lag.segments"}
)
_FIRST: Final = version_key("4.4.0")


class HeldUploads:
    """The topics of one broker that hold uploads back; the scrapers of the broker share it.

    Args:
        by_admin: Whether the Admin API is asked for the settings of its topics.
    """

    def __init__(self, *, by_admin: bool) -> None:
        self._by_admin = by_admin
        self._topics: frozenset[str] | None = None

    def learned_from(self, answer: Answer) -> Answer:
        """Remember the topics that an answer names; the answer without them."""
        if answer.held_back is None:
            return answer
        self._topics = answer.held_back
        return replace(answer, held_back=None)

    def removed_from(self, answer: Answer, family: Family, version: str | None) -> Answer:
        """Return the answer without the lags whose held-back part is unknown.

        Without Admin it is not known which topics hold uploads back: each lag is flagged.
        """
        held = self._topics
        has_setting = version is not None and version_key(version) >= _FIRST
        if not any(metric.name in _LAGS for metric in family.metrics):
            return answer
        if not self._by_admin and has_setting:
            return answer.mapped(lambda readings: tuple(map(_flagged, readings)))
        if held is None and not (self._by_admin and has_setting):
            return answer
        return answer.mapped(lambda readings: tuple(_without(one, held) for one in readings))


def _flagged(reading: Reading) -> Reading:
    if reading.metric not in _LAGS or FLAG_KNOWN_WRONG in reading.flags:
        return reading
    return replace(reading, flags=(*reading.flags, FLAG_KNOWN_WRONG))


def _without(reading: Reading, held: frozenset[str] | None) -> Reading:
    """The reading without positive values of these topics; None: of all topics."""
    if reading.metric not in _LAGS or not reading.values or held == frozenset():
        return reading
    kept = {
        series: value
        for series, value in reading.values.items()
        if not (value and value > 0 and (held is None or series.topic in held))
    }
    return replace(reading, values=kept) if len(kept) < len(reading.values) else reading
