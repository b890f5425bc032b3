"""The sections of the page that are none of its questions: on what qualifies or adds to them."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from lakehouse.core import display
from lakehouse.report import evidence, facts_lookup, figures, resources
from lakehouse.report.facts import build
from lakehouse.report.facts.kafka.hygiene import USE_OF_QUOTAS
from lakehouse.report.figures import Answer, Facts, Figure, Name, Row
from lakehouse.report.owners import LABELS
from lakehouse.report.page import cells, verdicts
from lakehouse.report.page.page_tables import Listing, listing, table

_UNDER: Final = "under_min_isr_partition_seconds"
"""Compared between racks. Leaderless time is not: two brokers report that of the whole cluster."""

_OWN_TABLES: Final = 3
"""Own metrics with a table each; of the others there is a row."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page.

    Attributes:
        anchor: Its id in the page.
        short: Its name in the list of sections.
        title: Its heading; of a question the question.
        answer: The answer in one or two sentences.
        notes: How to read it, or why it matters.
        listings: Its tables; empty ones are not shown.
        charts: Names of its timelines, with their titles.
        kip: The KIP that raises the question; empty for other sections.
    """

    anchor: str
    short: str
    title: str
    answer: Answer
    notes: tuple[str, ...] = ()
    listings: tuple[Listing, ...] = ()
    charts: Mapping[str, str] = field(default_factory=dict)
    kip: str = ""


def changed(facts: Facts) -> list[Section]:
    """The sections on changes and on doubts about the verdicts, as far as the facts have them."""
    return _made(
        facts, restated=restated, corrections=corrections, objectives=burn,
        maintenance=maintenance, trends=trends,
    )  # fmt: skip


def additional(facts: Facts) -> list[Section]:
    """The sections after the questions, as far as the facts have them."""
    return _made(
        facts, business_hours=business, capacity=capacity, owners=owners, racks=racks,
        own_metrics=own_metrics, hygiene=hygiene,
    )  # fmt: skip


def _made(facts: Facts, **makers: Callable[[Facts], Section | None]) -> list[Section]:
    """The sections on what the facts have, by the keys of that."""
    return list(filter(None, (make(facts) for key, make in makers.items() if facts.get(key))))


def coverage(facts: Facts) -> Section:
    """How much was seen, and every gap."""
    totals = facts_lookup.value_at(facts, "coverage") or {}
    nothing, rejected = facts_lookup.nothing_seen(facts), facts.get("rejected")
    values = {
        "totals": totals, "nothing": nothing, "rejected": rejected, "imported": _imported(facts),
    }  # fmt: skip
    gaps = listing("gaps", facts_lookup.rows_at(facts, "coverage.sources.gaps"))
    return replace(
        section("coverage", values), listings=(listing("sources", totals.get("sources")), gaps)
    )


def _imported(facts: Facts) -> dict[str, int]:
    """How many sources' past was imported (see jmxlake-agent import), by where from."""
    events = facts_lookup.value_at(facts, "changes") or ()
    found = {(row["new"] or "", row["source"]) for row in events if row["kind"] == "imported"}
    return dict(sorted(Counter(place for place, _ in found).items()))


def section(
    anchor: str,
    values: Mapping[str, Any],
    note_values: Mapping[str, str] | None = None,
    **rows: Iterable[Row],
) -> Section:
    """A section of page.yaml that is none of the questions.

    Args:
        anchor: Its key in page.yaml, and the name of the sentence that answers it.
        values: For that sentence.
        note_values: For the note.
        rows: Rows for each of its tables.
    """
    spec: Mapping[str, Any] = resources.declared("page.yaml")["sections"][anchor]
    notes = (spec["note"].format(**note_values or {}),) if "note" in spec else ()
    listings = tuple(listing(name, of_table).brief() for name, of_table in rows.items())
    # Names stand between isolates in sentences, and are marked up where a medium can.
    parts = enumerate(re.split("[\u2068\u2069]", resources.sentence(anchor, **values)))
    answer = tuple(Name(part) if number % 2 else part for number, part in parts)
    charts = spec.get("charts", {})
    return Section(anchor, spec["short"], spec["title"], answer, notes, listings, charts)


def restated(facts: Facts) -> Section:
    """Published figures that changed since."""
    rows = facts["restated"]
    turned = sum(row["before"].get("verdict") != row["now"].get("verdict") for row in rows)
    values = {"number": len(rows), "turned": turned}
    has_agreed = any(row[when].get("agreed_verdict") for row in rows for when in ("before", "now"))
    return section("restated", values, **{"restated_agreed" if has_agreed else "restated": rows})


