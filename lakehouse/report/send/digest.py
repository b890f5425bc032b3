"""A report in a few lines, for a mail or a message."""

from dataclasses import dataclass

from lakehouse.core import display
from lakehouse.report.facts_lookup import value_at, week_of
from lakehouse.report.figures import Facts, name, plain_text
from lakehouse.report.page.questions import answers
from lakehouse.report.page.sections import changed
from lakehouse.report.page.verdicts import Verdict, composites, headline, verdicts


@dataclass(frozen=True, slots=True)
class Digest:
    """The report in short; every text is safe to show, and none has a line break.

    Attributes:
        headline: The verdict on the period in one sentence.
        period: Its start and end, and its ISO week if it is one.
        about: The cluster, and the team.
        verdicts: The verdicts, worst first; those of composites before those of objectives.
        changed: A short name and an answer for each section on what changed.
        findings: A short name and an answer for each question.
        coverage: How much was seen.
    """

    headline: str
    period: str
    about: str
    verdicts: tuple[Verdict, ...]
    changed: tuple[tuple[str, str], ...]
    findings: tuple[tuple[str, str], ...]
    coverage: str

    @property
    def subject(self) -> str:
        """The subject of the mail."""
        return display.shorten(f"Kafka SLA: {self.headline} {self.period}, {self.about}", 200)


def digest(facts: Facts) -> Digest:
    """The digest of a report's facts, in their time zone."""
    with display.shown_in(display.zone_of(facts)):
        week = week_of(facts)
        seen = display.per_cent(value_at(facts, "coverage.percent"))
        period = display.period(facts["from"], facts["to"])
        cluster = f"cluster {name(facts.get('cluster')).text}"
        team = facts.get("team")
        return Digest(
            plain(headline(facts)),
            f"{period} ({week})" if week else period,
            cluster if team is None else f"team {name(team).text}, {cluster}",
            (*composites(facts), *verdicts(facts)),
            tuple((section.short, plain_text(section.answer)) for section in changed(facts)),
            tuple((section.short, plain_text(section.answer)) for section in answers(facts)),
            f"{seen} of the expected time was observed.",
        )


def plain(text: str) -> str:
    """The text with plain spaces, for media that wrap no lines themselves."""
    return text.replace("\u00a0", " ")
