"""Records of the catalogue: families and metrics, their place in Kafka and their meaning."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from collector.errors import ConfigError
from lakehouse.tables import METRIC_NAME

DEFAULT_CAP: Final = 100_000
Kind = Literal["gauge", "counter"]
Role = Literal["broker", "controller", "combined", "client", "cluster"]
"""Role of a source. ``combined``: broker and controller, read as two sources. ``cluster``: all
brokers, through the Admin API only."""
Via = Literal["jmx", "admin", "metadata_log", "remote_log", "statistics"]
"""Interface of a family. ``jmx``: MBeans, through any transport."""
Needs = Literal[
    "quota", "tiering", "plugin", "draft", "traffic",
    "partition", "topic", "group", "client", "reporter",
]  # fmt: skip


Version = Annotated[str, msgspec.Meta(pattern=r"^\d+(\.\d+)+$")]
"""A Kafka version such as 3.7.0."""


def version_key(version: str) -> tuple[int, ...]:
    """Return the numbers of a Kafka version for comparison: 3.10.0 is later than 3.9.1.

    A version of Confluent counts as the first release of its Kafka version: 7.9.5-ccs is 3.9.0
    (confluentinc/kafka, pull requests 598 and 1445). Its number does not show its fixes.
    """
    key = tuple(int(part) for part in re.findall(r"\d+", version.partition("-")[0]))
    if version.endswith(("-ccs", "-ce")) and key >= (7, 0):
        return key[0] - 4, key[1], 0
    return key


class KnownWrong(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Kafka versions that report a metric wrongly; ``before`` is the first correct version."""

    since: Version
    reason: str
    before: Version | None = None

    def covers(self, version: str) -> bool:
        """Return True if a Kafka version is one of them."""
        key, before = version_key(version), self.before
        return version_key(self.since) <= key and (before is None or key < version_key(before))


