"""Recommendations on replicas, quotas and retention.

A list of recommendations is None if none of its metrics was read. An empty list is a list without
findings.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Final, NamedTuple

from lakehouse import tables
from lakehouse.core.metrics import PARTITION_COUNT
from lakehouse.core.periods import iso, micros
from lakehouse.core.subjects import Subject
from lakehouse.engines.gold_reader import Row, is_same
from lakehouse.engines.relation import is_one_of
from lakehouse.report.facts import fields
from lakehouse.report.facts.fields import Known, Means, Question, Rows
from lakehouse.report.facts.gold import Gold, attribute
from lakehouse.report.facts.sections import throttling

WITHIN_HOURS: Final = 24

NEAR: Final = 0.8
"""Share of a quota from which it is near."""

SPARE: Final = 1.25
"""A suggested quota is the maximum observed rate plus a quarter."""

_HEADROOM: Final = "kafka.group.retention_headroom"
_REPLICAS: Final = "kafka.topic.replication_factor"
_MIN_ISR: Final = "kafka.topic.min_insync_replicas"
_QUOTA_FAMILIES: Final = frozenset({"client_rates", "quota_limits"})


class Replicas(NamedTuple):
    """Replicas of a topic."""

    topic: Annotated[str | None, fields.TOPIC]
    partitions: Annotated[int | None, fields.PARTITIONS]
    replication_factor: Annotated[int, Means("number of replicas of each partition")]
    min_insync_replicas: Annotated[int | None, Means("min.insync.replicas")]


class UnusedQuota(NamedTuple):
    """A quota that limited no client in the period."""

    user: Annotated[str | None, Means("user of the quota; <default>: users without their own")]
    client_id: Annotated[str | None, Means(
        "client id of the quota; <default>: client ids without their own")]  # fmt: skip
    kind: Annotated[str, throttling.KIND]
    quota: Annotated[float, Means("quota on each broker, in rate_unit")]
    rate_unit: Annotated[str, throttling.RATE_UNIT]


class QuotaOf(NamedTuple):
    """The entity that a quota is set for."""

    user: Annotated[str | None, Means("its user; empty: without a user")]
    client_id: Annotated[str | None, Means("its client id; empty: without a client id")]


class NearQuota(NamedTuple):
    """A client near its quota on one broker, and a sufficient quota."""

    user: Annotated[str | None, fields.USER]
    client_id: Annotated[str | None, fields.CLIENT_ID]
    kind: Annotated[str, throttling.KIND]
    rate_max_of_a_broker: Annotated[float, Means("maximum rate on one broker, in rate_unit")]
    quota: Annotated[float, throttling.QUOTA]
    quota_of: Annotated[QuotaOf, Means("entity of the quota in force", column="quota")]
    share: Annotated[float, Means("rate_max_of_a_broker divided by quota")]
    suggested: Annotated[float, Means("a sufficient quota, in rate_unit")]
    suggested_at_least: Annotated[bool, Means(
        "1: the quota throttled the client, so it might need more")]  # fmt: skip
    rate_unit: Annotated[str, throttling.RATE_UNIT]


class Overtaken(NamedTuple):
    """A group whose unread records retention deletes now or within a day."""

    group: Annotated[str, fields.GROUP]
    topic: Annotated[str, fields.TOPIC]
    least_seconds: Annotated[float, Means(
        "lower bound of the time until retention reaches unread records; 0: now")]  # fmt: skip
    most_seconds: Annotated[Known, Means("its upper bound; empty: not known")]
    as_of: Annotated[str, Means("time of that figure, UTC")]


class Hygiene(NamedTuple):
    """The section; a list is None if none of its metrics were collected."""

    replication_one: Annotated[list[Replicas] | None, Means("topics with one replica")]
    no_spare_replica: Annotated[list[Replicas] | None, Means(
        "topics whose replicas must all be in sync (min.insync.replicas)")]  # fmt: skip
    replicas_untold: Annotated[int, Means(
        "number of topics whose number of replicas was not reported")]  # fmt: skip
    unused_quotas: Annotated[list[UnusedQuota] | None, Means("quotas that no client used")]
    near_quota: Annotated[list[NearQuota] | None, Means("clients near their quota")]
    overtaken: Annotated[list[Overtaken] | None, Means(
        "groups whose unread records are about to be deleted")]  # fmt: skip
    within_hours: Annotated[int, Means("hours ahead that overtaken covers")] = WITHIN_HOURS


def hygiene(gold: Gold, families: Collection[str]) -> Hygiene:
    """Return the section; ``families`` were read in the period."""
    topics = [subject for subject, expected_us in gold.expected("topic") if expected_us]
    start, end = micros(gold.period.start), micros(gold.period.end)
    known = throttling.quotas(
        one for one in gold.subjects if one.last_us > start and one.first_us < end
    )
    rates = gold.by_subject(tables.CLIENTS) if set(families) >= _QUOTA_FAMILIES else None
    return Hygiene(
        *spare_replicas(topics),
        unused_quotas=None if rates is None else unused_quotas(known, rates),
        near_quota=None if rates is None else clients_near_quota(known, rates),
        overtaken=groups_overtaken(_headroom(gold), gold.window_seconds),
    )


def _headroom(gold: Gold) -> list[Row]:
    """Return the least time until retention deletes unread records, per group and topic.

    ``last`` is the value of the last window with a report, seconds, None without danger. ``most``
    is its upper bound, and ``window_start`` is in microseconds. Groups without a row were not read.
    """
    last, most = (
        f"min(CASE WHEN {is_same('r.metric', f'{_HEADROOM}.{bound}')} THEN r.value_min END)"
        for bound in ("low", "high")
    )
    windows = (
        f"SELECT r.consumer_group, r.topic, r.window_start, {last} AS last, {most} AS most, "
        "row_number() OVER (PARTITION BY r.consumer_group, r.topic ORDER BY r.window_start DESC) "
        "AS place FROM {rows} r "
        f"WHERE {is_one_of('r.metric', (f'{_HEADROOM}.low', f'{_HEADROOM}.high'))} "
        "GROUP BY r.consumer_group, r.topic, r.window_start"
    )
    return gold.ask(
        "SELECT r.consumer_group, r.topic, r.last, r.most, r.window_start "
        f"FROM ({windows}) r WHERE r.place = 1",
        rows=gold.finest(tables.GROUPS),
    )


def spare_replicas(
    topics: Sequence[Subject],
) -> tuple[list[Replicas] | None, list[Replicas] | None, int]:
    """Return topics with one replica, topics without a spare, and the number without a report."""
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
    known: throttling.Quotas, rates: Mapping[throttling.Entity, Mapping[str, Row]]
) -> list[UnusedQuota] | None:
    """Return the quotas that limit no client with a rate, or with throttling, above zero.

    None if a client was throttled without a known quota: then its quota is not known, or a known
    quota applied in an unknown way.
    """
    used = set()
    for use in throttling.uses(known, rates):
        if use.quota is None and use.throttle.get("series_affected_high_us"):
            return None
        if use.quota and any(
            row.get("series_affected_high_us") for row in (use.rate, use.throttle)
        ):
            used.add((use.quota.entity, use.kind))
    rows = [
        UnusedQuota(*entity, name, limit, kind.unit)
        for entity, limits in known.items()
        for name, kind in throttling.KINDS.items()
        if (limit := limits.get(kind.quota)) is not None and (entity, name) not in used
    ]
    return sorted(rows, key=lambda row: (str(row.user), str(row.client_id), row.kind))


def clients_near_quota(
    known: throttling.Quotas, rates: Mapping[throttling.Entity, Mapping[str, Row]]
) -> list[NearQuota]:
    """Return clients that came near their quota on some broker, the nearest first."""
    rows = []
    for use in throttling.uses(known, rates):
        quota, most = use.quota, use.rate.get("value_max")
        if quota is None or most is None or quota.limit <= 0 or most < NEAR * quota.limit:
            continue
        rows.append(
            NearQuota(
                *use.client,
                use.kind,
                most,
                quota.limit,
                QuotaOf(*quota.entity),
                share=most / quota.limit,
                suggested=suggested_quota(max(most, quota.limit)),
                # A client that a quota slows down would send more; how much more is not known.
                suggested_at_least=bool(use.throttle.get("series_affected_high_us")),
                rate_unit=throttling.KINDS[use.kind].unit,
            )
        )
    return sorted(rows, key=lambda row: -row.share)


def suggested_quota(rate: float) -> float:
    """Return the rate plus a quarter, rounded up to two digits."""
    wanted = rate * SPARE
    step = 10.0 ** (math.floor(math.log10(wanted)) - 1)
    return float(math.ceil(round(wanted / step, 6)) * step)


def groups_overtaken(rows: Sequence[Row], window_seconds: int) -> list[Overtaken] | None:
    """Return groups that retention will overtake within a day, the soonest first.

    Args:
        rows: Least headroom of the last window and its upper bound per group and topic, seconds;
            None: safe.
        window_seconds: Length of a window.
    """
    window_us = window_seconds * 1_000_000
    groups = [
        Overtaken(
            row["consumer_group"],
            row["topic"],
            row["last"],
            row["most"],
            iso(row["window_start"] + window_us),
        )
        for row in rows
        if row["last"] is not None and row["last"] <= WITHIN_HOURS * 3600
    ]
    groups.sort(key=lambda row: (row.least_seconds, str(row.group), str(row.topic)))
    return groups if rows else None


_LISTS: Final = Rows(
    Hygiene,
    "hygiene",
    ("replication_one", "no_spare_replica", "near_quota", "unused_quotas", "overtaken"),
)

HYGIENE_QUESTION: Final = Question(
    name="hygiene",
    section="risks",
    read="any",
    gold=("clients", "groups", "subjects"),
    bad=(_LISTS,),
    open=(_LISTS,),
    shows=(
        "kafka.group.retention_headroom.*", "kafka.topic.partitions",
        "kafka.topic.replication_factor", "kafka.topic.min_insync_replicas",
    ),
)  # fmt: skip

USE_OF_QUOTAS: Final = Question(
    name="use of quotas", read="kafka.client.produce.byte_rate", gold=("clients",)
)
"""Whether clients were observed, without which no quota can be called unused."""
