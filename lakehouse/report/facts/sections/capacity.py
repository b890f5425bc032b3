"""Disk use of topics, with a forecast of the time until the fullest partition is full.

The forecast continues with the slope of Theil and Sen: the median of the slopes between any two
points, which no single burst can move. Its bounds are Sen's. They are widened for points that
depend on earlier points, as Hamed and Rao do for the related trend test, but with the first
autocorrelation only.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from math import ceil
from operator import itemgetter
from statistics import NormalDist, fmean, median
from typing import Annotated, Any, Final, NamedTuple

from lakehouse import tables
from lakehouse.core.metrics import PARTITION_COUNT
from lakehouse.core.periods import HOUR_US, micros
from lakehouse.core.subjects import Subject
from lakehouse.engines.gold_reader import Row
from lakehouse.report.facts.fields import TOPIC, Bounds, Known, Means, Question, Rows
from lakehouse.report.facts.gold import SEEN, Gold, attribute
from lakehouse.report.facts.gold_figures import per_second, unseen_times
from lakehouse.report.facts.sections.remote_storage import TieredTopic

_LEAST_POINTS: Final = 6
_LEVEL: Final = 0.9
_HOUR_SECONDS: Final = 3600

Point = tuple[float, float]
"""Hours since some instant, and the remaining amount at that time."""


class Drain(NamedTuple):
    """Forecast of an amount, with bounds of 90 %.

    Attributes:
        last: The amount now.
        slope: Its change per second, negative while it drains; None: too few points are known.
        slope_low: Its lower bound.
        slope_high: Its upper bound.
    """

    last: float
    slope: float | None = None
    slope_low: float | None = None
    slope_high: float | None = None

    @property
    def verdict(self) -> str:
        """``empty``, ``draining``, ``growing``, ``standing`` or ``unknown``."""
        if self.last <= 0:
            return "empty"
        if self.slope_low is None or self.slope_high is None:
            return "unknown"
        if self.slope_high < 0:
            return "draining"
        return "growing" if self.slope_low > 0 else "standing"

    def seconds(self, slope: float | None) -> float | None:
        """Return the seconds until nothing is left, at a slope; None: never, or not known."""
        if self.last <= 0:
            return 0.0
        return None if slope is None or slope >= 0 else self.last / -slope


def drain(points: Sequence[Point], last: float) -> Drain:
    """Return the forecast of an amount.

    Args:
        points: The last known points, in order.
        last: The amount now.
    """
    if len(points) < _LEAST_POINTS:
        return Drain(last)
    slopes = sorted((b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(points, 2))
    count = len(points)
    deviation = math.sqrt(count * (count - 1) * (2 * count + 5) / 18 * _widening(points, slopes))
    reach = NormalDist().inv_cdf((1 + _LEVEL) / 2) * deviation
    first = max(0, math.floor((len(slopes) - reach) / 2))
    end = min(len(slopes) - 1, math.ceil((len(slopes) + reach) / 2))
    per_hour = (median(slopes), slopes[first], slopes[end])
    return Drain(last, *(slope / _HOUR_SECONDS for slope in per_hour))


def _widening(points: Sequence[Point], slopes: Sequence[float]) -> float:
    """Return the factor of the variance for points that depend on earlier points."""
    slope = median(slopes)
    rest = [value - slope * at for at, value in points]
    middle = median(rest)
    off = [value - middle for value in rest]
    spread = math.fsum(value * value for value in off)
    if not spread:
        return 1.0
    correlation = math.fsum(a * b for a, b in pairwise(off)) / spread
    correlation = min(max(correlation, 0.0), 0.9)
    return (1 + correlation) / (1 - correlation)


_SIZE: Final = "kafka.log.size"
_PERCENT: Final = "kafka.log.retention_size_percent"
_PERCENT_OF_BOTH: Final = "kafka.log.remote_retention_size_percent"
_FILLS: Final = (_SIZE, _PERCENT, _PERCENT_OF_BOTH)
_VERDICTS: Final = {"empty": "full", "draining": "filling", "growing": "shrinking"}
"""Verdicts on the fullest partition, by the verdict on its free space."""

_POINTS: Final = 28
"""Most points of a forecast, six hours each of a week; a slope is of any two of them."""

_Series = tuple[str | None, str]


class StoredTopic(NamedTuple):
    """Bytes of a topic on brokers' disks, and the fill level of its fullest partition."""

    topic: Annotated[str, TOPIC]
    disk_byte_seconds: Annotated[Known, Means("bytes of all replicas times observed seconds")]
    disk_bytes_mean: Annotated[Known, Means(
        "mean bytes of all replicas; empty: their number is not known")]  # fmt: skip
    segments_mean: Annotated[Known, Means("mean number of segments of all replicas")]
    retention_bytes: Annotated[int | None, Means(
        "retention.bytes, limit of a partition; -1: no limit")]  # fmt: skip
    retention_ms: Annotated[int | None, Means("retention.ms; -1: no limit")]
    compacted: Annotated[bool | None, Means("1: compaction removes records as well")]
    full_share_max: Annotated[Known, Means(
        "size of the fullest partition divided by retention.bytes; from 1 on, retention deletes by "
        "size")]  # fmt: skip
    local_share_max: Annotated[Known, Means(
        "local size of the fullest partition divided by local.retention.bytes")]  # fmt: skip
    verdict: Annotated[str, Means(
        "of the fullest partition: full, filling, shrinking, standing, "
        "unknown or unlimited")]  # fmt: skip
    reached_us: Annotated[Bounds, Means(
        "time until it is full at the growth of the period, microseconds")]  # fmt: skip


