"""Several clusters at once: which of them need a look, and each one's report behind it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from lakehouse import zones
from lakehouse.report import assets, verdicts, words
from lakehouse.report.figures import Cell, sentence
from lakehouse.report.listing import Column, Draft, Listing, badge, column
from lakehouse.report.lookup import declared, week_of
from lakehouse.report.questions import questions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from lakehouse.report.figures import Row


def summary(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The facts of a summary: each cluster's verdicts, findings and coverage.

    Args:
        reports: Facts of one report for each cluster.
    """
    clusters = [_cluster(one) for one in reports]
    clusters.sort(key=lambda one: (-words.rank(one["verdict"]), str(one["cluster"])))
    return {"format": 1, "clusters": clusters}


def _cluster(facts: Mapping[str, Any]) -> Row:
    rows = verdicts.ordered(facts)
    with words.shown_in(words.zone_of(facts)):
        said = [
            {"question": one.anchor, "answer": sentence(one.answer)} for one in questions(facts)
        ]
    return {
        "cluster": facts.get("cluster"),
        "from": facts["from"],
        "to": facts["to"],
        "time_zone": facts.get("time_zone") or zones.UTC_NAME,
        "week": facts.get("week"),
        "verdict": rows[0].get("verdict") if rows else "no_data",
        "headline": verdicts.headline(facts),
        "verdicts": rows,
        "findings": said,
        "restated": len(facts.get("restated") or ()),
        "coverage_percent": (facts.get("coverage") or {}).get("percent"),
    }


def render(told: Mapping[str, Any], pages: Mapping[str, str]) -> str:
    """The summary as one HTML page.

    Args:
        told: The facts of the summary.
        pages: Where the page of a cluster is, as seen from this one.
    """
    clusters = told["clusters"]
    return assets.page(
        "summary.html.j2",
        headline=headline(clusters),
        clusters=_each_in_its_zone(clusters),
        pages=pages,
        week_of=week_of,
        overview=_overview(clusters),
        names={name: one["short"] for name, one in declared("page.yaml")["questions"].items()},
    )


def headline(clusters: Sequence[Row]) -> str:
    """All clusters in one sentence."""
    tally = Counter(one["verdict"] for one in clusters)
    return assets.sentence("summary", tally=tally, total=len(clusters))


def _each_in_its_zone(clusters: Iterable[Row]) -> Iterator[Row]:
    for one in clusters:
        with words.shown_in(words.zone_of(one)):
            yield one


def _overview(clusters: Sequence[Row]) -> Listing:
    """Clusters by objective; an objective that a cluster does not have is left empty."""
    titles: dict[str, str] = {}
    for one in clusters:
        for row in one["verdicts"]:
            titles.setdefault(row["objective"], words.line(row.get("title") or row["objective"]))
    draft = Draft(
        "Clusters and objectives",
        "cluster",
        (
            column("Cluster", "name cluster"),
            column("Seen", "percent coverage_percent"),
            *(_objective(name, title) for name, title in titles.items()),
            Column("Week", lambda row: week_of(row).removeprefix("ISO week "), numeric=False),
        ),
    )
    return draft.of(clusters)


def _objective(name: str, title: str) -> Column:
    def cell(row: Row) -> Cell:
        found = next((one for one in row["verdicts"] if one["objective"] == name), None)
        return Cell() if found is None else badge(found.get("verdict"))

    return Column(title, cell, numeric=False)
