"""Metrics with a meaning in code, and the families that read a metric."""

import csv
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Final, Literal, NamedTuple

Families = Mapping[str, frozenset[str]]
"""Families that read a metric, by metric; catalogues can differ."""

UNDER_MIN_ISR: Final = "kafka.partition.under_min_isr"
LEADERLESS: Final = "kafka.partition.leaderless"
UNAVAILABLE: Final = "kafka.partition.unavailable"
"""Derived: under min ISR or without a leader. Brokers do not report leaderless partitions."""

PARTITION_COUNT: Final = "kafka.topic.partitions"
NODE_FENCED: Final = "kafka.cluster.node.fenced"
COVERAGE: Final = "jmxlake.coverage"
"""Scrape log of the agents; not an MBean."""

GROUP_LAG: Final = "kafka.group.lag"
PARTITION_LAG: Final = "kafka.group.partition_lag"
COPY_LAG: Final = "kafka.topic.remote_copy_lag.bytes"
DELETE_LAG: Final = "kafka.topic.remote_delete_lag.bytes"


class Definition(NamedTuple):
    """Definition of a metric in a catalogue.

    Attributes:
        metric: Name of the metric.
        family: Family that reads it.
        absent: Meaning of an absent MBean: ``idle``, ``not_applicable`` or ``zero``.
        description: Description for readers. Empty in the shipped table.
    """

    metric: str
    family: str
    absent: str
    kind: str = ""
    unit: str = ""
    description: str = ""


class Trait(NamedTuple):
    """A row of bronze/metric_traits: one property of a metric in a catalogue."""

    metric: str
    family: str
    trait: str
    value: str


class Traits(NamedTuple):
    """The properties of a metric that decide how the rollup reads it.

    Attributes:
        describes: ``topic``, ``node`` or ``quota``: it is an attribute of that subject. Empty: it
            is a figure.
        reported_by: ``replicas`` or ``controllers``: they report it too. Empty: they do not.
        bound_of: The value that it bounds. Empty: it is not a bound.
        side: ``low`` or ``high`` of a bound.
        is_position: Whether it is a place in a log.
    """

    describes: str = ""
    reported_by: str = ""
    bound_of: str = ""
    side: str = ""
    is_position: bool = False

    @property
    def by_replicas(self) -> bool:
        """Whether every replica of a partition reports it, and not only the leader."""
        return self.reported_by == "replicas"

    @property
    def by_controllers(self) -> bool:
        """Whether controllers report it, and not only brokers."""
        return self.reported_by == "controllers"

    @property
    def has_figures(self) -> bool:
        """Whether gold has figures of it per topic or client: values/runs.sql in the kernel."""
        return not (self.describes or self.is_position or self.by_replicas)


class Meanings(NamedTuple):
    """The families and traits of metrics, from the catalogues of a lake.

    Attributes:
        families: The families that read each metric.
        traits: The traits of each metric that has any.
    """

    families: Families
    traits: Mapping[str, Traits]

    def traits_of(self, metric: str) -> Traits:
        """Return the traits of a metric."""
        return self.traits.get(metric, _NO_TRAITS)

    def families_of(self, metric: str) -> frozenset[str]:
        """Return the families that read a metric or its bounds."""
        bounds = (name for name, one in self.traits.items() if one.bound_of == metric)
        names = (metric, *bounds)
        return frozenset().union(*(self.families.get(name, ()) for name in names))

    def value_of(self, metric: str) -> str:
        """Return the value that a metric bounds; of any other metric its own name."""
        return self.traits_of(metric).bound_of or metric

    def bound(self, value: str, side: str) -> str:
        """Return the metric that bounds a value on a side; empty: none does."""
        wanted = (value, side)
        found = (n for n, one in self.traits.items() if (one.bound_of, one.side) == wanted)
        return next(found, "")


_NO_TRAITS: Final = Traits()