class Capacity(NamedTuple):
    """The section on disk use."""

    topics: Annotated[list[StoredTopic], Means("topics with bytes on a disk")]
    unknown_us: Annotated[int | None, Means(
        "time without sizes, mean of the brokers, microseconds")] = None  # fmt: skip


def capacity(gold: Gold) -> Capacity:
    """Return the section, with every topic that has bytes on a disk."""
    rows, steps = gold.by_subject(tables.TOPICS), _steps(gold)
    unseen = unseen_times(gold, _SIZE).values()
    return Capacity(
        [
            _stored(gold, topic, rows[topic.topic], steps)
            for topic in gold.subjects
            if topic.kind == "topic" and _SIZE in rows.get(topic.topic, ())
        ],
        round(fmean(unseen)) if unseen else None,
    )


class _Fill(NamedTuple):
    """Fill level of a topic's partitions: a metric, its value when full, and its series."""

    metric: str
    full: float
    series: int | None


def _stored(
    gold: Gold, topic: Subject, rows: Mapping[str, Row], steps: Mapping[_Series, Sequence[Row]]
) -> StoredTopic:
    replicas, limit = _replicas(topic), attribute(topic, "kafka.topic.retention_bytes")
    stored = (rows[name] for name in (_SIZE, "kafka.log.segments"))
    means: Iterable[Any] = (per_second(row, "series_seen_us") for row in stored)
    fill = _fill(topic, limit)
    local = rows["kafka.log.local_retention_size_percent"].get("value_max")
    fullest = rows[fill.metric].get("value_max") if fill else None
    compacted = attribute(topic, "kafka.topic.compacted")
    verdict, reached = "unlimited", Bounds()
    if fill is not None:
        verdict, reached = _forecast(gold, fill, steps[topic.topic, fill.metric])
    disk, segments = (None if None in (mean, replicas) else mean * replicas for mean in means)
    return StoredTopic(
        str(topic.topic),
        rows[_SIZE].get("value_seconds"),
        disk,
        segments,
        limit,
        attribute(topic, "kafka.topic.retention_time"),
        None if compacted is None else bool(compacted),
        None if fill is None or fullest is None else fullest / fill.full,
        None if local is None else local / 100,
        verdict,
        reached,
    )


def _replicas(topic: Subject) -> int | None:
    partitions = attribute(topic, PARTITION_COUNT)
    copies = attribute(topic, "kafka.topic.replication_factor")
    return None if partitions is None or copies is None else partitions * copies


def _fill(topic: Subject, limit: int | None) -> _Fill | None:
    """Return the fill level of a topic; None: it has no limit by size."""
    if limit is not None and limit < 0:
        return None
    # The leaders of a tiered topic report the size of both tiers.
    if topic.attributes.get("kafka.topic.remote_storage_enabled") == 1:
        return _Fill(_PERCENT_OF_BOTH, 100.0, attribute(topic, PARTITION_COUNT))
    of_disk = (_PERCENT, 100.0) if limit is None else (_SIZE, float(limit))
    return _Fill(*of_disk, _replicas(topic))


def _forecast(gold: Gold, fill: _Fill, steps: Sequence[Row]) -> tuple[str, Bounds]:
    """Return the verdict on the fullest partition, and the time until it is full.

    A step without all replicas is left out, because the fullest may be among the missing.
    """
    length = _step_seconds(gold)
    points: list[Point] = [
        ((row["window_start"] - micros(gold.period.start)) / HOUR_US, fill.full - row["value_max"])
        for row in sorted(steps, key=itemgetter("window_start"))
        if fill.series and row["series_seen_us"] >= SEEN * fill.series * length * 1_000_000
    ]
    if not points or micros(gold.period.end) - steps[-1]["window_start"] > 2 * length * 1_000_000:
        return "unknown", Bounds()
    room = drain(points, points[-1][1])
    return _VERDICTS.get(room.verdict, room.verdict), _until_full(room)


def _until_full(room: Drain) -> Bounds:
    """Return the time until no space is left, at the slope and its bounds, microseconds."""
    times = map(room.seconds, (room.slope, room.slope_low, room.slope_high))
    return Bounds(*(None if seconds is None else round(seconds * 1e6) for seconds in times))


def _steps(gold: Gold) -> Mapping[_Series, list[Row]]:
    """Return rows of parts of the period, by topic and metric."""
    found: defaultdict[_Series, list[Row]] = defaultdict(list)
    for row in gold.by_window(tables.TOPICS, _step_seconds(gold), _FILLS):
        found[row["topic"], row["metric"]].append(row)
    return found


def _step_seconds(gold: Gold) -> int:
    hours = (micros(gold.period.end) - micros(gold.period.start)) / HOUR_US
    return max(1, ceil(hours / _POINTS)) * 3600


CAPACITY_QUESTION: Final = Question(
    name="capacity",
    section="disk",
    read="kafka.log.size",
    gold=("topics",),
    fact="capacity.topics",
    has_figures=True,
    unknown=(Rows(Capacity, "capacity", ("unknown_us",)),),
    shows=(
        TieredTopic,
        "kafka.log.size", "kafka.log.segments", "kafka.log.retention_size_percent",
        "kafka.log.remote_retention_size_percent", "kafka.log.local_retention_size_percent",
        "kafka.topic.retention_time", "kafka.topic.retention_bytes", "kafka.topic.compacted",
        "kafka.topic.remote_log_metadata_count",
    ),
)  # fmt: skip
