"""Availability, latency and traffic of the brokers, by their own counts and measurements.

Answers are counters; see ``gold_figures`` for their bounds. The unread time of a broker is reported
next to them. A broker that is down counts nothing, but the counts between its last reading and its
end are lost. Then the figure has no high bound, and the share of good answers no low bound.
"""

import re
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from math import fsum
from typing import Annotated, Final, NamedTuple, TypeVar

from lakehouse import tables
from lakehouse.core.metrics import LEADERLESS, UNAVAILABLE
from lakehouse.core.periods import length
from lakehouse.report.facts import fields
from lakehouse.report.facts.fields import (
    Bounds,
    Known,
    Means,
    Question,
    Rows,
    total,
)
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.gold_figures import counted, nothing, unread, unseen_times
from lakehouse.report.facts.sections.replication import time_of_any
from lakehouse.slo.sla_statement import Statement, unknown_of
from lakehouse.slo.trends import NO_WEEKS, Weeks

ANSWERS: Final = {"produce": "kafka.broker.produce.answers", "fetch": "kafka.broker.fetch.answers"}
P99: Final = {
    "produce": "kafka.broker.produce.time.p99",
    "fetch": "kafka.broker.fetch_consumer.time.p99",
}
TRAFFIC: Final = {
    "records_in": "kafka.topic.messages_in",
    "bytes_in": "kafka.topic.bytes_in",
    "bytes_out": "kafka.topic.bytes_out",
    "bytes_rejected": "kafka.topic.bytes_rejected",
    "produce_requests": "kafka.topic.produce.requests",
}
_RATES: Final = ("kafka.client.produce.byte_rate", "kafka.client.fetch.byte_rate")
GOOD: Final = "NONE"
"""Kafka's error code of a success."""

K = TypeVar("K", bound=Hashable)


REQUEST: Final = Means("produce or fetch")


class Answers(NamedTuple):
    """Partitions that a broker answered for one kind of request."""

    source: Annotated[str | None, Means("broker; empty: all brokers")]
    request: Annotated[str, REQUEST]
    answers: Annotated[Bounds, Means("partitions answered")]
    errors: Annotated[Bounds, Means("partitions answered with an error")]
    good: Annotated[Bounds, Means("share without an error, 0 to 1")]
    unknown_us: Annotated[int | None, fields.UNKNOWN]


class Error(NamedTuple):
    """Partitions that brokers answered with one error."""

    request: Annotated[str, REQUEST]
    error: Annotated[str, Means("Kafka's name of the error code")]
    answers: Annotated[Bounds, Means("partitions answered with this error")]


class Latency(NamedTuple):
    """Time in which a broker's own p99 of a kind of request was above an objective's threshold."""

    source: Annotated[str, fields.SOURCE]
    request: Annotated[str, REQUEST]
    threshold_ms: Annotated[Known, Means(
        "threshold of the objective, milliseconds; empty: no objective")]  # fmt: skip
    slow_us: Annotated[Bounds, Means(
        "time in which the broker's own p99 was above the threshold, microseconds")]  # fmt: skip
    p99_ms_max: Annotated[Known, Means("maximum p99 of all scrapes, milliseconds")]
    unknown_us: Annotated[int | None, fields.UNKNOWN]


class Traffic(NamedTuple):
    """Records and bytes that clients wrote to a topic and read from it."""

    topic: Annotated[str, fields.TOPIC]
    records_in: Annotated[Bounds, Means("records written")]
    bytes_in: Annotated[Bounds, Means("bytes written")]
    bytes_out: Annotated[Bounds, Means("bytes sent to consumers")]
    bytes_rejected: Annotated[Bounds, Means("bytes of rejected records")]
    produce_requests: Annotated[Bounds, Means(
        "produce requests, counted once for each partition in them")]  # fmt: skip
    unknown_us: Annotated[int | None, Means(
        "time in which not every broker was observed, microseconds")]  # fmt: skip


class ClientTraffic(NamedTuple):
    """Estimated traffic of a client: its mean rates times their time."""

    user: Annotated[str | None, fields.USER]
    client_id: Annotated[str | None, fields.CLIENT_ID]
    bytes_in: Annotated[Known, Means("bytes written, estimated from rates")]
    bytes_out: Annotated[Known, Means("bytes read, estimated from rates")]


class AnswersOfWeek(NamedTuple):
    """Answers of all brokers in an earlier week."""

    week: Annotated[str, Means("ISO week")]
    answers: Annotated[Known, Means("partitions answered")]
    errors: Annotated[Known, Means("partitions answered with an error")]


