"""The records of the catalogue: what is read, where it stands and what its values mean."""

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
"""What runs in the JVM that is read; ``combined``: broker and controller, read as two sources;
``cluster``: all brokers together, by Admin alone."""
Via = Literal["jmx", "admin", "metadata_log", "statistics"]
"""Where a family is read: ``jmx`` means MBeans, however the JVM is reached."""
Needs = Literal[
    "quota", "tiering", "plugin", "draft", "traffic",
    "partition", "topic", "group", "client", "reporter",
]  # fmt: skip


Version = Annotated[str, msgspec.Meta(pattern=r"^\d+(\.\d+)+$")]
"""A Kafka version such as 3.7.0."""


def version_key(version: str) -> tuple[int, ...]:
    """The numbers of a Kafka version, for comparing: 3.10.0 is later than 3.9.1.

    Confluent's own count as the first release of the Kafka that they are made of: 7.9.5-ccs as
    3.9.0 (confluentinc/kafka, pull requests 598 and 1445). What a patch of theirs has fixed is not
    known by its number.
    """
    key = tuple(int(part) for part in re.findall(r"\d+", version.partition("-")[0]))
    if version.endswith(("-ccs", "-ce")) and key >= (7, 0):
        return key[0] - 4, key[1], 0
    return key


class KnownWrong(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Kafka versions that report a metric wrongly; ``before`` is the first that does not."""

    since: Version
    reason: str
    before: Version | None = None

    def covers(self, version: str) -> bool:
        """Whether this Kafka version is among them."""
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
    """By how much a bean may be late, in microseconds.

    Attributes:
        memory_us: How long it goes on showing a value after its cause has ended.
        refresh_us: How old its value may be when it is read.
    """

    memory_us: int = 0
    refresh_us: int = 0


class Metric(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One metric of a family.

    Attributes:
        name: Its name in the lake.
        unit: UCUM unit of its values.
        description: What it says, and what a reader must know of it.
        kind: ``gauge``, or ``counter`` for a cumulative count.
        object: JMX object name pattern; a trailing ``,*`` allows any further keys of ``labels``.
        also: Further patterns under which the same bean stands; the first one found counts.
        attribute: Attribute of the bean; by default ``Value``, of a counter ``Count``.
        item: Item of a composite attribute, such as ``used`` of ``HeapMemoryUsage``.
        states: Numbers that texts of the attribute stand for; ``*`` is any other text.
        labels: Key of the object name to column of bronze/runs, or to a label of that name.
        url_encoded: Keys whose values Kafka URL-encodes.
        filter: ``positive``: what is above zero is asked of the server; ``binary``: the same, and
            above zero means 1.
        least: The least value that a bean of a ``positive`` metric has: those above it are read.
        led: Only partitions that this broker leads count.
        counted_by: Metric of the same family in which the broker itself counts what is above zero.
        above: Only values above it are recorded; None: all are.
        absent: What a bean that is not there means.
        needs: What must be there first, so that a bean may be absent and all is well; see
            collector.cli.why_absent.
        percentiles: Whether the rollup keeps a distribution of the values.
        describes: Subject of which the value is an attribute (gold/subjects). None: it is a figure.
        reported_by: Sources that report it in addition to the leader of its partition or to the
            brokers of its client. ``replicas``: followers. ``controllers``: controllers.
        bound: The value that it bounds. None: the value itself.
        position: Whether it is a place in a log. Places have no sum and no mean, so gold has no
            figures of them.
        memory_seconds: How long the bean goes on showing a value after its cause has ended.
        refresh_seconds: How old the bean's value may be when it is read; 0: it is of that instant.
        written_after: Counter of a work that has started, and those of its ends; the bean is
            written only when it ends, so meanwhile its value is old.
        call: Admin call that the metric comes from, where it does not come from JMX.
        replaces: Metric that this one is the better source of: where this one's family is read, it
            takes that name, and what had it becomes the cross-check (see ``Catalogue.preferring``).
        first: First Kafka version that has it.
        last: Last Kafka version that has it.
        known_wrong: Versions that report it wrongly.
        kip: The Kafka improvement proposal that asked for it.
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
        """All object name patterns, the preferred one first."""
        return (self.object, *self.also) if self.object else ()

    @property
    def attribute_name(self) -> str:
        """The attribute to read."""
        return self.attribute or ("Count" if self.kind == "counter" else "Value")

    @property
    def attribute_text(self) -> str:
        """The attribute and its item, for people."""
        return ".".join(filter(None, (self.attribute_name, self.item)))

    @property
    def delays(self) -> Delays:
        """By how much the bean may be late."""
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
        """Why this Kafka version reports the metric wrongly, or None."""
        if version is None:
            return None
        return next((known.reason for known in self.known_wrong if known.covers(version)), None)


class Family(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Metrics that are read together, from one kind of source, at one cadence.

    Attributes:
        cap: Most series a scrape. The excess is counted; it becomes one ``__other__``, but that of
            counters is left out.
        enabled: Whether it is read without being asked for.
    """

    name: str = msgspec.field(name="family")
    via: Via
    cadence_seconds: Annotated[int, msgspec.Meta(ge=1)] = 60
    roles: tuple[Role, ...]
    metrics: tuple[Metric, ...]
    cap: Annotated[int, msgspec.Meta(ge=1)] = DEFAULT_CAP
    enabled: bool = True

    def metric(self, name: str) -> Metric:
        """The metric of this name.

        Raises:
            ConfigError: There is none.
        """
        for metric in self.metrics:
            if metric.name == name:
                return metric
        raise ConfigError(f"family {self.name} has no metric {name!r}")

    @property
    def cadence_us(self) -> int:
        """The cadence in microseconds."""
        return self.cadence_seconds * 1_000_000


@dataclass(frozen=True)
class Catalogue:
    """Everything that is read."""

    families: tuple[Family, ...]

    @cached_property
    def hash(self) -> str:
        """Hash of the content, as bronze/scrapes records it."""
        return hashlib.sha256(msgspec.json.encode(self.families, order="sorted")).hexdigest()[:16]

    @cached_property
    def metrics(self) -> Mapping[str, Metric]:
        """All metrics by name."""
        return {metric.name: metric for family in self.families for metric in family.metrics}

    def definitions(self) -> Iterator[tuple[Any, ...]]:
        """Rows of bronze/metric_definitions, without the agent."""
        for family in self.families:
            for metric in family.metrics:
                yield (
                    self.hash, metric.name, family.name, list(family.roles), metric.kind,
                    metric.unit, metric.absent, *metric.delays, metric.description,
                )  # fmt: skip

    def traits(self) -> Iterator[tuple[str, ...]]:
        """Rows of bronze/metric_traits, without the agent."""
        for family in self.families:
            for metric in family.metrics:
                for trait in metric.traits:
                    yield (self.hash, metric.name, family.name, *trait)

    def preferring(self, name: str) -> "Catalogue":
        """The same where a family is read whose metrics replace others.

        Each takes the name of the metric that it replaces; that one is called after the way it is
        read: ``kafka.partition.under_min_isr`` from JMX becomes ``...under_min_isr.jmx``.

        Raises:
            ConfigError: There is no family of this name.
        """
        taken = {one.name: one.replaces for one in self.family(name).metrics if one.replaces}
        return Catalogue(tuple(_renamed(family, taken) for family in self.families))

    def family(self, name: str) -> Family:
        """The family of this name.

        Raises:
            ConfigError: There is none.
        """
        for family in self.families:
            if family.name == name:
                return family
        raise ConfigError(f"the catalogue has no family {name!r}")


def _renamed(family: Family, taken: Mapping[str, str]) -> Family:
    names = {**{name: f"{name}.{family.via}" for name in taken.values()}, **taken}
    metrics = (replace(one, name=names.get(one.name, one.name)) for one in family.metrics)
    return replace(family, metrics=tuple(metrics))
