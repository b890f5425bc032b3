"""Values that brokers or transports report wrongly, removed from responses.

``HeldUploads``: with ``remote.copy.lag.ms`` and ``remote.copy.lag.bytes`` (KIP-1241, Kafka 4.4) a
topic keeps closed segments local, and the broker's copy lag counts them too. The lag of such a
topic is unknown, and 0 is still 0. ``StaleValues``: a copy lag is not updated while a copy to the
remote storage is running.

``PartitionCounts``: each transport can hide partitions, by ``metrics.jmx.exclude``, an exporter's
rules or relabelling. The broker's own counts are in the same response, so the check needs no
request. A response is not atomic. While leaders move, counts and partitions are of different
instants, so one response with a difference proves nothing. Moves cannot cause two consecutive
responses with the same difference, or a response whose leaders differ from two equal neighbours.
Both are proof.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from collector.catalogue import Family, Metric
from collector.catalogue.entries import version_key
from collector.model import Answer, Notice, Reading, Series
from collector.sources.base.beans import IN_SYNC, LEADERS, keys_of
from lakehouse.tables import FLAG_KNOWN_WRONG

HIDDEN: Final = "partition_metrics_hidden"
"""Event kind. Its new value is the cause, or empty if the metrics are complete again."""
_MOST_MOVES: Final = 30
"""Consecutive responses in which leaders can differ because they move."""
_IN_SYNC: Final = keys_of(IN_SYNC.patterns[0])["name"]
_HIDES: Final = (
    "show what metrics.jmx.exclude, the exporter's rules or relabelling hide (jmxlake-agent check)"
)
_LAGS: Final = frozenset(
    {"kafka.topic.remote_copy_lag.bytes", "kafka.topic.remote_copy_lag.segments"}
)
_FIRST: Final = version_key("4.4.0")
_Counts = dict[Series, float]


class _Wanted(NamedTuple):
    """Metrics of a family that the broker's counts can check."""

    family: Family
    metrics: tuple[Metric, ...]
    leaders: str | None


class _Shown(NamedTuple):
    """Content of one response: the broker's counts, and the partitions by metric.

    Attributes:
        cause: Difference between them. None if they are equal.
        leaders_differ: True if the number of partitions differs.
        counts: The broker's counts.
        found: Zero series and other series of each metric.
    """

    cause: str | None
    leaders_differ: bool
    counts: tuple[float | None, ...]
    found: tuple[tuple[frozenset[Series], Mapping[Series, float | None]], ...]

    def is_same(self, other: "_Shown") -> bool:
        """Return True if nothing has moved between the two answers."""
        return self.counts == other.counts and self.found == other.found


@dataclass
class _Track:
    """Earlier responses of one family."""

    agreed: _Shown | None = None
    doubt: _Shown | None = None
    doubts: int = 0
    doubt_us: int = 0
    hidden: str | None = None

    def judge(
        self, shown: _Shown, asked_us: int, answered_us: int
    ) -> tuple[str | None, Notice | None]:
        """Return why the partition metrics are unknown, and an event if that has changed."""
        if shown.cause is None:
            return self._agree(shown)
        if self.hidden is not None:
            return shown.cause, None
        if self.doubt is None:
            self.doubts = 1
        elif asked_us < self.doubt_us:  # the same page, from an exporter's shared response
            return self._unproven(shown), None
        else:
            self.doubts += 1
            stays = shown.leaders_differ and self.doubts > _MOST_MOVES
            if shown.is_same(self.doubt) or stays:
                return self._hide(shown.cause)
        self.doubt, self.doubt_us = shown, answered_us
        return self._unproven(shown), None

    def _agree(self, shown: _Shown) -> tuple[str | None, Notice | None]:
        before, doubt, hidden = self.agreed, self.doubt, self.hidden
        self.agreed, self.doubt, self.hidden = shown, None, None
        if hidden is not None:
            return None, Notice(HIDDEN, Series(""), hidden, "")
        if doubt is not None and doubt.leaders_differ and before and shown.is_same(before):
            return self._hide(doubt.cause or "")
        return None, None

    def _hide(self, cause: str) -> tuple[str, Notice]:
        self.hidden, self.doubt = cause, None
        return cause, Notice(HIDDEN, Series(""), None, cause)

    def _unproven(self, shown: _Shown) -> str | None:
        """Return the cause until counts and partitions were equal once."""
        return shown.cause if self.agreed is None else None