class Service(NamedTuple):
    """The section."""

    leaderless_us: Annotated[Bounds, Means(
        "time in which any partition had no leader, microseconds")]  # fmt: skip
    unknown_us: Annotated[int | None, Means(
        "unknown time of the topic with most of it, microseconds")]  # fmt: skip
    requests: Annotated[list[Answers], Means("kinds of request, on all brokers")]
    brokers: Annotated[list[Answers], Means("kinds of request on each broker")]
    errors: Annotated[list[Error], Means("errors, most frequent first")]
    latency: Annotated[list[Latency], Means("latency of each broker")]
    topics: Annotated[list[Traffic], Means("topics with traffic, the busiest first")]
    clients: Annotated[list[ClientTraffic], Means("clients with a broker-side rate metric")]
    weeks: Annotated[list[AnswersOfWeek], Means("earlier weeks with answers, oldest first")]


def service(gold: Gold, statements: Sequence[Statement], weeks: Weeks = NO_WEEKS) -> Service:
    """Return the section; lists are empty if no agent reads their family."""
    requests, brokers, errors = _answers(gold)
    unknown = unknown_of(statements, UNAVAILABLE).values()
    clients = gold.by_subject(tables.CLIENTS)
    return Service(
        time_of_any(gold, (LEADERLESS,), LEADERLESS),
        max(unknown, default=None),
        requests,
        brokers,
        errors,
        _latency(gold, statements),
        _topics(gold),
        [
            ClientTraffic(*client, *(rows[rate].get("value_seconds") for rate in _RATES))
            for client, rows in sorted(clients.items(), key=lambda one: str(one[0]))
            if any(rows[rate] for rate in _RATES)
        ],
        _weeks(gold, weeks),
    )


def _weeks(gold: Gold, weeks: Weeks) -> list[AnswersOfWeek]:
    """Return the answers as they were counted, without the bounds that this week's have."""
    sums = gold.by_week(tables.LABELLED, weeks.periods, tuple(ANSWERS.values()))
    found = []
    for name, rows in zip(weeks.names, sums, strict=True):
        answers = fsum(row["increase"] for row in rows)
        errors = fsum(row["increase"] for row in rows if error_of(row["labels"]) != GOOD)
        if answers:
            found.append(AnswersOfWeek(name, answers, errors))
    return found


def _answers(gold: Gold) -> tuple[list[Answers], list[Answers], list[Error]]:
    """Return answers of all brokers and of each, and errors by code, most first."""
    request_of = {metric: request for request, metric in ANSWERS.items()}
    parts = counted(
        gold, tables.LABELLED, tuple(request_of),
        lambda row: (request_of[row["metric"]], row["source"], error_of(row["labels"])),
    )  # fmt: skip
    # Brokers that answered nothing at all, not even followers: rather they were rolled up before
    # there was a table of answers.
    away = unseen_times(gold, *ANSWERS.values()) if parts else {}
    brokers = [
        _of(parts, request, source, us, nothing(gold, ANSWERS[request], source))
        for source, us in sorted(away.items())
        for request in ANSWERS
    ]
    unread_us = sum(away.values())
    none = {request: nothing(gold, metric) for request, metric in ANSWERS.items()}
    whole = [_of(parts, one, None, unread_us, none[one]) for one in ANSWERS if away]
    by_error: defaultdict[tuple[str, str], list[Bounds]] = defaultdict(list)
    for (request, _, error), it in sorted(parts.items()):
        if error != GOOD:
            by_error[request, error].append(it)
    errors = [Error(*one, total([none[one[0]], *own])) for one, own in by_error.items()]
    errors.sort(key=lambda one: -(one.answers.high or one.answers.value or 0))
    return whole, brokers, [one for one in errors if _is_any(one.answers)]


def _of(
    parts: Mapping[tuple[str, str, str], Bounds],
    request: str,
    source: str | None,
    unknown_us: int,
    none: Bounds,
) -> Answers:
    own = {key: it for key, it in parts.items() if key[0] == request and source in {None, key[1]}}
    good = total([none, *(it for key, it in own.items() if key[2] == GOOD)])
    errors = total([none, *(it for key, it in own.items() if key[2] != GOOD)])
    value, low = _share(good.value, errors.value), _share(good.low, errors.high)
    # However many answers were not counted may have been good.
    unbounded = good.high is None and value is not None
    share = Bounds(value, low, 1.0 if unbounded else _share(good.high, errors.low))
    return Answers(source, request, total([good, errors]), errors, share, unknown_us)


