"""The questions that a report answers: the golden signals, and those that page.yaml declares."""

from collections.abc import Mapping, Sequence
from string import Formatter
from typing import Any

from lakehouse.core import display
from lakehouse.report import evidence, facts_lookup, figures, resources
from lakehouse.report.evidence import Evidence, Question, Rows
from lakehouse.report.facts import build
from lakehouse.report.facts.kafka.min_isr import LEADERS, QUESTION as MIN_ISR
from lakehouse.report.figures import Answer, Facts, Figure, Name, Row
from lakehouse.report.page import cells
from lakehouse.report.page.page_tables import in_words, rank, table
from lakehouse.report.page.sections import Section, section


def answers(facts: Facts) -> tuple[Section, ...]:
    """Every question that the report answers, in the order of the page."""
    facts = facts_lookup.with_totals(facts)
    return (availability(facts), latency(facts), *questions(facts), traffic(facts))


def first(answered: Sequence[Section]) -> dict[str, Section | None]:
    """The questions of the first screen, each with its section; None where the page has none."""
    by_anchor = {one.anchor: one for one in answered}
    first_ = resources.declared("page.yaml")["first"]
    return {question: by_anchor.get(anchor) for question, anchor in first_.items()}


def availability(facts: Facts) -> Section:
    """Answers and errors, time without a leader, and time in which brokers were not read."""
    decided, found = build.answer(facts, "availability"), facts.get("service") or {}
    brokers, errors = _rows(facts, "brokers"), _rows(facts, "errors")
    away = {row["source"]: row["unknown_us"] for row in brokers if row.get("unknown_us")}
    leaders = evidence.observed(facts, LEADERS)
    hidden = evidence.hidden(facts, MIN_ISR).get("controllers_leader")
    values: dict[str, Any] = {
        "evidence": decided,
        "requests": [row for row in _rows(facts, "requests") if row.get("good") is not None],
        "error": max(errors, key=lambda row: row.get("answers") or 0, default=None),
        "headless": figures.time(found, "leaderless"),
        "hidden": hidden,
        "leaders": leaders.percent,
        "state_of_leaders": leaders.state(evidence.floor_of(facts)),
        "away": away,
    }
    by_broker: dict[str, dict[str, Any]] = {}
    for row in brokers:
        by_broker.setdefault(row["source"], {"source": row["source"]})[row["request"]] = row
    return section("availability", values, answers=by_broker.values(), errors=errors)


def latency(facts: Facts) -> Section:
    """Time in which a broker's own p99 was above the limit of an objective."""
    decided, rows = build.answer(facts, "latency"), _rows(facts, "latency")
    limited = [row for row in rows if row.get("threshold_ms") is not None]
    slow = [row for row in limited if row.get("slow_us") or row.get("slow_high_us")]
    worst = max(slow, key=lambda row: figures.badness(row, "slow"), default=None)
    highest = max(rows, key=lambda row: row.get("p99_ms_max") or 0, default=None)
    known = {row["source"] for row in limited if row.get("slow_us") is not None}
    values = {
        "evidence": decided,
        "worst": worst,
        "slow": len({row["source"] for row in slow}),
        "known": len(known),
        "without": len({row["source"] for row in limited} - known),
        "limits": sorted({row["threshold_ms"] for row in limited}),
        "highest": highest,
        "request": cells.word_of(worst or highest or {}, "request", "request"),
    }
    return section("latency", values, latency=limited or rows)


def traffic(facts: Facts) -> Section:
    """How much was written and read, by topic and by client."""
    topics, clients = _rows(facts, "topics"), _rows(facts, "clients")
    keys = ("records_in", "bytes_in", "bytes_out")
    sums = {key: sum(row.get(key) or 0 for row in topics) for key in keys}
    unknown = max((row.get("unknown_us") or 0 for row in topics), default=0)
    moved = lambda row: (row.get("bytes_in") or 0) + (row.get("bytes_out") or 0)  # noqa: E731
    top = max(topics, key=moved, default=None)
    values = {
        "evidence": build.answer(facts, "traffic"),
        **sums,
        "busiest": figures.name(top["topic"]).text if top else "",
        "unknown": unknown,
        "is_least": any(row.get(f"{key}_high") is None for row in topics for key in keys),
    }
    return section("traffic", values, traffic=topics, client_traffic=clients)


