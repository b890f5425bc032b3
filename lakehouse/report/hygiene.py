"""What asks to be tidied up: settings that will hurt one day, and groups that retention catches.

A list is None where nobody looked at what it is made of: nothing found would be another answer.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from lakehouse import tables
from lakehouse.existence import expected_us, with_ends
from lakehouse.metrics import PARTITIONS_TOLD
from lakehouse.periods import iso, micros
from lakehouse.report.quotas import THROTTLES, quotas, uses
from lakehouse.report.sums import sums, told

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakehouse.existence import Subject
    from lakehouse.gold_rows import Row
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
    start, end = micros(gold.period.start), micros(gold.period.end)
    known = quotas(one for one in subjects if one.last_us > start and one.first_us < end)
    seen = {row["family"] for row in sources if row["observed_us"]}
    rates = sums(gold, tables.CLIENTS) if seen >= _OF_QUOTAS else None
    return {
        **replicas(topics),
        "unused_quotas": None if rates is None else unused(known, rates),
        "near_quota": None if rates is None else near(known, rates),
        **overtaken(gold.headroom(), gold.window_seconds),
    }


def replicas(topics: Sequence[Subject]) -> dict[str, Any]:
    """Topics that one broker's end takes along, and those that it stops."""
    rows: list[Row] = [
        {
            "topic": one.topic,
            "partitions": told(one, PARTITIONS_TOLD),
            "replication_factor": factor,
            "min_insync_replicas": told(one, _MIN_ISR),
        }
        for one in topics
        if (factor := told(one, _REPLICAS)) is not None
    ]
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
        "replicas_untold": len(topics) - len(rows),
    }


def unused(known: Quotas, rates: Mapping[Entity, Mapping[str, Row]]) -> list[Row]:
    """Quotas under which nobody sent, read or asked for anything that was seen."""
    used = {
        (use.held.entity, use.quota)
        for use in uses(known, rates)
        if use.held and any(row.get("positive_high_us") for row in (use.rate, use.throttle))
    }
    found = [
        {"user": user, "client_id": client_id, "kind": kind, "quota": limit, "rate_unit": unit}
        for (user, client_id), limits in known.items()
        for kind, (_, unit, quota) in THROTTLES.items()
        if (limit := limits.get(quota)) is not None and ((user, client_id), quota) not in used
    ]
    return sorted(found, key=lambda row: (str(row["user"]), str(row["client_id"]), row["kind"]))


def near(known: Quotas, rates: Mapping[Entity, Mapping[str, Row]]) -> list[Row]:
    """Clients that came near their quota on some broker, the nearest first; with a value to set."""
    found = []
    for use in uses(known, rates):
        held, most = use.held, use.rate.get("max")
        if held is None or most is None or held.limit <= 0 or most < NEAR * held.limit:
            continue
        found.append(
            {
                **use.client,
                "kind": use.kind,
                "rate_unit": use.unit,
                "quota": held.limit,
                "quota_of": dict(zip(("user", "client_id"), held.entity, strict=True)),
                "rate_max_of_a_broker": most,
                "share": most / held.limit,
                "suggested": suggested(max(most, held.limit)),
                # Whom a quota slows down would send more: how much more, nobody can tell.
                "suggested_at_least": bool(use.throttle.get("positive_high_us")),
            }
        )
    return sorted(found, key=lambda row: -row["share"])


def suggested(rate: float) -> float:
    """The rate and a quarter more, rounded up to two digits."""
    wanted = rate * SPARE
    step = 10.0 ** (math.floor(math.log10(wanted)) - 1)
    return float(math.ceil(round(wanted / step, 6)) * step)


def overtaken(rows: Sequence[Row], window_seconds: int) -> dict[str, Any]:
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
        for row in rows
        if row["last"] is not None and row["last"] <= WITHIN_HOURS * 3600
    ]
    listed.sort(key=lambda row: (row["least_seconds"], str(row["group"]), str(row["topic"])))
    return {"overtaken": listed if rows else None, "within_hours": WITHIN_HOURS}
