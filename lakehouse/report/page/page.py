"""The page: one self-contained HTML file that needs neither network nor script, and its PDF.

The page of several clusters shows which of them need a look, with a link to the report of each. A
Chromium of this machine prints the PDF, without network.
"""

import base64
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from lakehouse.core import display, periods
from lakehouse.core.periods import HOUR_US
from lakehouse.errors import PrintError
from lakehouse.report.facts.objectives.statement_rows import STATUSES, Status
from lakehouse.report.figures import Facts, asset, templates
from lakehouse.report.page import svg, week_lanes
from lakehouse.report.page.svg import Axis, strip
from lakehouse.report.summary import lines
from lakehouse.report.summary.events import Event
from lakehouse.report.summary.objective_rows import Objective
from lakehouse.report.summary.opening import Tile
from lakehouse.report.summary.summarize import Summary, summarize
from lakehouse.report.summary.texts import line
from lakehouse.report.tables.section import Detail, details

_FIRST_SHEET: Final = 12
"""Objectives on the first sheet of paper; more objectives that are met are on the second."""


class ObjectiveTable(NamedTuple):
    """The table of a report's objectives, whose cells the template asks for.

    Attributes:
        report: The report in short.
        link: Returns the fragment of a section of the details.
    """

    report: Summary
    link: Callable[[str], str]

    @property
    def rows(self) -> tuple[Objective, ...]:
        """The objectives, worst first."""
        return self.report.objectives

    @property
    def weeks(self) -> str:
        """The weeks: ``W40 to W47``; empty: no earlier week is known."""
        names = [week.name for one in self.rows[:1] for week in one.weeks[-svg.WEEKS :]]
        return f"{names[0]} to {names[-1]}" if names else ""

    @property
    def has_left(self) -> bool:
        """Whether the error budget left is known of any objective."""
        return any(one.left for one in self.rows)

    @property
    def second_sheet(self) -> int:
        """The first row on the second sheet of paper; -1: all are on the first."""
        quiet = [nth for nth, one in enumerate(self.rows) if one.status in {"met", "on_track"}]
        return max(quiet[0], 1) if quiet and len(self.rows) > _FIRST_SHEET else -1

    def rank(self, one: Objective) -> int:
        """Return the place of its status, the worst first."""
        return STATUSES.index(one.status)

    def bar(self, one: Objective) -> Markup:
        """Draw the used error budget."""
        label = f"{one.used} of the error budget used"
        return svg.budget_bar(one.used_share, one.used_low, one.used_high, label)

    def left(self, one: Objective) -> Markup:
        """Draw the error budget left after each hour; empty: not known."""
        start, end = self.report.span
        return svg.burn_down(one.left, (end - start) // HOUR_US) if one.left else Markup()

    def status_of_weeks(self, one: Objective) -> Markup:
        """Draw the last eight weeks."""
        return svg.eight_weeks(one.weeks)


CARDS: Final = 5
"""Events with a card of their own."""

ALSO: Final = 5
"""Further events, in the last card."""


def render(facts: Facts) -> str:
    """Return the report as one HTML page.

    Args:
        facts: The report's facts, see ``facts/report_record.py``.
    """
    summary = summarize(facts)
    with display.shown_in(display.zone_of(facts)):
        return page(summary, details(facts, summary), facts)


def page(summary: Summary, folds: Sequence[Detail], facts: Facts) -> str:
    """Return the report as one HTML page.

    Args:
        summary: The report in short.
        folds: The details.
        facts: The report's facts, for the hour-by-hour figures and the footer.
    """
    axis, to = Axis(summary.span), summary.elapsed_to
    cards, also = _shown(summary.events)
    numbered = (*cards, *also)
    ids = {
        *(f"event-{one.number}" for one in numbered),
        *(f"slo-{one.name}" for one in summary.objectives),
        *(f"d-{one.anchor}" for one in folds),
    }

    def folded(anchor: str) -> str:
        return f"d-{anchor}" if f"d-{anchor}" in ids else "objectives"

    planned = week_lanes.planned_of(facts)
    steps = week_lanes.steps_of(facts, to)
    drawn = [] if summary.is_blind else week_lanes.lanes_of(facts, steps)
    return html(
        "page.html.j2",
        report=summary,
        title=f"{summary.headline.text}: {summary.title}, {summary.cluster.text}, {summary.period}",
        menu=_menu(summary, drawn, folds),
        cards=cards,
        also=also,
        more_events=_more(len(summary.events) - len(numbered)),
        strip=strip(numbered, summary.events[len(numbered) :], planned, axis, to),
        planned=planned,
        lanes=week_lanes.lanes(drawn, numbered, planned, axis, to) if drawn else None,
        lanes_title=steps.title(summary.week),
        bar_length=steps.words,
        objectives=ObjectiveTable(summary, folded),
        details=[_linked(one, ids) for one in folds],
        made_by=_made_by(facts),
        folded=folded,
        row_of=_row_of(summary),
        tile_trend=_tile_trend,
    )


def html(template: str, **values: Any) -> str:
    """Return a page made of a template, with a policy that admits only its style and script.

    Args:
        template: File of the template.
        values: Its variables; every text is escaped.
    """
    style, script = asset("page", "templates", "page.css"), asset("page", "templates", "page.js")
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    # Both are files of this package and have nothing from outside.
    safe = {"style": Markup(style), "script": Markup(script)}  # noqa: S704
    environment = templates("lakehouse.report.page")
    return environment.get_template(template).render(**safe, policy=policy, **values)


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _shown(events: Sequence[Event]) -> tuple[tuple[Event, ...], tuple[Event, ...]]:
    """Return the events with a card, and the further ones in the last card."""
    major = [event for event in events if event.is_major][:CARDS]
    return tuple(major), tuple(events[len(major) : len(major) + ALSO])


def _linked(fold: Detail, ids: Set[str]) -> Detail:
    """Return a fold whose cells link only to parts of the page."""
    tables = (
        table._replace(
            rows=tuple(
                tuple(cell if cell.link in ids else cell._replace(link="") for cell in row)
                for row in table.rows
            )
        )
        for table in fold.tables
    )
    return fold._replace(tables=tuple(tables))


def _more(number: int) -> str:
    return f"{display.plural(number, 'more event')} in All incidents" if number > 0 else ""


def _menu(
    summary: Summary, drawn: Sequence[week_lanes.Lane], folds: Sequence[Detail]
) -> list[tuple[str, str]]:
    parts = [
        ("events", "Events", not summary.is_blind),
        ("objectives", "Objectives", True),
        ("week", "Hour by hour", drawn),
        ("details", "Details", folds),
    ]
    return [(anchor, label) for anchor, label, is_there in parts if is_there]


def _made_by(facts: Facts) -> str:
    version, made = facts.get("jmxlake"), facts.get("generated_at")
    by = f"Made by jmxlake {display.line(version or '')}".rstrip()
    return f"{by}, {display.day_and_time(made)} {display.zone()}." if made else f"{by}."


def _row_of(summary: Summary) -> Callable[[Event], str]:
    rows = {one.title: f"slo-{one.name}" for one in summary.objectives}
    return lambda event: rows.get(event.objective or "", "objectives")


def _tile_trend(tile: Tile) -> Markup:
    if not any(value is not None for value in tile.trend):
        return Markup()
    known = sum(value is not None for value in tile.trend)
    return svg.trend(tile.trend, f"{tile.label}: last {len(tile.trend)} weeks, {known} known")


CLUSTERS_FORMAT: Final = 2
EVENTS_OF_CLUSTER: Final = 3
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


def clusters_headline(found: Sequence[Cluster]) -> str:
    """Return all clusters, worst first, in one sentence."""
    tally = Counter(one.status for one in found)
    worst = found[0].status if found else "no_data"
    return line(f"clusters.{worst}", count=tally[worst], total=len(found))


def clusters_json(found: Sequence[Cluster]) -> dict[str, Any]:
    """Return the clusters as JSON has them."""
    return {"format": CLUSTERS_FORMAT, "clusters": [_cluster_json(one) for one in found]}


def clusters_page(found: Sequence[Cluster], pages: Mapping[str, str]) -> str:
    """Return the clusters as one HTML page.

    Args:
        found: The clusters, worst first.
        pages: Links to the pages of clusters, by the cluster.
    """
    titles = dict.fromkeys(title for one in found for title in one.by_title)
    return html(
        "summary.html.j2",
        title=clusters_headline(found),
        status=found[0].status if found else "no_data",
        clusters=found,
        titles=list(titles),
        pages=pages,
        most=EVENTS_OF_CLUSTER,
        rank=STATUSES.index,
    )


def _cluster_json(one: Cluster) -> dict[str, Any]:
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
            for each in report.events[:EVENTS_OF_CLUSTER]
        ],
        "key_figures": {each.label: each.value for each in report.tiles},
        "restated": len(one.facts.get("restated") or ()),
        "coverage_percent": (one.facts.get("coverage") or {}).get("percent"),
    }  # fmt: skip


