"""What asks to be tidied up: settings that will hurt one day, and groups that retention catches.

A list is None where nobody looked at what it is made of: nothing found would be another answer.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from lakehouse import tables
from lakehouse.existence import expected_us, with_ends
from lakehouse.metrics import PARTITIONS_TOLD, QUOTAS
from lakehouse.periods import iso, micros
from lakehouse.report import quotas as limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lakehouse.existence import Subject
    from lakehouse.gold_rows import Row
    from lakehouse.periods import Period
    from lakehouse.report.gather import Gold
    from lakehouse.report.quotas import Entity, Quotas

WITHIN_HOURS: Final = 24
NEAR: Final = 0.8
"""Share of a quota from which it is near."""

SPARE: Final = 1.25
"""A suggested quota is the highest rate seen and a quarter more."""

_REPLICAS: Final = "kafka.topic.replication_factor"
_MIN_ISR: Final = "kafka.topic.min_insync_replicas"
_OF_QUOTAS: Final = frozenset({"client_rates", "quota_limits"})
_KINDS: Final = {quota: (kind, unit) for kind, (_, unit, quota) in limits.THROTTLES.items()}


def hygiene(
    gold: Gold, subjects: Sequence[Subject], sources: Sequence[Row], now_us: int
) -> dict[str, Any]:
    """The lists.

    Args:
        gold: The cluster's gold.
        subjects: The cluster's subjects.
        sources: How long which source and family was seen, as in the facts.
        now_us: Nothing exists later than this.
    """
    topics = [
        one
        for one, end_us in with_ends(subjects)
        if one.kind == "topic" and expected_us(one, end_us, gold.period, now_us)
    ]
    known = limits.quotas(_of_period(subjects, gold.period))
    seen = {row["family"] for row in sources if row["observed_us"]}
    rates = _rates(gold) if seen >= _OF_QUOTAS else None
    return {
        **replicas(topics),
        "unused_quotas": None if rates is None else unused(known, rates),
        "near_quota": None if rates is None else near(known, rates),
        **overtaken(gold.headroom(), gold.window_seconds),
    }


def _of_period(subjects: Iterable[Subject], period: Period) -> list[Subject]:
    """Quotas that were told of in the period."""
    start, end = micros(period.start), micros(period.end)
    return [
        one
        for one in subjects
        if one.kind == "quota" and one.last_us > start and one.first_us < end
    ]


def replicas(topics: Iterable[Subject]) -> dict[str, Any]:
    """Topics that one broker's end takes along, and those that it stops."""
    rows: list[dict[str, Any]] = []
    untold = 0
    for one in topics:
        replicas_, least = (one.attributes.get(key) for key in (_REPLICAS, _MIN_ISR))
        if replicas_ is None:
            untold += 1
            continue
        partitions = one.attributes.get(PARTITIONS_TOLD)
        rows.append(
            {
                "topic": one.topic,
                "partitions": None if partitions is None else int(partitions),
                "replication_factor": int(replicas_),
                "min_insync_replicas": None if least is None else int(least),
            }
        )
    rows.sort(key=lambda row: (-(row["partitions"] or 0), str(row["topic"])))
    single = [row for row in rows if row["replication_factor"] == 1]
    tight = [
        row
        for row in rows
        if row["replication_factor"] > 1
        and (row["min_insync_replicas"] or 0) >= row["replication_factor"]
    ]
    return {
        "replication_one": single if rows else None,
        "no_spare_replica": tight if rows else None,
        "replicas_untold": untold,
    }


def _rates(gold: Gold) -> dict[Entity, dict[str, Row]]:
    """Per client and kind: its rate and its throttling in the period."""
    found: dict[Entity, dict[str, Row]] = {}
    for row in gold.sums(tables.CLIENTS, ("metric", "user", "client_id")):
        found.setdefault((row["user"], row["client_id"]), {})[row["metric"]] = row
    return found


def unused(known: Quotas, rates: Mapping[Entity, Mapping[str, Row]]) -> list[Row]:
    """Quotas under which nobody sent, read or asked for anything that was seen."""
    used = {
        (held.entity, quota)
        for (user, client_id), metrics in rates.items()
        for kind, (rate, _, quota) in limits.THROTTLES.items()
        if _is_active(metrics, rate, f"kafka.client.{kind}.throttle_time")
        and (held := limits.in_force(known, user, client_id, quota)) is not None
    }
    found = [
        {
            "user": entity[0],
            "client_id": entity[1],
            "kind": _KINDS[quota][0],
            "quota": limit,
            "rate_unit": _KINDS[quota][1],
        }
        for entity, of_it in known.items()
        for quota, limit in of_it.items()
        if quota.startswith(QUOTAS) and quota in _KINDS and limit is not None
        if (entity, quota) not in used
    ]
    return sorted(found, key=lambda row: (str(row["user"]), str(row["client_id"]), row["kind"]))


def _is_active(metrics: Mapping[str, Row], *names: str) -> bool:
    return any((metrics.get(name) or {}).get("positive_high_us") for name in names)


def near(known: Quotas, rates: Mapping[Entity, Mapping[str, Row]]) -> list[Row]:
    """Clients that came near their quota on some broker, the nearest first; with a value to set."""
    found = []
    for (user, client_id), metrics in rates.items():
        for kind, (rate, unit, quota) in limits.THROTTLES.items():
            held = limits.in_force(known, user, client_id, quota)
            most = (metrics.get(rate) or {}).get("max")
            if held is None or most is None or held.limit <= 0 or most < NEAR * held.limit:
                continue
            throttle = metrics.get(f"kafka.client.{kind}.throttle_time") or {}
            found.append(
                {
                    "user": user,
                    "client_id": client_id,
                    "kind": kind,
                    "rate_unit": unit,
                    "quota": held.limit,
                    "quota_of": dict(zip(("user", "client_id"), held.entity, strict=True)),
                    "rate_max_of_a_broker": most,
                    "share": most / held.limit,
                    "suggested": suggested(max(most, held.limit)),
                    # Whom a quota slows down would send more: how much more, nobody can tell.
                    "suggested_at_least": bool(throttle.get("positive_high_us")),
                }
            )
    return sorted(found, key=lambda row: -row["share"])


def suggested(rate: float) -> float:
    """The rate and a quarter more, rounded up to two digits."""
    wanted = rate * SPARE
    step = 10.0 ** (math.floor(math.log10(wanted)) - 1)
    return float(math.ceil(round(wanted / step, 6)) * step)


def overtaken(rows: Sequence[Row] | None, window_seconds: int) -> dict[str, Any]:
    """Groups that retention will have overtaken within a day, the soonest first.

    Args:
        rows: Per group and topic the least headroom of its last window, seconds; None: safe.
        window_seconds: How long a window is.
    """
    listed = [
        {
            "group": row["group"],
            "topic": row["topic"],
            "least_seconds": row["last"],
            "as_of": iso(row["window"] + window_seconds * 1_000_000),
        }
        for row in rows or ()
        if row["last"] is not None and row["last"] <= WITHIN_HOURS * 3600
    ]
    listed.sort(key=lambda row: (row["least_seconds"], str(row["group"]), str(row["topic"])))
    return {"overtaken": listed if rows else None, "within_hours": WITHIN_HOURS}