def composites(facts: Facts) -> Section | None:
    """The weighted means, of which objectives they are, and those of owners; None without any."""
    rows = [
        {**row, "target_percent": 100 * (row["target"] or 0.0), "unknown_us": 0}
        for row in facts.get("composites") or ()
    ]
    owned = [
        {**row, "of_team": row["team"], "team": None} for row in rows if row["team"] or row["tier"]
    ]
    whole = [row for row in rows if not (row["team"] or row["tier"])]
    members = [
        {**one, "target_percent": 100 * one["target"], "unknown_us": 0,
         "composite_title": row["title"]}
        for row in whole for one in row["objectives"]
    ]  # fmt: skip
    if not whole:
        return None
    values = {"rows": verdicts.composites(facts), "owners": len(owned)}
    return section("composites", values, composites_by_owner=owned, composite_members=members)


def corrections(facts: Facts) -> Section:
    """What was agreed not to count, and the agreed figures."""
    agreed = facts["corrections"]
    rows = [row for row in facts_lookup.titled(facts) if row.get("corrections")]
    turned = sum(cells.differs_without(row, "agreed") for row in rows)
    counts = {"number": len(agreed), "subjects": len(rows), "turned": turned}
    return section("corrections", counts, corrected=rows, corrections=agreed)


def burn(facts: Facts) -> Section | None:
    """Error budgets that burn too fast; None where none burns, burnt or may burn.

    The facts list neither calm budgets nor those without data, so a budget that is missing here
    need not be calm.
    """
    rows = [{**row, **pair} for row in facts_lookup.titled(facts) for pair in row.get("burn") or ()]
    if not rows:
        return None
    now = {_budget(row) for row in rows if row.get("verdict") == "burning"}
    perhaps = {_budget(row) for row in rows if row.get("verdict") == "uncertain"} - now
    once = {_budget(row) for row in rows if row.get("burnt_us")} | now
    at = max((str(row["at"]) for row in rows if row.get("at")), default=None)
    counts = {"now": len(now), "perhaps": len(perhaps), "once": len(once)}
    return section("burn", counts, {"at": display.day_and_time(at)}, burns=rows)


def _budget(row: Row) -> tuple[object, ...]:
    return tuple(row.get(key) for key in ("objective", *figures.SUBJECT_KEYS))


def maintenance(facts: Facts) -> Section:
    """Planned maintenance, and the figures without it."""
    planned = facts["maintenance"]
    rows = [row for row in facts_lookup.titled(facts) if row.get("maintenance")]
    turned = sum(map(cells.differs_without, rows))
    counts = {"windows": len(planned), "subjects": len(rows), "turned": turned}
    return section("maintenance", counts, planned=planned, without=rows)


def trends(facts: Facts) -> Section | None:
    """How the objectives went over the last weeks; None where the facts have no trends."""
    rows = list(facts_lookup.titled(facts, "trends.objectives.subjects"))
    drains = facts_lookup.value_at(facts, "trends.drains") or ()
    if not rows and not drains:
        return None
    values = {
        "tested": facts_lookup.value_at(facts, "trends.tested"),
        "changes": Counter(facts_lookup.value_at(row, "change.verdict") for row in rows),
        "by_chance": facts_lookup.value_at(facts, "trends.significant_by_chance"),
    }
    return section("trends", values, trends=rows, drains=drains)


def business(facts: Facts) -> Section:
    """Business hours alone."""
    hours = facts["business_hours"]
    names = {key: display.line(hours.get(key)) for key in ("hours", "time_zone")}
    if not hours.get("spans"):
        return replace(section("business", {"headline": "", **names}, names), notes=())
    always = {row["objective"]: row.get("verdict") for row in facts.get("verdicts") or ()}
    judged = verdicts.verdicts(hours)
    rows = [
        {
            **{key: getattr(verdict, key) for key in ("title", "verdict", "target", "worst")},
            "attainment": verdict.attainment or Figure(display.NOT_KNOWN),
            "always": always.get(verdict.name),
        }
        for verdict in judged
    ]
    whole = section("business", {"headline": verdicts.headline(hours), **names}, names)
    # An objective that is met needs no list of its subjects.
    missed = (verdict.subjects for verdict in judged if verdict.verdict != "met")
    lists = tuple(subjects.brief() for subjects in missed if subjects is not None)
    return replace(whole, listings=(listing("business", rows), *lists))


def capacity(facts: Facts) -> Section | None:
    """What topics store; None where nothing is known of it."""
    rows = list(facts_lookup.rows_at(facts, "capacity.topics"))
    if not rows:
        return None
    known = [row["disk_bytes_mean"] for row in rows if row.get("disk_bytes_mean") is not None]
    filling = [row for row in rows if row.get("verdict") == "filling"]
    values = {
        "topics": len(rows),
        "size": sum(known) if known else None,
        "omitted": len(rows) - len(known),
        "full": sum(row.get("verdict") == "full" for row in rows),
        "first": min(filling, key=lambda row: row.get("reached_us") or 0, default=None),
    }
    return section("capacity", values, stored=rows)