BROWSER_SETTING: Final = "JMXLAKE_CHROMIUM"
"""Environment variable with the path of the browser, if it is not on PATH."""

BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


SECONDS: Final = 120

_FLAGS: Final = (
    "--headless",
    "--disable-gpu",
    "--disable-dev-shm-usage",  # containers give it 64 MB
    "--no-first-run",
    "--disable-extensions",
    "--disable-sync",
    "--disable-component-update",
    "--disable-background-networking",
    # The page makes no request. For any other request host names do not resolve, and addresses use
    # a proxy that does not exist.
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=http://127.0.0.1:9",
    "--proxy-bypass-list=<-loopback>",
    "--no-pdf-header-footer",
    "--generate-pdf-document-outline",
)


_MAGIC: Final = b"%PDF-"


def browser(environment: Mapping[str, str] = os.environ) -> str:
    """Path of the Chromium that prints.

    Args:
        environment: Has ``JMXLAKE_CHROMIUM`` and ``PATH``.

    Raises:
        PrintError: Chromium is not installed.
    """
    named = environment.get(BROWSER_SETTING)
    for name in [named] if named else BROWSERS:
        if program := shutil.which(name, path=environment.get("PATH")):
            return program
    if named:
        raise PrintError(f"{BROWSER_SETTING}: {named} is not a program that can be started")
    raise PrintError(
        "a PDF requires Chromium, and none is on PATH. Install the package chromium, or "
        f"set {BROWSER_SETTING} to a Chromium or Chrome"
    )