@dataclass
class PartitionCounts:
    """Checks the responses of one source."""

    _wanted: dict[str, _Wanted] = field(default_factory=dict)
    _tracks: dict[str, _Track] = field(default_factory=dict)

    def checked(
        self, answer: Answer, family: Family, version: str | None, asked_us: int, answered_us: int
    ) -> tuple[Answer, str | None]:
        """Return the response, and why its partition metrics are unknown. Then they are removed.

        Args:
            answer: Response of the source.
            family: Its family.
            version: The broker's Kafka version, if known.
            asked_us: Time of the request, or of the oldest value.
            answered_us: Time of the response.
        """
        wanted = self._wanted.get(family.name)
        if wanted is None or wanted.family is not family:
            wanted = self._wanted[family.name] = _wanted_of(family)
        if not wanted.metrics:
            return answer, None
        track = self._tracks.setdefault(family.name, _Track())
        cause, notice = track.judge(_shown(answer, wanted, version), asked_us, answered_us)
        if notice is not None:
            answer = replace(answer, notices=(*answer.notices, notice))
        if cause is not None:
            unknown = {metric.name for metric in wanted.metrics}
            kept = tuple(reading for reading in answer.readings if reading.metric not in unknown)
            answer = replace(answer, readings=kept)
        return answer, cause


def _wanted_of(family: Family) -> _Wanted:
    leaders = next(
        (metric.name for metric in family.metrics if metric.patterns[:1] == LEADERS[:1]), None
    )
    checked = (metric for metric in family.metrics if metric.counted_by or (metric.led and leaders))
    return _Wanted(family, tuple(filter(_is_of_all, checked)), leaders)


def _is_of_all(metric: Metric) -> bool:
    """Return True if the metric has all partitions, not a selection of a catalogue."""
    keys = keys_of(metric.object or ":")
    return keys.get("topic") == keys.get("partition") == "*" and metric.needs != "draft"


def _shown(answer: Answer, wanted: _Wanted, version: str | None) -> _Shown:
    readings = {reading.metric: reading for reading in answer.readings}
    expected = [metric for metric in wanted.metrics if _exists(metric, version)]
    found = [readings.get(metric.name) or Reading(metric.name, metric.kind) for metric in expected]
    leaders = _broker_count(readings.get(wanted.leaders or ""))
    causes, counts = list(_of_leaders(wanted, leaders, found, answer.dropped_series)), [leaders]
    leaders_differ = bool(causes)
    for metric, reading in zip(expected, found, strict=True):
        if metric.counted_by is not None:
            counts.append(count := _broker_count(readings.get(metric.counted_by)))
            above = sum(1 for value in reading.values.values() if value)
            if count is not None and count != above:
                causes.append(
                    f"the broker counts {count:g} ({metric.counted_by}) and {metric.name} shows"
                    f" {above}"
                )
    cause = f"{causes[0]}: {_HIDES}" if causes else None
    return _Shown(cause, leaders_differ, tuple(counts), tuple((r.zeros, r.values) for r in found))


def _of_leaders(
    wanted: _Wanted, leaders: float | None, found: list[Reading], dropped: int
) -> Iterator[str]:
    if wanted.leaders is None or dropped:
        return  # dropped_series counts the series above the limit
    if leaders is None:
        yield f"{LEADERS.pattern} is hidden, so hidden partitions cannot be detected"
        return
    for reading in found:
        number = len(reading.zeros) + len(reading.values)
        if number != leaders:
            among = "" if number else f" (or {_IN_SYNC}, which shows the leaders, is hidden)"
            led = f"the broker leads {leaders:g} partitions"
            yield f"{led} and {reading.metric} has {number}{among}"


def _exists(metric: Metric, version: str | None) -> bool:
    if version is None or metric.first is None:
        return True
    return version_key(version) >= version_key(metric.first)


def _broker_count(reading: Reading | None) -> float | None:
    """Return the broker's count. None if it is hidden."""
    if reading is None or not (reading.zeros or reading.values):
        return None
    return sum(value or 0.0 for value in reading.values.values())


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