class Bound(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of two metrics of a family that bound a value which is not known exactly.

    Attributes:
        of: Name of the value: objectives on it read both bounds.
        side: ``low``: the value is at least this. ``high``: it is at most this.
    """

    of: Annotated[str, msgspec.Meta(pattern=f"^{METRIC_NAME}$")]
    side: Literal["low", "high"]


class Delays(NamedTuple):
    """Delays of an MBean, in microseconds.

    Attributes:
        memory_us: Time for which it shows a value after its cause has ended.
        refresh_us: Maximum age of its value when it is read.
    """

    memory_us: int = 0
    refresh_us: int = 0


class Metric(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One metric of a family.

    Attributes:
        name: Name in the lake.
        unit: UCUM unit.
        description: Meaning, and traps for a reader.
        kind: ``gauge``, or ``counter`` for a cumulative count.
        object: JMX object name pattern. A trailing ``,*`` allows further keys of ``labels``.
        also: Further patterns of the same MBean; the first pattern that exists counts.
        attribute: Attribute of the MBean. Default: ``Value``; for a counter ``Count``.
        item: Item of a composite attribute, such as ``used`` of ``HeapMemoryUsage``.
        states: Numbers for the texts of an attribute; ``*`` is any other text.
        labels: Key of the object name to column of bronze/runs, or to a label of that name.
        url_encoded: Keys with values that Kafka URL-encodes.
        filter: ``positive``: one query returns the MBeans above zero. ``binary``: the same, and
            any value above zero is 1.
        least: Lowest value of a ``positive`` metric; the query returns the MBeans above it.
        led: Whether only partitions that this broker leads count.
        counted_by: Metric of the same family with the broker's own count of MBeans above zero.
        above: Only higher values are recorded. None: all values.
        absent: Meaning of a missing MBean.
        needs: Precondition of the MBean; without it a missing MBean is not a problem (see
            collector.cli.check).
        percentiles: Whether the rollup keeps a distribution of the values.
        describes: Subject that the value is an attribute of (gold/subjects). None: it is a figure.
        reported_by: Sources that report it in addition to the leader of its partition or to the
            brokers of its client. ``replicas``: followers. ``controllers``: controllers.
        bound: The value that it bounds. None: the value itself.
        position: Whether it is a place in a log. Places have no sum and no mean, so gold has no
            figures of them.
        memory_seconds: Time for which the MBean shows a value after its cause has ended.
        refresh_seconds: Maximum age of the MBean's value when it is read. 0: it is current.
        written_after: Counter of started tasks, and counters of finished tasks. Kafka writes the
            MBean when a task finishes, so the value is old while a task runs.
        call: Admin API call, if the metric does not come from JMX.
        replaces: Metric that this metric measures better. If this family is read, this metric has
            that name, and the other metric is the cross-check (see ``Catalogue.preferring``).
        first: First Kafka version with the metric.
        last: Last Kafka version with the metric.
        known_wrong: Versions that report it wrongly.
        kip: Kafka improvement proposal.
    """

    name: str
    unit: str
    description: str
    kind: Kind = "gauge"
    object: str | None = None
    also: tuple[str, ...] = ()
    attribute: str | None = None
    item: str | None = None
    states: Mapping[str, float] = msgspec.field(default_factory=dict)
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    url_encoded: tuple[str, ...] = ()
    filter: Literal["positive", "binary"] | None = None
    least: int = 0
    led: bool = False
    counted_by: str | None = None
    above: Annotated[float, msgspec.Meta(ge=0)] | None = None
    absent: Literal["idle", "not_applicable", "zero"] = "not_applicable"
    needs: Needs | None = None
    percentiles: bool = False
    describes: Literal["topic", "node", "quota"] | None = None
    reported_by: Literal["replicas", "controllers"] | None = None
    bound: Bound | None = None
    position: bool = False
    memory_seconds: int = 0
    refresh_seconds: int = 0
    written_after: tuple[str, ...] = ()
    call: str | None = None
    replaces: str | None = None
    first: Version | None = None
    last: Version | None = None
    known_wrong: tuple[KnownWrong, ...] = ()
    kip: str | None = None

    @property
    def patterns(self) -> tuple[str, ...]:
        """All object name patterns, the preferred pattern first."""
        return (self.object, *self.also) if self.object else ()

    @property
    def attribute_name(self) -> str:
        """Attribute to read."""
        return self.attribute or ("Count" if self.kind == "counter" else "Value")

    @property
    def attribute_text(self) -> str:
        """Attribute and item, for people."""
        return ".".join(filter(None, (self.attribute_name, self.item)))

    @property
    def delays(self) -> Delays:
        """Delays of the MBean."""
        return Delays(self.memory_seconds * 1_000_000, self.refresh_seconds * 1_000_000)

    @property
    def traits(self) -> Iterator[tuple[str, str]]:
        """Names and values of bronze/metric_traits."""
        if self.describes:
            yield "describes", self.describes
        if self.reported_by:
            yield "reported_by", self.reported_by
        if self.bound:
            yield f"{self.bound.side}_of", self.bound.of
        if self.position:
            yield "position", "true"

    def wrong_in(self, version: str | None) -> str | None:
        """Return the reason why a Kafka version reports the metric wrongly, or None."""
        if version is None:
            return None
        return next((known.reason for known in self.known_wrong if known.covers(version)), None)


class Family(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Metrics that are read together, from one kind of source, at one scrape interval.

    Attributes:
        cap: Maximum number of series per scrape. Gauges beyond it become the series ``__other__``,
            counters beyond it are omitted; both are counted.
        enabled: Whether it is read by default.
    """

    name: str = msgspec.field(name="family")
    via: Via
    cadence_seconds: Annotated[int, msgspec.Meta(ge=1)] = 60
    roles: tuple[Role, ...]
    metrics: tuple[Metric, ...]
    cap: Annotated[int, msgspec.Meta(ge=1)] = DEFAULT_CAP
    enabled: bool = True

    def metric(self, name: str) -> Metric:
        """Return the metric of a name.

        Raises:
            ConfigError: The family does not have it.
        """
        for metric in self.metrics:
            if metric.name == name:
                return metric
        raise ConfigError(f"family {self.name} has no metric {name!r}")

    @property
    def cadence_us(self) -> int:
        """Scrape interval in microseconds."""
        return self.cadence_seconds * 1_000_000


@dataclass(frozen=True)
class Catalogue:
    """All families."""

    families: tuple[Family, ...]

    @cached_property
    def hash(self) -> str:
        """Hash of the content, as in bronze/scrapes."""
        return hashlib.sha256(msgspec.json.encode(self.families, order="sorted")).hexdigest()[:16]

    @cached_property
    def metrics(self) -> Mapping[str, Metric]:
        """Metrics by name. If several families have one, the first family counts."""
        families = reversed(self.families)
        return {metric.name: metric for family in families for metric in family.metrics}

    def definitions(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of bronze/metric_definitions, without the agent."""
        for family in self.families:
            for metric in family.metrics:
                yield (
                    self.hash, metric.name, family.name, list(family.roles), metric.kind,
                    metric.unit, metric.absent, *metric.delays, metric.description,
                )  # fmt: skip

    def traits(self) -> Iterator[tuple[str, ...]]:
        """Yield the rows of bronze/metric_traits, without the agent."""
        for family in self.families:
            for metric in family.metrics:
                for trait in metric.traits:
                    yield (self.hash, metric.name, family.name, *trait)

    def preferring(self, name: str) -> "Catalogue":
        """Return the catalogue of an agent that reads a family with better metrics.

        Each of them has the name of the metric that it replaces. The name of the replaced metric
        gets the interface: ``kafka.partition.under_min_isr`` of JMX is ``...under_min_isr.jmx``.

        Raises:
            ConfigError: The catalogue does not have the family.
        """
        taken = {one.name: one.replaces for one in self.family(name).metrics if one.replaces}
        return Catalogue(tuple(_renamed(family, taken) for family in self.families))

    def family(self, name: str) -> Family:
        """Return the family of a name.

        Raises:
            ConfigError: The catalogue does not have it.
        """
        for family in self.families:
            if family.name == name:
                return family
        raise ConfigError(f"the catalogue has no family {name!r}")


def _renamed(family: Family, taken: Mapping[str, str]) -> Family:
    names = {**{name: f"{name}.{family.via}" for name in taken.values()}, **taken}
    metrics = (replace(one, name=names.get(one.name, one.name)) for one in family.metrics)
    return replace(family, metrics=tuple(metrics))