def _share(good: float | None, bad: float | None) -> float | None:
    return None if good is None or bad is None or not good + bad else good / (good + bad)


def error_of(labels: str) -> str:
    """Return the error's name: a broker's text, in which gold escapes some characters."""
    return re.sub(r"\\(.)", r"\1", labels.removeprefix("error="))


def _latency(gold: Gold, statements: Sequence[Statement]) -> list[Latency]:
    """Return a row for each objective on a p99; without one its maximum."""
    rows = gold.by_subject(tables.SOURCES, tuple(P99.values()))
    found = []
    for request, metric in P99.items():
        unseen = unseen_times(gold, metric)
        judged = [
            (str(one.subject.source), one.objective.threshold, _bad(one), one.unknown_us)
            for one in statements
            if one.objective.metric == metric
        ]
        seen = [(source, None, Bounds(), unknown) for source, unknown in sorted(unseen.items())]
        for source, limit, slow, unknown in judged or seen:
            most = rows[source][metric].get("value_max")
            found.append(Latency(source, request, limit, slow, most, unknown))
    found.sort(key=lambda one: (-(one.slow_us.value or 0), -(one.p99_ms_max or 0)))
    return found


def _bad(one: Statement) -> Bounds:
    return Bounds() if one.attainment is None else Bounds(*one.times[1:])


def _topics(gold: Gold) -> list[Traffic]:
    """Return every topic that was written or read, the busiest first."""
    metrics = tuple(TRAFFIC.values())
    away = [spans for one in metrics for spans in unread(gold, one).values()]
    if not away:
        return []
    parts = counted(gold, tables.TOPICS, metrics, lambda row: (row["topic"], row["metric"]))
    # Any broker may have led the topic in time in which it was not read.
    unknown = length(span for spans in away for span in spans)
    none = {one: nothing(gold, one) for one in metrics}
    topics = [
        Traffic._make([topic, *(parts.get((topic, one), none[one]) for one in metrics), unknown])
        for topic in sorted({topic for topic, _ in parts})
    ]
    topics.sort(key=lambda one: -((one.bytes_in.value or 0) + (one.bytes_out.value or 0)))
    return [one for one in topics if any(map(_is_any, one[1:-1]))]


def _is_any(figure: Bounds) -> bool:
    """Return True if anything was counted, in the period or just after it."""
    return bool(figure.value or figure.high)


ANSWERS_QUESTION: Final = Question(
    name="availability",
    section="requests",
    read="kafka.broker.produce.answers",
    gold=("labelled", "incidents"),
    fact="service.requests",
    needs_rows=True,
    bad=(
        Rows(Answers, "service.requests", ("errors", "errors_high")),
        Rows(Service, "service", ("leaderless_us", "leaderless_high_us")),
    ),
    open=(Rows(Answers, "service.requests", ("errors_high", "good_low")),),
    unknown=(Rows(Answers, "service.brokers", ("unknown_us",)),),
    shows=("kafka.broker.produce.answers", "kafka.broker.fetch.answers"),
)

LATENCY_QUESTION: Final = Question(
    name="latency",
    section="requests",
    read="kafka.broker.produce.time.p99",
    gold=("sources", "sli"),
    fact="service.latency",
    needs_rows=True,
    bad=(Rows(Latency, "service.latency", ("slow_us", "slow_high_us")),),
    open=(Rows(Latency, "service.latency", ("p99_ms_max",)),),
    unknown=(Rows(Latency, "service.latency", ("unknown_us",)),),
    shows=("kafka.broker.produce.time.p99", "kafka.broker.fetch_consumer.time.p99"),
)

TRAFFIC_QUESTION: Final = Question(
    name="traffic",
    section="requests",
    read="kafka.topic.bytes_in",
    gold=("topics",),
    fact="service.topics",
    has_figures=True,
    open=(
        Rows(Traffic, "service.topics", ("records_in_high", "bytes_in_high", "bytes_out_high")),
    ),
    unknown=(Rows(Traffic, "service.topics", ("unknown_us",)),),
    shows=(
        "kafka.topic.bytes_in", "kafka.topic.bytes_out", "kafka.topic.bytes_rejected",
        "kafka.topic.messages_in", "kafka.topic.produce.requests",
    ),
)  # fmt: skip
