"""Hygiene: settings of replicas and quotas that may hurt one day, and groups near retention.

A list is None if nothing that it is made of was read: an empty list says that all is well.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from lakehouse import tables
from lakehouse.core.metrics import PARTITION_COUNT
from lakehouse.core.periods import iso, micros
from lakehouse.core.subjects import Subject
from lakehouse.engines.gold_reader import Row, is_one_of, is_same
from lakehouse.report.facts.gold import Gold, attribute
from lakehouse.report.facts.kafka.throttling import KINDS, Entity, Quotas, quotas, uses

WITHIN_HOURS: Final = 24
NEAR: Final = 0.8
"""Share of a quota from which it is near."""

SPARE: Final = 1.25
"""A suggested quota is the highest rate seen and a quarter more."""

_HEADROOM: Final = "kafka.group.retention_headroom"
_REPLICAS: Final = "kafka.topic.replication_factor"
_MIN_ISR: Final = "kafka.topic.min_insync_replicas"
_QUOTA_FAMILIES: Final = frozenset({"client_rates", "quota_limits"})


class Replicas(NamedTuple):
    """How many replicas a topic has, and how many must be in sync."""

    topic: str | None
    partitions: int | None
    replication_factor: int
    min_insync_replicas: int | None


class UnusedQuota(NamedTuple):
    """A quota that limited no client in the period."""

    user: str | None
    client_id: str | None
    kind: str
    quota: float
    rate_unit: str


class QuotaOf(NamedTuple):
    """The entity that a quota is set for."""

    user: str | None
    client_id: str | None


class NearQuota(NamedTuple):
    """A client that came near its quota on one broker, and a quota that would do."""

    user: str | None
    client_id: str | None
    kind: str
    rate_unit: str
    quota: float
    quota_of: QuotaOf
    rate_max_of_a_broker: float
    share: float
    suggested: float
    suggested_at_least: bool


class Overtaken(NamedTuple):
    """A group that retention has overtaken, or will within a day."""

    group: str
    topic: str
    least_seconds: float
    most_seconds: float | None
    as_of: str


class Hygiene(NamedTuple):
    """The section."""

    replication_one: list[Replicas] | None
    no_spare_replica: list[Replicas] | None
    replicas_untold: int
    unused_quotas: list[UnusedQuota] | None
    near_quota: list[NearQuota] | None
    overtaken: list[Overtaken] | None
    within_hours: int = WITHIN_HOURS


def hygiene(gold: Gold, families: Collection[str]) -> Hygiene:
    """The section; families are those that were read in the period."""
    topics = [subject for subject, expected_us in gold.expected("topic") if expected_us]
    start, end = micros(gold.period.start), micros(gold.period.end)
    known = quotas(one for one in gold.subjects if one.last_us > start and one.first_us < end)
    rates = gold.by_subject(tables.CLIENTS) if set(families) >= _QUOTA_FAMILIES else None
    return Hygiene(
        *spare_replicas(topics),
        unused_quotas=None if rates is None else unused_quotas(known, rates),
        near_quota=None if rates is None else clients_near_quota(known, rates),
        overtaken=groups_overtaken(_headroom(gold), gold.window_seconds),
    )


def _headroom(gold: Gold) -> list[Row]:
    """Least time until retention deletes unread records, per group and topic.

    ``last`` is that of the last window with a report, seconds, None without danger, and ``most``
    its upper bound; ``window`` its start, microseconds. Groups that are not listed were not read.
    """
    last, most = (
        f"min(CASE WHEN {is_same('r.metric', f'{_HEADROOM}.{bound}')} THEN r.min END)"
        for bound in ("low", "high")
    )
    windows = (
        f"SELECT r.group, r.topic, r.window, {last} AS last, {most} AS most, row_number() OVER "
        "(PARTITION BY r.group, r.topic ORDER BY r.window DESC) AS place FROM {rows} r "
        f"WHERE {is_one_of('r.metric', (f'{_HEADROOM}.low', f'{_HEADROOM}.high'))} "
        "GROUP BY r.group, r.topic, r.window"
    )
    return gold.ask(
        f"SELECT r.group, r.topic, r.last, r.most, r.window FROM ({windows}) r WHERE r.place = 1",
        rows=gold.finest(tables.GROUPS),
    )


def spare_replicas(
    topics: Sequence[Subject],
) -> tuple[list[Replicas] | None, list[Replicas] | None, int]:
    """Topics with one replica, topics with none to spare, and how many did not report theirs."""
    rows = [
        Replicas(topic.topic, attribute(topic, PARTITION_COUNT), factor, attribute(topic, _MIN_ISR))
        for topic in topics
        if (factor := attribute(topic, _REPLICAS)) is not None
    ]
    if not rows:
        return None, None, len(topics)
    rows.sort(key=lambda row: (-(row.partitions or 0), str(row.topic)))
    single = [row for row in rows if row.replication_factor == 1]
    tight = [row for row in rows if 1 < row.replication_factor <= (row.min_insync_replicas or 0)]
    return single, tight, len(topics) - len(rows)


def unused_quotas(
    known: Quotas, rates: Mapping[Entity, Mapping[str, Row]]
) -> list[UnusedQuota] | None:
    """Return the quotas that limit no client with a rate, or with throttling, above zero.

    None if a client was throttled under none of the known quotas: then one of them limited it in a
    way that is not known, or not all quotas are.
    """
    used = set()
    for use in uses(known, rates):
        if use.quota is None and use.throttle.get("positive_high_us"):
            return None
        if use.quota and any(row.get("positive_high_us") for row in (use.rate, use.throttle)):
            used.add((use.quota.entity, use.kind))
    rows = [
        UnusedQuota(*entity, name, limit, kind.unit)
        for entity, limits in known.items()
        for name, kind in KINDS.items()
        if (limit := limits.get(kind.quota)) is not None and (entity, name) not in used
    ]
    return sorted(rows, key=lambda row: (str(row.user), str(row.client_id), row.kind))


def clients_near_quota(known: Quotas, rates: Mapping[Entity, Mapping[str, Row]]) -> list[NearQuota]:
    """Clients that came near their quota on some broker, the nearest first."""
    rows = []
    for use in uses(known, rates):
        quota, most = use.quota, use.rate.get("max")
        if quota is None or most is None or quota.limit <= 0 or most < NEAR * quota.limit:
            continue
        rows.append(
            NearQuota(
                *use.client,
                use.kind,
                KINDS[use.kind].unit,
                quota.limit,
                QuotaOf(*quota.entity),
                rate_max_of_a_broker=most,
                share=most / quota.limit,
                suggested=suggested_quota(max(most, quota.limit)),
                # A client that a quota slows down would send more; how much more is not known.
                suggested_at_least=bool(use.throttle.get("positive_high_us")),
            )
        )
    return sorted(rows, key=lambda row: -row.share)


def suggested_quota(rate: float) -> float:
    """The rate and a quarter more, rounded up to two digits."""
    wanted = rate * SPARE
    step = 10.0 ** (math.floor(math.log10(wanted)) - 1)
    return float(math.ceil(round(wanted / step, 6)) * step)


def groups_overtaken(rows: Sequence[Row], window_seconds: int) -> list[Overtaken] | None:
    """Groups that retention will have overtaken within a day, the soonest first.

    Args:
        rows: Per group and topic the least headroom of its last window and the most that this may
            be, seconds; None: safe.
        window_seconds: How long a window is.
    """
    window_us = window_seconds * 1_000_000
    groups = [
        Overtaken(
            row["group"], row["topic"], row["last"], row["most"], iso(row["window"] + window_us)
        )
        for row in rows
        if row["last"] is not None and row["last"] <= WITHIN_HOURS * 3600
    ]
    groups.sort(key=lambda row: (row.least_seconds, str(row.group), str(row.topic)))
    return groups if rows else None
