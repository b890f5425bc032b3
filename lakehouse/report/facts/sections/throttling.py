"""KIP-13: quotas, the quota in force for a client, and its throttled time."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Final, NamedTuple

from lakehouse import tables
from lakehouse.core.subjects import Subject
from lakehouse.engines.gold_reader import Row
from lakehouse.report.facts import fields
from lakehouse.report.facts.fields import Bounds, Known, Means, Question, Rows
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.gold_figures import Max, Mean, Sum, duration, of_sources, per_second
from lakehouse.slo.sla_statement import Statement

DEFAULT_ENTITY: Final = "<default>"
"""Kafka's text for the default user or client id of a quota."""

Entity = tuple[str | None, str | None]
"""User and client id of a quota; ``<default>``: all without a quota of their own."""

Quotas = Mapping[Entity, Mapping[str, float | None]]
"""The limits of each entity, by the quota's metric."""


class Kind(NamedTuple):
    """A kind of request that quotas limit: the metric of its rate, its unit, the quota's metric."""

    rate: str
    unit: str
    quota: str


KINDS: Final = {
    "produce": Kind("kafka.client.produce.byte_rate", "By/s", "kafka.quota.produce.byte_rate"),
    "fetch": Kind("kafka.client.fetch.byte_rate", "By/s", "kafka.quota.fetch.byte_rate"),
    "request": Kind("kafka.client.request.time", "%", "kafka.quota.request.percentage"),
    "controller_mutation": Kind(
        "kafka.client.controller_mutation.rate",
        "{mutation}/s",
        "kafka.quota.controller_mutation.rate",
    ),
}
THROTTLES: Final = {kind: f"kafka.client.{kind}.throttle_time" for kind in KINDS}
"""The metric of throttling of each kind."""

_OWN_VIEWS: Final = {
    "kafka.producer.produce_throttle_time": "produce",
    "kafka.consumer.fetch_throttle_time": "fetch",
    "kafka.librdkafka.throttle_time": None,
}
"""Clients' own metrics of throttling, with their kind of request; None: any kind."""


KIND: Final = Means("produce, fetch, request or controller_mutation")
RATE_UNIT: Final = Means("unit of rates and quota (UCUM)")
QUOTA: Final = Means("quota in force on each broker, in rate_unit")


class QuotaInForce(NamedTuple):
    """A quota in force for a client, and the entity it is set for."""

    entity: Entity
    limit: float


class Use(NamedTuple):
    """A client's use of one kind of request, and the quota that limits it.

    Attributes:
        client: Its user and client id.
        kind: A key of ``KINDS``.
        rate: Sums of gold of its rate.
        throttle_metric: The metric of its throttling.
        throttle: Sums of gold of its throttling.
        quota: The quota in force; None: none, or its limit was not reported.
    """

    client: Entity
    kind: str
    rate: Row
    throttle_metric: str
    throttle: Row
    quota: QuotaInForce | None


class Client(NamedTuple):
    """Throttling of a client for one kind of request, and its rate next to its quota."""

    user: Annotated[str | None, fields.USER]
    client_id: Annotated[str | None, fields.CLIENT_ID]
    kind: Annotated[str, KIND]
    throttled_us: Annotated[Bounds, Means("time in which a broker throttled it, microseconds")]
    throttle_ms_mean: Annotated[Known, Means("mean wait while throttled, milliseconds")]
    throttle_ms_max: Annotated[Known, Means(
        "maximum of the mean wait, milliseconds; the MBean averages over its samples, so one long "
        "wait among many short waits appears as less")]  # fmt: skip
    rate_mean: Annotated[Known, Means("mean rate while above 0, in rate_unit")]
    rate_max: Annotated[Known, Means("maximum total rate of the brokers, in rate_unit")]
    rate_unit: Annotated[str, RATE_UNIT]
    quota: Annotated[Known, QUOTA]
    unknown_us: Annotated[int | None, fields.UNKNOWN]


class OwnView(NamedTuple):
    """Throttling of a client by its own metrics, next to the brokers' figure.

    Attributes:
        throttled_us: Throttled time for the same kind of request. If the kind is not known, for the
            kind that brokers throttled longest.
    """

    user: Annotated[str | None, Means(
        "authenticated principal; empty: the client's own JVM was scraped")]  # fmt: skip
    client_id: Annotated[str | None, fields.CLIENT_ID]
    kind: Annotated[str | None, Means(
        "produce or fetch; empty: the client library does not report it")]  # fmt: skip
    held_back_us: Annotated[Bounds, Means(
        "time in which responses were delayed, by its own metrics, microseconds")]  # fmt: skip
    wait_ms_mean: Annotated[Known, Means("mean wait while delayed, milliseconds")]
    wait_ms_max: Annotated[Known, Means("maximum wait, milliseconds")]
    throttled_us: Annotated[Bounds, Means(
        "time in which a broker throttled that client, microseconds")]  # fmt: skip