def printed(html: str, program: str, seconds: float = SECONDS) -> bytes:
    """Return a page as PDF, on the paper size of its style (A4).

    Args:
        html: The page.
        program: The browser, see ``browser``.
        seconds: Timeout.

    Raises:
        PrintError: The browser failed, or did not print in time.
    """
    with tempfile.TemporaryDirectory(prefix="jmxlake-print-") as folder:
        source, target = Path(folder, "page.html"), Path(folder, "page.pdf")
        source.write_text(html, encoding="utf-8")
        command = [
            program,
            *_FLAGS,
            *["--no-sandbox"] * (os.geteuid() == 0),  # Chromium refuses to start with one as root
            f"--user-data-dir={Path(folder, 'profile')}",
            f"--print-to-pdf={target}",
            source.as_uri(),
        ]
        messages = _run(command, seconds)
        content = target.read_bytes() if target.is_file() else b""
    if not content.startswith(_MAGIC):
        raise PrintError(f"{program} printed nothing: {_reason(messages)}")
    return content


def _run(command: Sequence[str], seconds: float) -> str:
    """Run the browser until it and all its children have ended; return its standard error."""
    program = command[0]
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise PrintError(f"{program} cannot be started: {error.strerror}") from error
    try:
        return process.communicate(timeout=seconds)[1]
    except subprocess.TimeoutExpired as error:
        raise PrintError(f"{program} did not print within {seconds:g} s") from error
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def _reason(messages: str) -> str:
    """Return the last error in the browser's messages, without the place in its sources."""
    lines = [line.strip() for line in messages.splitlines() if line.strip()]
    errors = [line for line in lines if "ERROR" in line or "FATAL" in line] or lines
    return errors[-1].rpartition("] ")[2][:300] if errors else "it gave no reason"
