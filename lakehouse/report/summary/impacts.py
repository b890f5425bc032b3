"""Title and impact of an event."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from lakehouse.core import display
from lakehouse.report import figures
from lakehouse.report.figures import Facts, Row
from lakehouse.report.summary import amounts
from lakehouse.report.summary.frame import Frame
from lakehouse.report.summary.model import Text
from lakehouse.report.summary.texts import joined, line, listed, text, words

_HITS: Final = 3
_REQUESTS: Final = ("produce", "fetch")
_AGE: Final = "kafka.group.time_lag"
_LOG_DIRECTORIES: Final = "kafka.broker.offline_log_directories"


class Scene(NamedTuple):
    """The report that an event is in, and whether the lag of groups is collected in it."""

    frame: Frame
    has_lag: bool


def lag_is_known(facts: Facts) -> bool:
    """Return True unless the lag of groups is not collected."""
    asked = {row["question"]: row.get("state") for row in facts.get("answers") or ()}
    return asked.get("lag") != "not_collected"


def size(row: Row) -> Row:
    """Return the figures of an event's kind."""
    return row.get("size") or {}


def topics(row: Row) -> Text:
    """Return the topics of an event."""
    return listed(amounts.names(row.get("topics") or ()))


def subject(row: Row) -> Text:
    """Return the subject of an event that is of one subject, otherwise its topics."""
    return topics(row) if row.get("topics") else amounts.subject(row)


def title(row: Row) -> Text:
    """Return an event's title: subject and verb."""
    if row["kind"] == "availability":
        return _availability(row)
    return text(f"event_title.{kind_of(row)}", **values(row))


def kind_of(row: Row) -> str:
    """Return the kind of an event, as words.yaml has it."""
    kind, of = row["kind"], row.get("of")
    if kind == "tiered" and of == "delete":
        return "deletion"
    if kind == "replication" and of == _LOG_DIRECTORIES:
        return "log_directories"
    return kind if words(f"event_title.{kind}") else "other"


def values(row: Row) -> dict[str, Any]:
    """Return the names and figures that sentences on an event have."""
    of = str(row.get("of") or "")
    return {
        "topics": topics(row),
        "group": _name(row.get("group")),
        "client": amounts.subject({**row, "topic": None}),
        "source": _name(row.get("source")),
        "subject": subject(row),
        "request": _request(of),
        "quota": words(f"throttled.{of}"),
        **lost(row),
    }


def lost(row: Row) -> dict[str, str]:
    """Return the messages that an event lost at most; at least where that is not known."""
    least, most = (size(row).get(f"offsets_{bound}") for bound in ("low", "high"))
    known = "" if most is not None or least is None else display.count(least)
    return {"most": "" if most is None else display.count(most), "least": known}


def fell(row: Row) -> str:
    """Return the verb for the partitions of an event."""
    kinds = {one["kind"] for one in row.get("hits") or ()}
    return words("lead.leaderless" if kinds == {"leaderless"} else "lead.fell")


def _availability(row: Row) -> Text:
    cause = row["cause"]
    name = f"hit.{cause['kind']}"
    sources = listed(amounts.names(cause.get("sources") or ()))
    name = name if words(name) else "hit.not_known"
    return text(name, topics=topics(row), sources=sources, fell=fell(row))


def _request(of: str) -> str:
    return words(f"request.{next((one for one in _REQUESTS if one in of), 'other')}")


def _name(value: object) -> Text:
    return () if value is None else (figures.name(value),)


def impact(row: Row) -> Text:
    """Return the impact of an event, with counts; empty where the facts do not have it."""
    write = _IMPACTS.get(row["kind"])
    return write(row) if write else ()


def _of_loss(row: Row) -> Text:
    return text("impact.loss", partitions=size(row).get("partitions"), topics=topics(row))


def _of_throttling(row: Row) -> Text:
    mean, most = (_ms(size(row).get(f"throttle_ms_{name}")) for name in ("mean", "max"))
    return text("impact.throttling", mean=mean, most=most)


def _of_tiering(row: Row) -> Text:
    if row.get("of") == "delete":
        segments = size(row).get("max_value")
        return text("impact.deletion", segments=None if segments is None else int(segments))
    waited = size(row).get("max_bytes")
    return text("impact.upload", size=display.size(waited) if waited is not None else "")


def _of_lag(row: Row) -> Text:
    most = size(row).get("max_value")
    if most is None:
        return ()
    if str(row.get("of") or "").startswith(_AGE):
        return text("impact.age", age=display.length(round(most * 1e6), "up"))
    return text("impact.records", records=display.count(most))


def _of_latency(row: Row) -> Text:
    return text("impact.latency", most=_ms(size(row).get("max_value")))


def _hits(row: Row) -> Text:
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
    return "" if value is None else f"{line('amount.ms', count=display.count(round(value)))}"


_IMPACTS: Final[dict[str, Callable[[Row], Text]]] = {
    "availability": _hits,
    "replication": _hits,
    "loss": _of_loss,
    "throttling": _of_throttling,
    "tiered": _of_tiering,
    "consumer_lag": _of_lag,
    "latency": _of_latency,
    "other": lambda _: text("impact.other"),
}
