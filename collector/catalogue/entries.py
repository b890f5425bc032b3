"""The records of the catalogue: what is read, where it stands and what its values mean."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import msgspec

from collector.errors import ConfigError
from collector.samples import Kind

Via = Literal["jmx", "admin"]
Role = Literal["broker", "controller", "client"]
Filter = Literal["positive", "binary"]
Absent = Literal["idle", "not_applicable", "zero"]


def version_key(version: str) -> tuple[int, ...]:
    """The numbers of a Kafka version, for comparing: 3.10.0 is later than 3.9.1."""
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("-")[0]))


@dataclass(frozen=True, slots=True)
class KnownWrong:
    """Kafka versions that report a metric wrongly; ``before`` is the first that does not."""

    since: str
    reason: str
    before: str | None = None

    def covers(self, version: str) -> bool:
        """Whether this Kafka version is among them."""
        key = version_key(version)
        return version_key(self.since) <= key and (
            self.before is None or key < version_key(self.before)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric of a family.

    Attributes:
        name: Its name in the lake.
        unit: UCUM unit of its values.
        description: What it says, and what a reader must know of it.
        kind: ``gauge``, or ``counter`` for a cumulative count.
        object: JMX object name pattern; a trailing ``,*`` allows any further keys of ``labels``.
        also: Further patterns under which the same bean stands; the first one found counts.
        attribute: Attribute of the bean; by default ``Value``, of a counter ``Count``.
        labels: Key of the object name to column of bronze/runs, or to a label of that name.
        url_encoded: Keys whose values Kafka URL-encodes.
        filter: ``positive``: what is above zero is asked of the server; ``binary``: the same, and
            above zero means 1.
        led: Only partitions that this broker leads count.
        absent: What a bean that is not there means.
        percentiles: Whether the rollup keeps a distribution of the values.
        memory_seconds: How long the bean goes on showing a value after its cause has ended.
        call: Admin call that the metric comes from, where it does not come from JMX.
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
    labels: Mapping[str, str] = field(default_factory=dict)
    url_encoded: tuple[str, ...] = ()
    filter: Filter | None = None
    led: bool = False
    absent: Absent = "not_applicable"
    percentiles: bool = False
    memory_seconds: int = 0
    call: str | None = None
    first: str | None = None
    last: str | None = None
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
    def memory_us(self) -> int:
        """How long the bean shows a value after its cause has ended, in microseconds."""
        return self.memory_seconds * 1_000_000

    def wrong_in(self, version: str | None) -> str | None:
        """Why this Kafka version reports the metric wrongly, or None."""
        if version is None:
            return None
        return next((known.reason for known in self.known_wrong if known.covers(version)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Metrics that are read together, from one kind of source, at one cadence."""

    name: str
    via: Via
    cadence_seconds: int
    roles: tuple[Role, ...]
    metrics: tuple[Metric, ...]

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

    def metric(self, name: str) -> Metric:
        """The metric of this name.

        Raises:
            ConfigError: There is none.
        """
        try:
            return self.metrics[name]
        except KeyError:
            raise ConfigError(f"the catalogue has no metric {name!r}") from None

    def family(self, name: str) -> Family:
        """The family of this name.

        Raises:
            ConfigError: There is none.
        """
        for family in self.families:
            if family.name == name:
                return family
        raise ConfigError(f"the catalogue has no family {name!r}")