class QuotaBroker(NamedTuple):
    """A broker at which quotas delayed responses or replication.

    Attributes:
        replication_sent_bytes: Includes a few bytes of every response to a follower.
    """

    source: Annotated[str, fields.SOURCE]
    produce_waiting_max: Annotated[Known, Means(
        "maximum number of delayed produce responses at one instant",
        Max("kafka.broker.produce.queue_size"))]  # fmt: skip
    fetch_waiting_max: Annotated[Known, Means(
        "the same of fetch responses", Max("kafka.broker.fetch.queue_size"))]  # fmt: skip
    request_waiting_max: Annotated[Known, Means(
        "the same of responses that a request quota delayed",
        Max("kafka.broker.request.queue_size"))]  # fmt: skip
    controller_mutation_waiting_max: Annotated[Known, Means(
        "the same of controller mutations",
        Max("kafka.broker.controller_mutation.queue_size"))]  # fmt: skip
    exempt_percent_mean: Annotated[Known, Means(
        "mean thread time that no quota counts, percent of one thread",
        Mean("kafka.broker.request.exempt_time"))]  # fmt: skip
    replication_sent_bytes: Annotated[Known, Means(
        "bytes of throttled replication that it sent",
        Sum("kafka.broker.leader_replication.byte_rate"))]  # fmt: skip
    replication_received_bytes: Annotated[Known, Means(
        "bytes of throttled replication that it received",
        Sum("kafka.broker.follower_replication.byte_rate"))]  # fmt: skip
    replication_moved_bytes: Annotated[Known, Means(
        "bytes that throttled moves between its log directories copied",
        Sum("kafka.broker.alter_log_dirs_replication.byte_rate"))]  # fmt: skip
    produce_throttle_ms_p99: Annotated[Known, Means(
        "maximum of the 99th percentile of the throttle time of produce requests, milliseconds",
        Max("kafka.broker.produce.throttle_time.p99"))]  # fmt: skip
    fetch_throttle_ms_p99: Annotated[Known, Means(
        "maximum of the 99th percentile of the throttle time of consumers' fetch requests, "
        "milliseconds", Max("kafka.broker.fetch_consumer.throttle_time.p99"))]  # fmt: skip


class Throttling(NamedTuple):
    """The section, longest throttled first."""

    clients: Annotated[list[Client], Means("clients with throttling or a quota")]
    own_views: Annotated[list[OwnView], Means("clients whose own metrics show delayed responses")]
    brokers: Annotated[list[QuotaBroker], Means(
        "brokers or controllers at which a quota delayed something")]  # fmt: skip
    clients_throttled: Annotated[Bounds, Means("number of throttled clients")]
    clients_known: Annotated[int | None, Means(
        "number of clients whose throttling would have been observed")]  # fmt: skip


def throttling(gold: Gold, statements: Sequence[Statement]) -> Throttling:
    """Return the section, with every client that was throttled or has a quota and a rate."""
    by_client: dict[tuple[str | None, ...], Statement] = {}
    for one in statements:
        by_client.setdefault((one.objective.metric, one.subject.user, one.subject.client_id), one)
    clients = []
    known = {
        key[1:]
        for key, one in by_client.items()
        if key[0] in THROTTLES.values() and one.attainment is not None
    }
    for use in uses(quotas(gold.subjects), gold.raised(tables.CLIENTS)):
        statement = by_client.get((use.throttle_metric, *use.client))
        if use.throttle:
            known.add(use.client)
        if not use.throttle.get("series_affected_high_us") and (use.quota is None or not use.rate):
            continue
        seen = statement is not None and statement.attainment is not None
        clients.append(
            Client(
                *use.client,
                use.kind,
                throttled_us=duration(use.throttle, "affected", absent=0 if seen else None),
                throttle_ms_mean=per_second(use.throttle, "series_affected_us"),
                throttle_ms_max=use.throttle.get("value_max"),
                rate_mean=per_second(use.rate, "affected_us"),
                rate_max=use.rate.get("max_total"),
                rate_unit=KINDS[use.kind].unit,
                quota=use.quota and use.quota.limit,
                unknown_us=None if statement is None else statement.unknown_us,
            )
        )
    clients.sort(key=lambda client: -(client.throttled_us.value or 0))
    throttled = clients_throttled((one.user, one.client_id, one.throttled_us) for one in clients)
    return Throttling(clients, _own_views(gold, clients), _brokers(gold), throttled, len(known))