def _rows(facts: Facts, name: str) -> list[Row]:
    return list(facts_lookup.value_at(facts, f"service.{name}") or ())


def questions(facts: Facts) -> tuple[Section, ...]:
    """The questions of page.yaml, in its order."""
    facts = facts_lookup.with_totals(facts)
    specs = resources.declared("page.yaml")["questions"]
    return tuple(_question(facts, anchor, spec) for anchor, spec in specs.items())


def _question(facts: Facts, anchor: str, spec: Mapping[str, Any]) -> Section:
    texts = {key: spec[key] for key in ("short", "title", "kip", "charts")}
    listings = tuple(
        table(name).listing(facts_lookup.rows_at(facts, path))
        for name, path in spec["tables"].items()
    )
    notes = [spec["meaning"]]
    if shortest := facts_lookup.shortest_us(facts, build.question(anchor).read):
        length = display.duration(shortest, "up")
        notes.append(f"What lasted less than {length} may have come and gone between two readings.")
    answer = _answer(facts, build.answer(facts, anchor), spec)
    return Section(anchor, **texts, answer=answer, notes=tuple(notes), listings=listings)


def _answer(facts: Facts, decided: Evidence, spec: Mapping[str, Any]) -> Answer:
    """The statements on what was bad, or that nothing was; or why neither is known."""
    if not decided.is_answered:
        return (str(decided.reason),)
    parts = [_statement(facts, decided, spec, one) for one in spec["says"]]
    parts += [_hidden(facts, spec)]
    if not any(parts):
        parts.append((resources.sentence(
            "nothing_bad", evidence=decided, noun=spec["of"], quiet=spec["quiet"]
        ),))  # fmt: skip
    if not decided.is_whole:
        parts.append((resources.sentence("coverage_clause", evidence=decided, noun=spec["of"]),))
    parts += [_statement(facts, decided, spec, one) for one in spec.get("also", ())]
    joined: list[str | Name | Figure] = []
    for part in filter(None, parts):
        joined += [" ", *part] if joined else part
    return tuple(joined)


def _statement(
    facts: Facts, decided: Evidence, spec: Mapping[str, Any], statement: Mapping[str, Any]
) -> Answer:
    """How many subjects were bad, and the row that is worst by the figure that it states."""
    first_table = next(iter(spec["tables"]))
    path = spec["tables"][statement.get("table", first_table)]
    bad = evidence.bad_rows(facts, Rows(object, path, tuple(statement["bad"])))
    if not bad:
        return ()
    names = statement.get("names", spec["names"])
    number = len({evidence.name_of(row, names) for row in bad})
    # Only the question's own subjects are counted as known.
    is_own = "of" not in statement
    values = {
        "number": number,
        "known": decided.subjects_known if is_own else None,
        "noun": statement.get("of", spec["of"]),
        "predicate": statement["is"],
        "is_least": not decided.is_whole,
    }
    worst = max(bad, key=lambda row: rank(statement["figure"], row))
    label = f" {statement.get('most', 'Worst')}: "
    return (resources.sentence("some", **values), label, *_filled(statement["worst"], worst), ".")


def _hidden(facts: Facts, spec: Mapping[str, Any]) -> Answer:
    """What brokers counted and no series of a partition showed."""
    said = (
        resources.sentence(name, counted=counted, shown=shown)
        for name, (counted, shown) in evidence.hidden(
            facts, MIN_ISR if "min_isr" in str(spec["tables"]) else Question("", "any")
        ).items()
    )
    return tuple(filter(None, (" ".join(said),)))


def _filled(template: str, row: Row) -> Answer:
    """A sentence about a row, from a template with column definitions of page.yaml in braces."""
    parts: list[str | Name | Figure] = []
    for literal, definition, *_ in Formatter().parse(template):
        parts += [literal, *(in_words(definition, row) if definition else ())]
    return tuple(parts)
