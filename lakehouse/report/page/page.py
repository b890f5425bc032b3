"""The page: one self-contained HTML file that needs neither network nor script."""

import base64
import hashlib
from typing import Any

from markupsafe import Markup

from lakehouse.core import display
from lakehouse.report import evidence, figures
from lakehouse.report.charts import charts
from lakehouse.report.charts.event_marks import Marks, marks_of
from lakehouse.report.charts.incident_lanes import LANES, bars
from lakehouse.report.facts_lookup import incidents, value_at, week_of
from lakehouse.report.page import questions, sections
from lakehouse.report.page.page_tables import listing
from lakehouse.report.page.verdicts import composites, headline, verdicts
from lakehouse.report.resources import asset, sentence, templates


def render(facts: figures.Facts) -> str:
    """The report as one HTML page.

    Args:
        facts: The report's facts, as docs/report-json.md describes them.
    """
    with display.shown_in(display.zone_of(facts)):
        marks = marks_of(facts)
        answers, changed = questions.answers(facts), sections.changed(facts)
        whole = list(filter(None, (sections.composites(facts),)))
        others = (*sections.additional(facts), sections.coverage(facts))
        return html(
            "page.html.j2",
            facts=facts,
            headline=headline(facts),
            cluster=figures.name(facts.get("cluster")),
            team=figures.single(facts.get("team")),
            period=display.period(facts["from"], facts["to"]),
            week=week_of(facts),
            seen=display.per_cent(value_at(facts, "coverage.percent")),
            verdicts=verdicts(facts),
            questions=answers,
            changed=[one for one in changed if one.anchor != "trends"],
            first=questions.first((*answers, *changed)),
            sections=(*whole, *changed, *answers, *others),
            composites=composites(facts),
            charts=lambda section: charts.of(section, facts, marks),
            happened=_happened(facts, marks),
            marks=marks,
            events=listing("events", facts.get("changes")),
            no_events=sentence("no_events", evidence=evidence.answer(facts, "events")),
            events_omitted=sentence("omitted", events=facts.get("changes_omitted") or {}),
        )


def _happened(facts: figures.Facts, marks: Marks) -> dict[str, Any]:
    """The incidents of the period: a sentence, a chart and a table."""
    rows, period = incidents(facts), figures.span_of(facts, "from", "to")
    topics = len({row["topic"] for row in rows})
    return {
        "caption": sentence("happened", incidents=len(rows), topics=topics, drawn=LANES),
        "drawings": charts.incidents(bars(facts, period), period, marks),
        "listing": listing("incidents", rows),
    }


def html(template: str, **values: Any) -> str:
    """A page made of a template, with the style, the script and a policy that admits only these.

    Args:
        template: File of the template.
        values: Its variables; every text is escaped.
    """
    style, script = asset("templates", "page.css"), asset("templates", "page.js")
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    # Both are files of this package and have nothing from outside.
    safe = {"style": Markup(style), "script": Markup(script)}  # noqa: S704
    environment = templates("lakehouse.report")
    return environment.get_template(template).render(**safe, policy=policy, **values)


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