def owners(facts: Facts) -> Section:
    """An account for each owner."""
    accounts, currency = (facts["owners"].get(key) for key in ("accounts", "currency"))
    cost = "The file of owners has no prices, so costs are not shown."
    if currency is not None:
        cost = f"Costs are in {display.line(currency)}, and include only known amounts."
    # The first column names the team already.
    rows = [{**account, "team": None, "of_team": account.get("team")} for account in accounts]
    owned = [account for account in accounts if any(account.get(key) for key in LABELS)]
    unowned: Row = next((account for account in accounts if account not in owned), {})
    teams = len({account.get("team") for account in owned if account.get("team") is not None})
    whole = section("owners", {"teams": teams, "unowned": unowned}, {"cost": cost})
    table_name = "owners" if currency is None else "owners_with_cost"
    return replace(whole, listings=(listing(table_name, rows),))


def racks(facts: Facts) -> Section | None:
    """Racks side by side; None where brokers of fewer than two racks are known."""
    brokers: defaultdict[str, list[str]] = defaultdict(list)
    for row in facts.get("racks") or ():
        brokers[row["rack"]].append(row["source"])
    if len(brokers) < 2:
        return None
    rows = [{"rack": rack, **_rack(facts, sources)} for rack, sources in sorted(brokers.items())]
    values = {"rows": rows, "evidence": build.answer(facts, "racks")}
    return section("racks", values, racks=rows)


def _rack(facts: Facts, sources: list[str]) -> Row:
    of_brokers, readings, events = (
        [row for row in facts_lookup.value_at(facts, path) or () if row.get("source") in sources]
        for path in ("min_isr.brokers", "coverage.sources", "changes")
    )
    known = [row[_UNDER] for row in of_brokers if row.get(_UNDER) is not None]
    expected, unknown = (
        sum(row.get(key) or 0 for row in readings) for key in ("expected_us", "unknown_us")
    )
    return {
        "brokers": len(sources),
        "restarts": sum(row.get("kind") == "source_restart" for row in events),
        "under": sum(known) if known else None,  # without any report it is not zero
        "percent": 100 * (expected - unknown) / expected if expected else None,
        "unknown_us": unknown if readings else None,
    }


def own_metrics(facts: Facts) -> Section | None:
    """Metrics that no other section shows; None where the facts have none."""
    content = facts["own_metrics"]
    metrics, absent = content["metrics"], content.get("absent") or ()
    if not metrics and not absent:
        return None
    own = [one for one in metrics if one.get("own")]
    shown = own[:_OWN_TABLES]
    others = [{**one, **one["worst"][0]} for one in metrics[len(shown) :] if one.get("worst")]
    values = {"metrics": metrics, "own": own, "absent": absent, "omitted": content["omitted"]}
    listings = (*map(_of_metric, shown), listing("metrics", others).brief())
    charts = {one["metric"]: one["metric"] for one in shown}
    return replace(section("metrics", values), listings=listings, charts=charts)


def _of_metric(metric: Row) -> Listing:
    """The subjects of a metric, in the order of the facts."""
    spec = table("counters" if metric.get("kind") == "counter" else "gauges")
    rows = [{**metric, **row} for row in metric.get("worst") or ()]
    notes = [display.line(metric.get("description") or "")]
    if metric.get("kind") not in {"gauge", "counter"}:
        notes.append("It was read as a gauge and as a counter, so mean and rate are not known.")
    if any(row.get("flags") for row in rows):
        notes.append("This Kafka version is known to report it wrongly.")
    if (more := (metric.get("subjects") or 0) - len(rows)) > 0:
        notes.append(f"{display.plural(more, 'more subject')} in gold.")
    caption = display.line(metric["metric"], display.NAME_LIMIT)
    return replace(spec, caption=caption, note=" ".join(filter(None, notes))).listing(rows).brief()


def hygiene(facts: Facts) -> Section:
    """Findings to tidy up."""
    content, lists = facts["hygiene"], resources.declared("page.yaml")["hygiene"]
    known = {key: content.get(key) for key in lists}
    quotas = evidence.observed(facts, USE_OF_QUOTAS)
    if quotas.expected_us and quotas.state(evidence.floor_of(facts)) == "not_known":
        known["unused_quotas"] = None  # "unused" is a statement on observed time
    notes = [lists[key]["note"] for key in ("near_quota", "unused_quotas") if content.get(key)]
    if content.get("overtaken") is not None:
        notes.append(lists["overtaken"]["note"].format(hours=content.get("within_hours")))
    if content.get("replicas_untold"):
        topics = display.plural(content["replicas_untold"], "topic")
        notes.append(f"The number of replicas is not known for {topics}.")
    rows = {key: of_list for key, of_list in known.items() if of_list}
    values = {"lists": lists, "rows": known, "evidence": build.answer(facts, "hygiene")}
    whole = section("hygiene", values, **rows)
    return replace(whole, notes=tuple(notes))
