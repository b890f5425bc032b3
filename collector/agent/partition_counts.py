"""Check of partition metrics against the broker's own counts.

Each transport can hide partitions: ``metrics.jmx.exclude``, an exporter's rules, relabelling. The
broker's own counts are in the same response, so the check needs no request.

A response is not atomic. While leaders move, counts and partitions are of different instants, so
one response with a difference proves nothing. Moves cannot cause two consecutive responses with the
same difference, or a response whose leaders differ from two equal neighbours. Both are proof.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from collector.catalogue import Family, Metric
from collector.catalogue.entries import version_key
from collector.model import Answer, Notice, Reading, Series
from collector.sources.base.beans import IN_SYNC, LEADERS, keys_of

HIDDEN: Final = "partition_metrics_hidden"
"""Event kind. Its new value is the cause, or empty if the metrics are complete again."""
_MOST_MOVES: Final = 30
"""Consecutive responses in which leaders can differ because they move."""
_IN_SYNC: Final = keys_of(IN_SYNC.patterns[0])["name"]
_HIDES: Final = (
    "show what metrics.jmx.exclude, the exporter's rules or relabelling hide (jmxlake-agent check)"
)


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
    leaders = _count(readings.get(wanted.leaders or ""))
    causes, counts = list(_of_leaders(wanted, leaders, found, answer.dropped_series)), [leaders]
    leaders_differ = bool(causes)
    for metric, reading in zip(expected, found, strict=True):
        if metric.counted_by is not None:
            counts.append(count := _count(readings.get(metric.counted_by)))
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


def _count(reading: Reading | None) -> float | None:
    """Return the broker's count. None if it is hidden."""
    if reading is None or not (reading.zeros or reading.values):
        return None
    return sum(value or 0.0 for value in reading.values.values())
