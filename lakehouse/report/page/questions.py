"""The questions that a report answers: the golden signals, and those that page.yaml declares."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from string import Formatter
from typing import Any, Final

from lakehouse.core import display
from lakehouse.core.metrics import families
from lakehouse.report import facts_lookup, figures, resources
from lakehouse.report.figures import Answer, Facts, Figure, Name, Row
from lakehouse.report.page import cells
from lakehouse.report.page.page_tables import in_words, table
from lakehouse.report.page.sections import Section, section

_ANSWERS: Final = "kafka.broker.produce.answers"
_TRAFFIC: Final = "kafka.topic.bytes_in"


def answers(facts: Facts) -> tuple[Section, ...]:
    """Every question that the report answers, in the order of the page."""
    return (availability(facts), latency(facts), *questions(facts), traffic(facts))


def first(answered: Sequence[Section]) -> dict[str, Section | None]:
    """The questions of the first screen, each with its section; None where the page has none."""
    by_anchor = {one.anchor: one for one in answered}
    first_ = resources.declared("page.yaml")["first"]
    return {question: by_anchor.get(anchor) for question, anchor in first_.items()}


def availability(facts: Facts) -> Section:
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
    return section("availability", values, answers=by_broker.values(), errors=errors)


def latency(facts: Facts) -> Section:
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
    return section("latency", values, latency=limited or rows)


def traffic(facts: Facts) -> Section:
    """How much was written and read, by topic and by client."""
    topics, clients = _rows(facts, "topics"), _rows(facts, "clients")
    sums = {
        key: sum(row.get(key) or 0 for row in topics)
        for key in ("records_in", "bytes_in", "bytes_out")
    }
    unknown = max((row.get("unknown_us") or 0 for row in topics), default=0)
    busiest = figures.name(topics[0]["topic"]).text if topics else ""
    values = {"off": _off(facts, _TRAFFIC), **sums, "busiest": busiest, "unknown": unknown}
    return section("traffic", values, traffic=topics, client_traffic=clients)


def _rows(facts: Facts, name: str) -> list[Row]:
    return list(facts_lookup.value_at(facts, f"service.{name}") or ())


def _off(facts: Facts, metric: str) -> str:
    """Why nothing is known of a metric, or empty: no agent reads its family, or none could."""
    if not facts_lookup.nothing_seen(facts, metric):
        return ""
    if facts_lookup.is_out_of_reach(facts, metric):
        return resources.sentence("unread", out_of_reach=True)
    (family,) = families(metric)
    attempted = {row.get("family") for row in facts_lookup.rows_at(facts, "coverage.sources")}
    known = {"family": display.line(family), "is_on": family in attempted}
    return resources.sentence("off", **known)


def questions(facts: Facts) -> tuple[Section, ...]:
    """The questions of page.yaml, in its order."""
    specs = resources.declared("page.yaml")["questions"]
    return tuple(_question(facts, anchor, spec) for anchor, spec in specs.items())


def _question(facts: Facts, anchor: str, spec: Mapping[str, Any]) -> Section:
    tables = [
        (table(name), list(facts_lookup.rows_at(facts, path)))
        for name, path in spec["tables"].items()
    ]
    first, rows = tables[0]
    answer = _on_worst(spec, rows, first.badness)
    if not answer and facts_lookup.nothing_seen(facts, spec["read"]):
        out_of_reach = facts_lookup.is_out_of_reach(facts, spec["read"])
        answer = (resources.sentence("unread", out_of_reach=out_of_reach),)
    elif not answer:
        doubtful = any(row.get("unknown_us", 0) != 0 for row in rows)
        answer = (spec["quiet"], " Some time was not seen, see the table." if doubtful else "")
    for more in spec.get("also", ()):
        if added := _on_worst(more, facts_lookup.rows_at(facts, spec["tables"][more["table"]])):
            answer = (*answer, " ", *added)
    texts = {key: spec[key] for key in ("short", "title", "kip", "charts")}
    listings = tuple(spec_.listing(rows_) for spec_, rows_ in tables)
    notes = [spec["meaning"]]
    if shortest := facts_lookup.shortest_us(facts, spec["read"]):
        length = display.duration(shortest, "up")
        notes.append(f"What lasted less than {length} may have come and gone between two readings.")
    return Section(anchor, **texts, answer=answer, notes=tuple(notes), listings=listings)


def _on_worst(
    spec: Mapping[str, Any], rows: Iterable[Row], badness: Callable[[Row], Any] | None = None
) -> Answer:
    """The sentence on the worst of the rows that are bad, by default by these figures; or none."""

    def figures_of(row: Row) -> list[float]:
        return [facts_lookup.value_at(row, key) or 0 for key in spec["bad"]]

    bad = [row for row in rows if any(figure > 0 for figure in figures_of(row))]
    if not bad:
        return ()
    others = resources.sentence("others", number=len(bad) - 1, words_=spec["others"])
    return (*_filled(spec["answer"], max(bad, key=badness or figures_of)), others)


def _filled(template: str, row: Row) -> Answer:
    """A sentence about a row, from a template with column definitions of page.yaml in braces."""
    parts: list[str | Name | Figure] = []
    for literal, definition, *_ in Formatter().parse(template):
        parts += [literal, *(in_words(definition, row) if definition else ())]
    return tuple(parts)
