"""What a report begins with: could clients produce and fetch, how fast and how much."""

from collections.abc import Sequence
from typing import Any, Final

from lakehouse.core import display
from lakehouse.core.metrics import families
from lakehouse.report import facts_lookup, figures, resources
from lakehouse.report.page import cells, sections

_ANSWERS: Final = "kafka.broker.produce.answers"
_TRAFFIC: Final = "kafka.topic.bytes_in"


def answers(facts: figures.Facts) -> tuple[sections.Section, ...]:
    """Every question that the report answers, in the order of the page."""
    return (availability(facts), latency(facts), *sections.questions(facts), traffic(facts))


def first(answered: Sequence[sections.Section]) -> dict[str, sections.Section | None]:
    """The questions of the first screen, each with its section; None where the page has none."""
    by_anchor = {one.anchor: one for one in answered}
    first_ = resources.declared("page.yaml")["first"]
    return {question: by_anchor.get(anchor) for question, anchor in first_.items()}


def availability(facts: figures.Facts) -> sections.Section:
    """Answers and errors, time without a leader, and time in which brokers were not read."""
    found = facts.get("service") or {}
    brokers, errors = _rows(facts, "brokers"), _rows(facts, "errors")
    away = {row["source"]: row["unknown_us"] for row in brokers if row.get("unknown_us")}
    values = {
        "off": _off(facts, _ANSWERS),
        "good": [row for row in _rows(facts, "requests") if row.get("good") is not None],
        "errors": errors[:3],
        "word_of": cells.word_of,
        "headless": figures.time(found, "leaderless"),
        "away": away,
    }
    by_broker: dict[str, dict[str, Any]] = {}
    for row in brokers:
        by_broker.setdefault(row["source"], {"source": row["source"]})[row["request"]] = row
    return sections.section("availability", values, answers=by_broker.values(), errors=errors)


def latency(facts: figures.Facts) -> sections.Section:
    """Time in which a broker's own p99 was above the limit of an objective."""
    rows = _rows(facts, "latency")
    limited = [row for row in rows if row.get("threshold_ms") is not None]
    slow = [row for row in limited if row.get("slow_high_us")]
    slow.sort(key=lambda row: figures.badness(row, "slow"), reverse=True)
    highest = max(rows, key=lambda row: row.get("p99_ms_max") or 0, default=None)
    values = {
        "off": _off(facts, _ANSWERS),
        "slow": slow,
        "has_limit": bool(limited),
        "doubtful": any(row.get("unknown_us") for row in rows),
        "highest": highest,
        "request": cells.word_of((slow or [highest or {}])[0], "request", "request"),
    }
    return sections.section("latency", values, latency=limited or rows)


def traffic(facts: figures.Facts) -> sections.Section:
    """How much was written and read, by topic and by client."""
    topics, clients = _rows(facts, "topics"), _rows(facts, "clients")
    sums = {
        key: sum(row.get(key) or 0 for row in topics)
        for key in ("records_in", "bytes_in", "bytes_out")
    }
    unknown = max((row.get("unknown_us") or 0 for row in topics), default=0)
    busiest = figures.name(topics[0]["topic"]).text if topics else ""
    values = {"off": _off(facts, _TRAFFIC), **sums, "busiest": busiest, "unknown": unknown}
    return sections.section("traffic", values, traffic=topics, client_traffic=clients)


def _rows(facts: figures.Facts, name: str) -> list[figures.Row]:
    return list(facts_lookup.value_at(facts, f"service.{name}") or ())


def _off(facts: figures.Facts, metric: str) -> str:
    """Why nothing is known of a metric, or empty: no agent reads its family, or none could."""
    if not facts_lookup.nothing_seen(facts, metric):
        return ""
    if facts_lookup.is_out_of_reach(facts, metric):
        return resources.sentence("unread", out_of_reach=True)
    (family,) = families(metric)
    attempted = {row.get("family") for row in facts_lookup.rows_at(facts, "coverage.sources")}
    known = {"family": display.line(family), "is_on": family in attempted}
    return resources.sentence("off", **known)