def clients_throttled(rows: Iterable[tuple[str | None, str | None, Bounds]]) -> Bounds:
    """Return how many clients were throttled.

    Args:
        rows: User, client id and throttled time, once per kind of request.
    """
    by_client: defaultdict[Entity, list[Bounds]] = defaultdict(list)
    for user, client_id, throttled in rows:
        by_client[user, client_id].append(throttled)
    every = by_client.values()
    return Bounds(
        sum(any(one.value for one in own) for own in every),
        sum(any(one.low for one in own) for own in every),
        sum(any(one.high is None or one.high for one in own) for own in every),
    )


def _own_views(gold: Gold, clients: Sequence[Client]) -> list[OwnView]:
    """Return clients whose own metrics have delayed responses, the longest first."""
    views = []
    for (user, client_id), rows in gold.raised(tables.CLIENTS).items():
        for metric, kind in _OWN_VIEWS.items():
            if not (waits := rows[f"{metric}.avg"] or rows[f"{metric}.max"]):
                continue
            same = [c for c in clients if kind in (None, c.kind) and _is_same((user, client_id), c)]
            views.append(
                OwnView(
                    user,
                    client_id,
                    kind,
                    duration(waits, "affected"),
                    per_second(rows[f"{metric}.avg"], "series_affected_us"),
                    rows[f"{metric}.max"].get("value_max"),
                    same[0].throttled_us if same else Bounds(),
                )
            )
    return sorted(views, key=lambda view: -(view.held_back_us.value or 0))


def _is_same(own: Entity, client: Client) -> bool:
    """Return True if a broker throttled a client by its user, its client id or both."""
    user, client_id = own
    if user is None:  # a client does not report its principal
        return client.client_id == client_id
    return client.user in (None, user) and client.client_id in (None, client_id)


def _brokers(gold: Gold) -> list[QuotaBroker]:
    """Return brokers and controllers with delayed responses or throttled replication."""
    found = of_sources(QuotaBroker, gold.by_subject(tables.SOURCES))
    # Without a throttle Kafka counts a response to a follower, except its partitions, as sent.
    always = ("source", "exempt_percent_mean", "replication_sent_bytes")
    return [
        one for one in found if any(it for name, it in one._asdict().items() if name not in always)
    ]


def uses(known: Quotas, rates: Mapping[Entity, Mapping[str, Row]]) -> Iterator[Use]:
    """Yield the use of each kind of request by each client.

    Args:
        known: All quotas.
        rates: Sums of gold/clients by user and client id, and by metric.
    """
    for client, metrics in rates.items():
        for kind, (rate, _, quota) in KINDS.items():
            throttle = THROTTLES[kind]
            yield Use(
                client,
                kind,
                metrics.get(rate) or {},
                throttle,
                metrics.get(throttle) or {},
                quota_in_force(known, *client, quota),
            )


def quotas(subjects: Iterable[Subject]) -> Quotas:
    """Return all quotas among the subjects."""
    return {(one.user, one.client_id): one.attributes for one in subjects if one.kind == "quota"}


def quota_in_force(
    known: Quotas, user: str | None, client_id: str | None, metric: str
) -> QuotaInForce | None:
    """Return the quota in force for a client, by Kafka's order of precedence.

    None: there is none, or its limit was not reported.

    Args:
        known: All quotas.
        user: User in the client's MBean; None: the quota is by client id only.
        client_id: Client id in the client's MBean; None: the quota is by user only.
        metric: The limit, such as ``kafka.quota.produce.byte_rate``.
    """
    users = (user, DEFAULT_ENTITY) if user is not None else (None,)
    clients = (client_id, DEFAULT_ENTITY) if client_id is not None else (None,)
    for entity in ((u, c) for u in users for c in clients):
        limits = known.get(entity, {})
        if metric in limits:
            limit = limits[metric]
            return None if limit is None else QuotaInForce(entity, float(limit))
    return None


QUESTION: Final = Question(
    name="throttling",
    section="throttling",
    read="kafka.client.produce.throttle_time",
    gold=("clients",),
    judged=tuple(THROTTLES.values()),
    noun="client",
    names=("user", "client_id"),
    fact="throttling.clients",
    bad=(Rows(Client, "throttling.clients", ("throttled_us", "throttled_high_us")),),
    shows=(
        QuotaBroker,
        "kafka.client.*.throttle_time", "kafka.client.*.byte_rate", "kafka.client.request.time",
        "kafka.client.controller_mutation.rate", "kafka.quota.*",
        "kafka.producer.produce_throttle_time.*", "kafka.consumer.fetch_throttle_time.*",
        "kafka.librdkafka.throttle_time.*",
    ),
)  # fmt: skip
