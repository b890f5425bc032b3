"""A report in a few lines: what a mail and a message say of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakehouse.report import words
from lakehouse.report.figures import name, sentence
from lakehouse.report.lookup import value_at, week_of
from lakehouse.report.page import changed
from lakehouse.report.questions import questions
from lakehouse.report.verdicts import WORDS, Verdict, headline, verdicts

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Line:
    """One objective's verdict.

    Attributes:
        verdict: As in the facts.
        word: As people say it.
        title: The objective.
        detail: Its target and how many subjects there are.
        worst: The subject with the lowest share, and that share; empty where there is none.
    """

    verdict: str
    word: str
    title: str
    detail: str
    worst: str

    @property
    def mark(self) -> str:
        """Its shape, as a letter."""
        return words.MARKS[self.verdict]


@dataclass(frozen=True, slots=True)
class Digest:
    """The report in short; every text is fit to be shown, and none has a line break.

    Attributes:
        headline: The period in one sentence.
        period: From when to when, and which week that is.
        about: Which cluster, and whose part of it.
        lines: The verdicts, worst first.
        changed: What changed, and how to take the verdicts: a short name and a sentence each.
        findings: Each question's short name and its answer.
        coverage: How much was seen.
    """

    headline: str
    period: str
    about: str
    lines: tuple[Line, ...]
    changed: tuple[tuple[str, str], ...]
    findings: tuple[tuple[str, str], ...]
    coverage: str

    @property
    def subject(self) -> str:
        """What stands above it in a list of mails."""
        return words.shorten(f"Kafka SLA: {self.headline} {self.period}, {self.about}", 200)


def digest(facts: Mapping[str, Any]) -> Digest:
    """The digest of a report's facts, in the time zone that they ask for."""
    with words.shown_in(words.zone_of(facts)):
        week = week_of(facts)
        seen = words.per_cent(value_at(facts, "coverage.percent"))
        period = words.period(facts["from"], facts["to"])
        return Digest(
            _plain(headline(facts)),
            _plain(f"{period} ({week})" if week else period),
            _plain(_about(facts)),
            tuple(map(_line, verdicts(facts))),
            tuple((one.short, _plain(sentence(one.answer))) for one in changed(facts)),
            tuple((one.short, _plain(sentence(one.answer))) for one in questions(facts)),
            _plain(f"{seen} of the expected time was seen."),
        )


def _about(facts: Mapping[str, Any]) -> str:
    cluster = f"cluster {name(facts.get('cluster')).text}"
    team = facts.get("team")
    return cluster if team is None else f"team {name(team).text}, {cluster}"


def _line(one: Verdict) -> Line:
    worst = " ".join(f"{part.label} {part.text}".strip() for part in one.worst)
    share = "" if one.attainment is None else f"Lowest: {worst} {one.attainment.text}"
    detail = f"{one.counts}; {one.target}"
    return Line(one.verdict, WORDS[one.verdict], *map(_plain, (one.title, detail, share)))


def _plain(text: str) -> str:
    """Ties between numbers and units are spaces where no line is broken by anybody."""
    return " ".join(text.replace("\u00a0", " ").split())
