"""Several clusters at once: which of them need a look, with a link to the report of each."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lakehouse.core import display, periods
from lakehouse.report.facts_lookup import week_of
from lakehouse.report.figures import Cell, Row, plain_text
from lakehouse.report.page import verdicts
from lakehouse.report.page.page import html
from lakehouse.report.page.page_tables import Column, Listing, TableSpec, badge, column
from lakehouse.report.page.questions import answers
from lakehouse.report.resources import declared, sentence


def summary(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The facts of a summary: each cluster's verdicts, findings and coverage.

    Args:
        reports: Facts of one report for each cluster.
    """
    clusters = [_cluster(one) for one in reports]
    clusters.sort(key=lambda one: (-display.rank(one["verdict"]), str(one["cluster"])))
    return {"format": 1, "clusters": clusters}


def _cluster(facts: Mapping[str, Any]) -> Row:
    rows = verdicts.ordered(facts)
    with display.shown_in(display.zone_of(facts)):
        findings = [
            {"question": one.anchor, "answer": plain_text(one.answer)} for one in answers(facts)
        ]
        headline_ = verdicts.headline(facts)
    return {
        "cluster": facts.get("cluster"),
        "from": facts["from"],
        "to": facts["to"],
        "time_zone": facts.get("time_zone") or periods.UTC_NAME,
        "week": facts.get("week"),
        "verdict": rows[0].get("verdict") if rows else "no_data",
        "headline": headline_,
        "verdicts": rows,
        "findings": findings,
        "restated": len(facts.get("restated") or ()),
        "coverage_percent": (facts.get("coverage") or {}).get("percent"),
    }


def render(facts: Mapping[str, Any], pages: Mapping[str, str]) -> str:
    """The summary as one HTML page.

    Args:
        facts: The facts of the summary.
        pages: Links to the pages of clusters, by the cluster.
    """
    clusters = facts["clusters"]
    return html(
        "summary.html.j2",
        headline=headline(clusters),
        clusters=_each_in_its_zone(clusters),
        pages=pages,
        week_of=week_of,
        overview=_overview(clusters),
        declared=declared("page.yaml"),
    )


def headline(clusters: Sequence[Row]) -> str:
    """All clusters in one sentence."""
    tally = Counter(one["verdict"] for one in clusters)
    return sentence("summary", tally=tally, total=len(clusters))


def _each_in_its_zone(clusters: Iterable[Row]) -> Iterator[Row]:
    for one in clusters:
        with display.shown_in(display.zone_of(one)):
            yield one


def _overview(clusters: Sequence[Row]) -> Listing:
    """Clusters by objective; a cell is empty if the cluster does not have the objective."""
    titles: dict[str, str] = {}
    for one in clusters:
        for row in one["verdicts"]:
            titles.setdefault(row["objective"], display.line(row.get("title") or row["objective"]))
    spec = TableSpec(
        "Clusters and objectives",
        "cluster",
        (
            column("Cluster", "name cluster"),
            column("Seen", "percent coverage_percent"),
            *(_objective(name, title) for name, title in titles.items()),
            Column("Week", lambda row: week_of(row).removeprefix("ISO week "), numeric=False),
        ),
    )
    return spec.listing(clusters)


def _objective(name: str, title: str) -> Column:
    def cell(row: Row) -> Cell:
        verdict = next((one for one in row["verdicts"] if one["objective"] == name), None)
        return Cell() if verdict is None else badge(verdict.get("verdict"))

    return Column(title, cell, numeric=False)
