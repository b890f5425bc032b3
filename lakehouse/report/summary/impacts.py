"""Title and impact of an event."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from lakehouse.core import display, metrics
from lakehouse.report import figures
from lakehouse.report.figures import Facts, Row, value_at
from lakehouse.report.summary import texts
from lakehouse.report.summary.texts import Frame, Text, capital, joined, line, listed, text, words

_HITS: Final = 3
_REQUESTS: Final = ("produce", "fetch")
_LAG_ENDED_US: Final = 15 * 60 * 1_000_000
"""The longest time from the end of a lag to a loss that it led to."""

_AGES: Final = ("kafka.group.time_lag.low", "kafka.group.time_lag.high")
_RECORDS: Final = {
    "kafka.group.lag": "impact.records",
    "kafka.group.partition_lag": "impact.records_of_partition",
}
_COUNTED: Final = {
    "kafka.broker.produce_errors.not_enough_replicas": "counted.refused",
    "kafka.broker.produce_errors.not_enough_replicas_after_append": "counted.refused",
    "kafka.broker.under_min_isr_partitions": "counted.under_min_isr",
    "kafka.controller.offline_partitions": "counted.offline",
}
"""Titles of events without topics, by a metric of their incidents; the first counts."""
_SEGMENTS: Final = "kafka.topic.remote_delete_lag.segments"
_OWN_WORDS: Final = {
    ("tiered", "delete"): "deletion",
    ("replication", "kafka.partition.unclean_leader"): "unclean_leader",
    ("replication", "kafka.partition.without_spare"): "without_spare",
    ("other", "kafka.broker.offline_log_directories"): "log_directories",
    ("other", "kafka.broker.request_handler.idle"): "request_handlers",
}
"""Texts for a part of a kind, by kind and metric or way."""


class Scene(NamedTuple):
    """Facts of the report that an event's words depend on.

    Attributes:
        frame: The report's period.
        has_lag: Whether the lag of groups is collected.
        lags: The events of lagging groups.
        least: Most unread records of a partition, at least, by group and topic.
        worst: Greatest value of the incidents, by number of the event and metric.
    """

    frame: Frame
    has_lag: bool
    lags: Sequence[Row]
    least: Mapping[tuple[object, object], float]
    worst: Mapping[tuple[int, str], float]


def scene_of(facts: Facts, frame: Frame) -> Scene:
    """Return the scene of a report's events."""
    asked = {row["question"]: row.get("state") for row in facts.get("answers") or ()}
    worst: dict[tuple[int, str], float] = {}
    for row in facts.get("incidents") or ():
        key = row["event"], row["metric"]
        worst[key] = max(worst.get(key, row["worst"]), row["worst"])
    lags = [row for row in facts.get("events") or () if row["kind"] == "consumer_lag"]
    return Scene(frame, asked.get("lag") != "not_collected", lags, _least(facts), worst)


def _least(facts: Facts) -> dict[tuple[object, object], float]:
    least: dict[tuple[object, object], float] = {}
    for row in value_at(facts, "consumer_lag.partitions") or ():
        key = row["group"], row["topic"]
        least[key] = max(least.get(key, 0), row.get("records_low") or 0)
    return least


def lag_before(row: Row, scene: Scene) -> Row | None:
    """Return the lag of the group that lost unread messages, up to the loss; None without one."""
    start, _ = figures.span_of(row, "from", "to")
    for lag in scene.lags if row["kind"] == "loss" else ():
        began, ended = figures.span_of(lag, "from", "to")
        if lag.get("group") == row.get("group") and began <= start <= ended + _LAG_ENDED_US:
            return lag
    return None


def size(row: Row) -> Row:
    """Return the figures of an event's kind."""
    return row.get("size") or {}


def topics(row: Row) -> Text:
    """Return the topics of an event; empty without any."""
    return listed(texts.names(row.get("topics") or ()))


def subject(row: Row) -> Text:
    """Return the subject of an event that is of one subject, otherwise its topics."""
    return topics(row) if row.get("topics") else texts.subject(row)


def title(row: Row, scene: Scene) -> Text:
    """Return an event's title: subject and verb."""
    if row["kind"] == "availability":
        return _availability(row) if row.get("topics") else (_counted(row, scene),)
    kind = kind_of(row)
    if kind == "consumer_lag" and {*_worst_of(row, scene)} == {metrics.PARTITION_LAG}:
        kind = "partition_lag"
    return text(f"event_title.{kind}", **values(row))


def kind_of(row: Row) -> str:
    """Return the kind of an event, as words.yaml has it."""
    kind = _OWN_WORDS.get((row["kind"], str(row.get("of"))), str(row["kind"]))
    return kind if kind == "availability" or words(f"event_title.{kind}") else "other"


def values(row: Row) -> dict[str, Any]:
    """Return the names and figures that sentences on an event have."""
    of, whole = str(row.get("of") or ""), subject(row)
    return {
        "topics": whole if row.get("group") is None else topics(row),
        "group": _name(row.get("group")) or whole,
        "client": texts.subject({**row, "topic": None}),
        "source": _name(row.get("source")) or whole,
        "subject": whole,
        "request": _request(of),
        "quota": words(f"throttled.{of}"),
        **lost(row),
    }