class Known(NamedTuple):
    """Properties of a metric, without data.

    Attributes:
        kind: ``gauge`` or ``counter``.
        families: Families that read it. Empty for a derived metric.
        level: Subject type. Empty if only the catalogue of a lake has the metric.
        labels: Labels of its series in gold, if they were requested.
        traits: Its traits.
    """

    kind: str
    families: frozenset[str]
    level: str = ""
    labels: Collection[str] = ()
    traits: Traits = _NO_TRAITS


Worst = Literal["parts", "total", "most", "sum", "between"]


@dataclass(frozen=True, slots=True)
class Watched:
    """A metric that is bad above zero.

    Attributes:
        metric: Name in bronze. Without ``.low`` and ``.high`` if ``worst`` is ``between``.
        title: Meaning of a value above zero.
        unit: UCUM unit of the peak.
        worst: Aggregation of an interval. ``parts``: bad series at one instant. ``total``: maximum
            of the sum over brokers. ``most``: maximum. ``sum``: increase of a counter. ``between``:
            increase of a counter with a low and a high value.
    """

    metric: str
    title: str
    unit: str
    worst: Worst = "most"

    @property
    def is_counter(self) -> bool:
        """True if it counts events instead of measuring a duration."""
        return self.worst in ("sum", "between")

    @property
    def families(self) -> frozenset[str]:
        """Families that read it. Empty if they are unknown."""
        return families(*self.names_in_bronze)

    @property
    def names_in_bronze(self) -> tuple[str, ...]:
        """Its metrics in bronze: one, or a low and a high metric."""
        between = self.worst == "between"
        return (f"{self.metric}.low", f"{self.metric}.high") if between else (self.metric,)


_PARTITIONS: Final = (
    Watched(UNDER_MIN_ISR, "Under min ISR", "partitions", "parts"),
    Watched(LEADERLESS, "Leaderless", "partitions", "parts"),
)
WATCHED_OF: Final[dict[str, tuple[Watched, ...]]] = {
    "topic": (
        *_PARTITIONS,
        Watched("kafka.topic.remote_copy_lag.bytes", "Tiered-storage upload lag", "By", "total"),
        Watched("kafka.topic.remote_delete_lag.segments", "Tiered-storage deletion lag",
            "{segment}", "total"),
    ),
    "partition": (
        *_PARTITIONS,
        Watched("kafka.partition.upload_tier_lag", "Tiered-storage upload lag", "{offset}"),
        Watched("kafka.partition.delete_tier_lag", "Tiered-storage deletion lag", "{offset}"),
        Watched("kafka.partition.upload_lag.bytes", "Closed segments waiting for upload", "By"),
        Watched("kafka.partition.delete_failed.segments", "Failed remote deletions", "{segment}"),
    ),
    "client": (
        Watched("kafka.client.produce.throttle_time", "Producer throttling", "ms"),
        Watched("kafka.client.fetch.throttle_time", "Consumer throttling", "ms"),
        Watched("kafka.client.request.throttle_time", "Request-quota throttling", "ms"),
        Watched("kafka.client.controller_mutation.throttle_time", "Topic-change throttling", "ms"),
    ),
    "group": (
        Watched("kafka.group.non_consumed", "Unread data loss", "{offset}", "between"),
        Watched(PARTITION_LAG, "Consumer lag above 10,000 records", "{offset}"),
    ),
    "source": (
        Watched("kafka.broker.under_min_isr_partitions", "Leads partitions under min ISR",
            "partitions"),
        Watched("kafka.broker.produce_errors.not_enough_replicas",
            "Refused writes (too few replicas)", "{request}", "sum"),
        Watched("kafka.controller.offline_partitions", "Counts leaderless partitions",
            "partitions"),
    ),
}  # fmt: skip

WATCHED: Final = tuple(
    dict.fromkeys(
        name for kind in WATCHED_OF.values() for one in kind for name in one.names_in_bronze
    )
)
"""Names in bronze of all watched metrics; their incidents are in gold/incidents."""


