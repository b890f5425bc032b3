"""Which quota is in force for a client, by Kafka's order of precedence, and how it is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from lakehouse.gold_rows import Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lakehouse.existence import Subject

DEFAULT_ENTITY: Final = "<default>"
"""How Kafka spells the default user or client id of a quota."""

Entity = tuple[str | None, str | None]
"""User and client id of a quota; ``<default>`` stands for everybody who has none of his own."""

Quotas = Mapping[Entity, Mapping[str, float | None]]
"""The limits of each entity, by the quota's metric."""

THROTTLES: Final = {
    "produce": ("kafka.client.produce.byte_rate", "By/s", "kafka.quota.produce.byte_rate"),
    "fetch": ("kafka.client.fetch.byte_rate", "By/s", "kafka.quota.fetch.byte_rate"),
    "request": ("kafka.client.request.time", "%", "kafka.quota.request.percentage"),
    "controller_mutation": (
        "kafka.client.controller_mutation.rate",
        "{mutation}/s",
        "kafka.quota.controller_mutation.rate",
    ),
}
"""Kinds of throttling: the metric of the rate, its unit, and the quota's metric."""


class InForce(NamedTuple):
    """A quota that holds for a client, and whose it is."""

    entity: Entity
    limit: float


class Use(NamedTuple):
    """What a client does of one kind, and what holds for that.

    Attributes:
        client: Its user and client id.
        kind: Which kind of throttling.
        unit: Of the rate.
        quota: The quota's metric.
        rate: What gold sums up of its rate.
        throttle_metric: The metric of its throttling.
        throttle: What gold sums up of that.
        held: The quota that holds for it.
    """

    client: Mapping[str, str | None]
    kind: str
    unit: str
    quota: str
    rate: Row
    throttle_metric: str
    throttle: Row
    held: InForce | None


def uses(known: Quotas, rates: Mapping[Entity, Mapping[str, Row]]) -> Iterator[Use]:
    """What each client does of each kind.

    Args:
        known: All quotas.
        rates: Sums of gold/clients by user and client id, and by metric.
    """
    for (user, client_id), metrics in rates.items():
        client = {"user": user, "client_id": client_id}
        for kind, (rate, unit, quota) in THROTTLES.items():
            throttle = f"kafka.client.{kind}.throttle_time"
            of_both = metrics.get(rate) or {}, throttle, metrics.get(throttle) or {}
            held = in_force(known, user, client_id, quota)
            yield Use(client, kind, unit, quota, *of_both, held)


def quotas(subjects: Iterable[Subject]) -> Quotas:
    """All quotas that were told of."""
    return {(one.user, one.client_id): one.attributes for one in subjects if one.kind == "quota"}


def in_force(known: Quotas, user: str | None, client_id: str | None, metric: str) -> InForce | None:
    """The quota that holds for a client; None where none does, or nobody told its limit.

    Args:
        known: All quotas.
        user: As the client's bean names it; None: the quota goes by client id alone.
        client_id: Likewise; None: the quota goes by user alone.
        metric: Which limit, such as ``kafka.quota.produce.byte_rate``.
    """
    users = (user, DEFAULT_ENTITY) if user is not None else (None,)
    clients = (client_id, DEFAULT_ENTITY) if client_id is not None else (None,)
    for entity in ((u, c) for u in users for c in clients):
        limits = known.get(entity, {})
        if metric in limits:
            limit = limits[metric]
            return None if limit is None else InForce(entity, float(limit))
    return None