def lost(row: Row) -> dict[str, str]:
    """Return the messages that an event lost at most; at least where that is not known."""
    least, most = (size(row).get(f"offsets_{bound}") for bound in ("low", "high"))
    known = "" if most is not None or not least else display.count(least)
    return {"most": "" if most is None else display.count(most), "least": known}


def bad_state(row: Row) -> str:
    """Return the state that the partitions of an event were in."""
    kinds = {one["kind"] for one in row.get("hits") or ()}
    return "leaderless" if kinds == {"leaderless"} else "under_min_isr"


def cause_of(rows: Sequence[Row]) -> Text:
    """Return the cause that availability events have in common, as a subject; empty: not known."""
    kind = rows[0]["cause"]["kind"]
    sources = texts.names(one for row in rows for one in row["cause"].get("sources") or ())
    number = len(rows) if kind == "rolling_restart" else max(len(rows), len(sources))
    return text(f"hit.{kind}", sources=listed(sources), number=number)


def _availability(row: Row) -> Text:
    if cause := cause_of([row]):
        return capital(text("event_title.availability", cause=cause, topics=topics(row)))
    return text(f"event_title.{bad_state(row)}", topics=topics(row))


def _counted(row: Row, scene: Scene) -> str:
    """Return the title of an event that brokers or controllers counted, without a topic."""
    own = _worst_of(row, scene)
    return words(next((name for one, name in _COUNTED.items() if one in own), "counted.other"))


def _request(of: str) -> str:
    return words(f"request.{next((one for one in _REQUESTS if one in of), 'other')}")


def _name(value: object) -> Text:
    return () if value is None else (figures.name(value),)


def impact(row: Row, scene: Scene) -> Text:
    """Return the impact of an event, with counts; empty where the facts do not have it."""
    write = _IMPACTS.get(row["kind"])
    return write(row, scene) if write else ()


def _of_loss(row: Row, _: Scene) -> Text:
    return text("impact.loss", partitions=size(row).get("partitions"), topics=topics(row))


def _of_throttling(row: Row, _: Scene) -> Text:
    mean, most = (_ms(size(row).get(f"throttle_ms_{name}")) for name in ("mean", "max"))
    return text("impact.throttling", mean=mean, most=most)


def _of_tiering(row: Row, scene: Scene) -> Text:
    if row.get("of") == "delete":
        segments = scene.worst.get((row["number"], _SEGMENTS))
        return text("impact.deletion", segments=None if segments is None else int(segments))
    waited = size(row).get("max_bytes")
    return text("impact.upload", size=display.size(waited) if waited is not None else "")


def _of_lag(row: Row, scene: Scene) -> Text:
    """Return the greatest lag, in records or as an age, by the metric that has incidents."""
    own = _worst_of(row, scene)
    ages = [own[metric] for metric in _AGES if metric in own]
    age = display.length(round(max(ages) * 1e6)) if ages else ""
    records = [(name, own[metric]) for metric, name in _RECORDS.items() if metric in own]
    least = max((scene.least.get((row.get("group"), one), 0) for one in row["topics"]), default=0)
    most = [
        text(name, records=_between(least if name.endswith("partition") else 0, worst))
        for name, worst in records[:1]
    ]
    return joined(*most, text("impact.age", age=age), between=" ")


def _worst_of(row: Row, scene: Scene) -> dict[str, float]:
    """Return the greatest value of an event's incidents by metric."""
    return {
        metric: worst for (event, metric), worst in scene.worst.items() if event == row["number"]
    }


def _between(low: float, high: float) -> str:
    """Return a number that a histogram gives between two bounds."""
    if 0 < low < high:
        return display.rough_between(low, high)
    return line("amount.up_to", amount=display.rough(high, "up"))


def _of_latency(row: Row, _: Scene) -> Text:
    return text("impact.latency", most=_ms(size(row).get("max_value")))


def _of_other(row: Row, _: Scene) -> Text:
    return () if row.get("incidents") else text("impact.other")


def _hits(row: Row, _: Scene) -> Text:
    hits = row.get("hits") or ()
    shown = [_hit(one) for one in hits[:_HITS]]
    if more := len({one["topic"] for one in hits[_HITS:]}):
        shown.append(text("impact.more", count=more))
    return joined(joined(*shown, between="; "), (".",)) if shown else ()


def _hit(hit: Row) -> Text:
    values: dict[str, Any] = {
        "count": hit["partitions"],
        "of": hit.get("of"),
        "topic": figures.name(hit["topic"]),
        "effect": words(f"effect.{hit['kind']}") or display.line(hit["kind"], 40),
        "most": hit["most"] if (hit.get("most") or hit["partitions"]) < hit["partitions"] else None,
    }
    return text("impact.hit" if hit.get("of") is not None else "impact.hit_of_unknown", **values)


def _ms(value: float | None) -> str:
    return "" if value is None else line("amount.ms", count=display.count(round(value)))


_IMPACTS: Final[dict[str, Callable[[Row, Scene], Text]]] = {
    "availability": _hits,
    "replication": _hits,
    "loss": _of_loss,
    "throttling": _of_throttling,
    "tiered": _of_tiering,
    "consumer_lag": _of_lag,
    "latency": _of_latency,
    "other": _of_other,
}
