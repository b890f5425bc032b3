"""Figures that were published and differ now, because late data arrived.

Figures that were published before the period was over are not compared.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from lakehouse import tables
from lakehouse.core.periods import iso
from lakehouse.core.subjects import with_names
from lakehouse.engines.gold_reader import Row, is_same
from lakehouse.report.facts.fields import (
    CLIENT_ID,
    GROUP,
    OBJECTIVE,
    PARTITION,
    SOURCE,
    TITLE,
    TOPIC,
    USER,
    Means,
    names_of,
)
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.statement_rows import Published
from lakehouse.report.facts_lookup import value_at
from lakehouse.report.figures import span_of


class Restated(NamedTuple):
    """A subject whose published figures differ from those of now."""

    objective: Annotated[str, OBJECTIVE]
    title: Annotated[str | None, TITLE]
    topic: Annotated[str | None, TOPIC]
    partition: Annotated[int | None, PARTITION]
    user: Annotated[str | None, USER]
    client_id: Annotated[str | None, CLIENT_ID]
    group: Annotated[str | None, GROUP]
    source: Annotated[str | None, SOURCE]
    before: Annotated[dict[str, Any], Means("published figures", json=Published)]
    now: Annotated[dict[str, Any], Means("figures of now", json=Published)]


def restated(gold: Gold, objectives: Sequence[Mapping[str, Any]]) -> list[Restated] | None:
    """Figures that differ from those published last; None: none were published.

    Args:
        gold: The cluster's gold.
        objectives: As in the facts, each over its own time.
    """
    published = _published(gold, objectives)
    return restated_figures(objectives, published) if published else None


def restated_figures(
    objectives: Iterable[Mapping[str, Any]], published: Sequence[Row]
) -> list[Restated]:
    """Figures that differ, in the order of the facts.

    Args:
        objectives: As in the facts.
        published: Rows of gold/sla of the same cluster, in any order; ``stated_at`` in
            microseconds, names and time (``from``, ``to``) as the facts have them.
    """
    earlier: dict[tuple[Any, ...], list[Row]] = {}
    for row in sorted(published, key=lambda row: int(row["stated_at"])):
        key = (row["objective"], row.get("from"), row.get("to"), *names_of(row).values())
        earlier.setdefault(key, []).append(row)
    differing = []
    for one in objectives:
        over = (one["name"], one.get("from"), one.get("to"))
        for now in one.get("subjects") or ():
            rows = earlier.get((*over, *names_of(now).values()), [])
            figures = _figures(now)
            others = [row for row in rows if any(row.get(k) != figures[k] for k in figures)]
            if others:
                last = others[-1]
                before = {"statement": last["statement"], "stated_at": iso(last["stated_at"])}
                before |= {key: last.get(key) for key in figures}
                names = names_of(now)
                title = one.get("title")
                differing.append(Restated(one["name"], title, **names, before=before, now=figures))
    return differing


def _figures(subject: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of a subject as gold/sla has them."""
    agreed = {key: value_at(subject, key.replace("_", ".", 1)) for key in tables.SLA_AGREED}
    return {**{key: subject.get(key) for key in tables.SLA_FIGURES}, **agreed}


def _published(gold: Gold, objectives: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Figures of the cluster over the objectives' own times, published when these were over."""
    times = {span_of(one, "from", "to") for one in objectives if one.get("from")}
    over = (f"(r.period_start = {start} AND r.period_end = {end})" for start, end in sorted(times))
    published = gold.ask(
        "SELECT r.* FROM {rows} r "  # older tables lack some columns
        f"WHERE {is_same('r.cluster', gold.cluster)} AND r.stated_at >= r.period_end "
        f"AND ({' OR '.join(over) or 'false'})",
        rows=gold.engine.rows(tables.SLA),
    )
    return [
        {**with_names(row), "from": iso(row["period_start"]), "to": iso(row["period_end"])}
        for row in published
    ]
