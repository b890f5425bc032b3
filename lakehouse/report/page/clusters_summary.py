"""Several clusters at once: which of them need a look, with a link to the report of each."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from lakehouse.core import periods
from lakehouse.report.facts.objectives.statement_rows import STATUSES, Status
from lakehouse.report.figures import Facts
from lakehouse.report.page.page import html
from lakehouse.report.summary import lines
from lakehouse.report.summary.model import Objective, Summary
from lakehouse.report.summary.summarize import summarize
from lakehouse.report.summary.texts import line

FORMAT: Final = 2
EVENTS: Final = 3
"""Events of each cluster; its page has the others."""


class Cluster(NamedTuple):
    """One cluster.

    Attributes:
        name: Its name in the facts.
        facts: The facts of its report.
        report: The same in short.
    """

    name: object
    facts: Facts
    report: Summary

    @property
    def status(self) -> Status:
        """The worst status of its objectives."""
        return self.report.headline.status

    @property
    def by_title(self) -> Mapping[str, Objective]:
        """Its objectives by their titles."""
        return {one.title: one for one in self.report.objectives}


def clusters(reports: Iterable[Facts]) -> list[Cluster]:
    """Return the clusters of some reports, worst first.

    Args:
        reports: Facts of one report for each cluster.
    """
    found = [Cluster(one.get("cluster"), one, summarize(one)) for one in reports]
    return sorted(found, key=lambda one: (STATUSES.index(one.status), str(one.name)))


def headline(found: Sequence[Cluster]) -> str:
    """Return all clusters, worst first, in one sentence."""
    tally = Counter(one.status for one in found)
    worst = found[0].status if found else "no_data"
    return line(f"clusters.{worst}", count=tally[worst], total=len(found))


def to_json(found: Sequence[Cluster]) -> dict[str, Any]:
    """Return the clusters as JSON has them."""
    return {"format": FORMAT, "clusters": [_to_json(one) for one in found]}


def render(found: Sequence[Cluster], pages: Mapping[str, str]) -> str:
    """Return the clusters as one HTML page.

    Args:
        found: The clusters, worst first.
        pages: Links to the pages of clusters, by the cluster.
    """
    titles = dict.fromkeys(title for one in found for title in one.by_title)
    return html(
        "summary.html.j2",
        title=headline(found),
        status=found[0].status if found else "no_data",
        clusters=found,
        titles=list(titles),
        pages=pages,
        most=EVENTS,
        rank=STATUSES.index,
    )


def _to_json(one: Cluster) -> dict[str, Any]:
    report = one.report
    return {
        "cluster": one.name,
        "from": one.facts["from"],
        "to": one.facts["to"],
        "time_zone": one.facts.get("time_zone") or periods.UTC_NAME,
        "week": one.facts.get("week"),
        "status": one.status,
        "headline": lines.headline(report),
        "objectives": [
            {"objective": each.name, "title": each.title, "status": each.status,
             "used": each.used_share}
            for each in report.objectives
        ],
        "events": [
            {"number": each.number, "title": lines.plain(each.title), "when": each.when,
             "length": each.length, "cause": lines.plain(each.cause),
             "next": lines.plain(each.next_step),
             "owner": each.owner and each.owner.text, "used": each.used_share}
            for each in report.events[:EVENTS]
        ],
        "key_figures": {each.label: each.value for each in report.tiles},
        "restated": len(one.facts.get("restated") or ()),
        "coverage_percent": (one.facts.get("coverage") or {}).get("percent"),
    }  # fmt: skip