def with_components(metrics: Sequence[str]) -> tuple[str, ...]:
    """Return metrics together with the metrics in bronze from which they are derived."""
    derived = (UNDER_MIN_ISR, LEADERLESS) if UNAVAILABLE in metrics else ()
    return tuple(dict.fromkeys((*metrics, *derived)))


def families(*metrics: str) -> frozenset[str]:
    """Return the families that read any of these metrics in the shipped catalogue.

    It is empty for a user's own metrics, which only the lake defines.
    """
    shipped_families = shipped_meanings().families
    return frozenset().union(*(shipped_families.get(metric, ()) for metric in metrics))


@lru_cache
def shipped() -> tuple[Definition, ...]:
    """Return the definitions of the shipped catalogue, for agents that wrote none."""
    names = Definition._fields[:-1]
    return tuple(Definition(*(row[name] for name in names)) for row in shipped_rows())


@lru_cache
def known() -> Mapping[str, Known]:
    """Return the metrics of the shipped catalogue, and derived metrics."""
    derived = {UNAVAILABLE: "partition", COVERAGE: "source"}
    meanings = shipped_meanings()
    return {metric: Known("gauge", frozenset(), level) for metric, level in derived.items()} | {
        (name := row["metric"]): Known(
            row["kind"], meanings.families[name], row["level"], traits=meanings.traits_of(name)
        )
        for row in shipped_rows()
    }


def is_of_partitions(metric: str) -> bool:
    """Return True for a shipped metric that the leader of each partition reports."""
    one = known().get(metric)
    return one is not None and one.level == "partition" and not one.traits.by_replicas


@lru_cache
def roles_of(metric: str) -> frozenset[str]:
    """Return the roles of the sources that report a shipped metric; empty: unknown."""
    rows = (row["roles"].split() for row in shipped_rows() if row["metric"] == metric)
    return frozenset().union(*rows)


@lru_cache
def jvm_families(role: str) -> frozenset[str]:
    """Return the shipped families that are read from the JVM of a role."""
    return frozenset(
        row["family"]
        for row in shipped_rows()
        if row["via"] == "jmx" and role in row["roles"].split()
    )


@lru_cache
def shipped_rows() -> list[dict[str, str]]:
    """Return the definitions of the shipped catalogue, by column."""
    return _read("metric_definitions.csv")


@lru_cache
def shipped_traits() -> tuple[Trait, ...]:
    """Return the traits of the metrics of the shipped catalogue."""
    rows = _read("metric_traits.csv")
    return tuple(Trait(*(row[name] for name in Trait._fields)) for row in rows)


@lru_cache
def shipped_meanings() -> Meanings:
    """Return the families and traits of the metrics of the shipped catalogue."""
    return meanings_of(shipped(), shipped_traits())


def _read(file: str) -> list[dict[str, str]]:
    text = resources.files("lakehouse.tables").joinpath(file).read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


def meanings_of(definitions: Iterable[Definition], traits: Iterable[Trait]) -> Meanings:
    """Return what several catalogues state about each metric.

    A trait in one of them is a trait of the metric. Of several values the first in the alphabet
    counts, so the order of the rows does not matter. Traits of newer versions are ignored.
    """
    found: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for one in sorted(traits, key=lambda one: one.value):
        found[one.metric].setdefault(one.trait, one.value)
    by_metric = {metric: _traits(own) for metric, own in found.items()}
    return Meanings(families_by_metric(definitions), by_metric)


def _traits(own: Mapping[str, str]) -> Traits:
    side = next((one for one in ("low", "high") if f"{one}_of" in own), "")
    return Traits(
        own.get("describes", ""), own.get("reported_by", ""), own.get(f"{side}_of", ""), side,
        "position" in own,
    )  # fmt: skip


def families_by_metric(definitions: Iterable[Definition]) -> Families:
    """Return the families that read each metric."""
    families: defaultdict[str, set[str]] = defaultdict(set)
    for one in definitions:
        families[one.metric].add(one.family)
    return {metric: frozenset(names) for metric, names in families.items()}
