"""Good statements of a report, and those of them that the truth contradicts.

A statement is good if it says none, zero, exactly so many (±0), 100 % or met: in the facts (JSON),
in the headline or in the line of a section of the page. It reassures falsely if its
subject was bad for longer than the report's detection floor. A statement that says how much is
unknown, or that there is no upper bound, is not good, and neither is one of an observed share.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lakehouse.report.summary.summarize import summarize
from lakehouse.report.tables.section import details
from tests.truth import expected, logs
from tests.truth.judge import floor_of
from tests.truth.logs import GROUPS
from tests.truth.steps import clipped, without
from tests.truth.world import S

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tests.truth.expected import Truth
    from tests.truth.judge import Check
    from tests.truth.logs import Truths
    from tests.truth.schedule import Schedule, Watch
    from tests.truth.steps import Span

Row = dict[str, Any]
_GOOD: Final = re.compile(r"^(No|Nothing|0) |(?<![\d.,])100 %")
_SAYS_UNKNOWN: Final = re.compile(
    r"\bnot known\b|\bunknown\b|\bat least\b|\bobserved\b|\bcoverage \d|\bwithout data\b",
    re.IGNORECASE,
)
_ALL_OF: Final = {"100 % of produce": "produce", "100 % of fetch": "fetch"}
_ALL_MET: Final = re.compile(r"^(All )?\d+ objectives? met\b")
_SECTIONS: Final = {
    "availability": "min-isr", "throttling": "throttling", "tiered": "tier-lag", "loss": "lost",
    "requests": "availability",
}  # fmt: skip
"""Questions of the sections whose lines are judged."""
_MAX_GAP: Final = 3.5
"""Intervals after the last answer from which on time is surely unknown: 2.5, and one before it."""
_LONGEST_US: Final = 60 * S
_COUNTS: Final = ("offsets lost", "errors", "answers")
_LOST: Final = "lost-before-read"


class Claim(NamedTuple):
    """A good statement.

    Attributes:
        subject: Of whom or what.
        says: In words.
        is_false: Whether the truth contradicts it.
    """

    cluster: str
    subject: str
    says: str
    is_false: bool


def claims(schedule: Schedule, facts: Row, checks: Iterable[Check]) -> list[Claim]:
    """Every good statement of a report.

    Args:
        schedule: What happened.
        facts: The report.
        checks: Its figures and their truths, as ``judge.py`` has them.
    """
    counted = logs.truths(schedule.world)
    bad = truths(schedule, floor_of(facts))
    return [
        Claim(schedule.cluster, *one)
        for some in (
            _of_checks(checks),
            _of_verdicts(facts, bad, counted),
            _of_losses(facts, counted),
            _of_answers(facts, counted),
            _of_coverage(schedule, facts),
            _of_sentences(schedule, facts, bad, counted),
        )
        for one in some
    ]


def truths(schedule: Schedule, floor_us: int) -> dict[tuple[str, str], Truth]:
    """By objective and subject."""
    found = dict(expected.by_topic(schedule.world, floor_us))
    for (kind, client), truth in expected.throttling(schedule.world, floor_us).items():
        found[f"{kind}-throttling", client] = truth
    return found


def _of_checks(checks: Iterable[Check]) -> Iterator[tuple[str, str, bool]]:
    """Durations and shares: none at all, or exactly so much."""
    for one in checks:
        if one.unknown_us or one.figure in _COUNTS:
            continue
        slack = 1.0 if one.figure.startswith("attainment") else 0.0
        if one.high <= slack:
            says = "100 %" if slack else "none"
            yield one.subject, f"{one.figure}: {says}", one.truth.least > 0
        elif one.high - one.low <= 2 * slack:
            yield one.subject, f"{one.figure}: exact (±0)", not one.contained


def _of_verdicts(
    facts: Row, bad: Mapping[tuple[str, str], Truth], counted: Truths
) -> Iterator[tuple[str, str, bool]]:
    """Objectives: met of a subject, met as a whole, all met; 100 % of a group that lost records."""
    lost = _by_group(counted)
    all_wrong: list[str] = []
    for objective in facts["objectives"]:
        name, wrong = objective["name"], []
        if objective.get("unknown") == "good":
            continue  # somebody chose that
        for row in objective["subjects"]:
            subject = row["topic"] or row["client_id"] or row["group"]
            if name == _LOST and row["unknown_us"] == 0 and row["attainment_low"] == 1:
                yield str(subject), f"{name}: 100 %", lost.get(str(subject), 0) > 0
            if (truth := bad.get((name, str(subject)))) is None:
                continue
            is_missed = truth.least > (1 - objective["target"]) * row["expected_us"]
            wrong += [subject] if is_missed else []
            if row["verdict"] == "met":
                yield str(subject), f"{name}: met", is_missed
        all_wrong += wrong
        whole = [one["verdict"] for one in facts["verdicts"] if one["objective"] == name]
        if "met" in whole:
            yield "all subjects", f"{name}: met", bool(wrong)
    text = summarize(facts).headline.text
    if _ALL_MET.search(text):
        yield "all objectives", text, bool(all_wrong)


def _by_group(counted: Truths) -> dict[str, int]:
    found = dict.fromkeys(GROUPS, 0)
    for commit, number in counted.lost.items():
        found[commit.group] += number
    return found


def _of_losses(facts: Row, counted: Truths) -> Iterator[tuple[str, str, bool]]:
    """Offsets lost by group and partition; without a row none is lost, unless time is unknown."""
    rows = {
        (row["group"], row["topic"], row["partition"]): row
        for row in facts["lost_before_read"]["groups"] or ()
    }
    unknown = {
        row["group"]: row["unknown_us"]
        for one in facts["objectives"] if one["name"] == _LOST
        for row in one["subjects"]
    }  # fmt: skip
    for commit, truth in counted.lost.items():
        where = f"{commit.group} {commit.topic}-{commit.partition}"
        row = rows.get(commit)
        if row is None:
            if unknown.get(commit.group) == 0:
                yield where, "offsets lost: none", truth > 0
            continue
        low, high = row["offsets_low"], row["offsets_high"]
        if high == 0:
            yield where, "offsets lost: none", truth > 0
        elif low == high:
            yield where, "offsets lost: exact (±0)", truth != low


def _of_answers(facts: Row, counted: Truths) -> Iterator[tuple[str, str, bool]]:
    """Availability of all brokers: no error, or all answers without one."""
    for row in facts["service"]["requests"] or ():
        request = row["request"]
        if row["errors_high"] == 0:
            yield request, "errors: none", counted.errors[request] > 0
        if row["good_low"] == 1:
            yield request, "answered without an error: 100 %", counted.errors[request] > 0
        if row["answers_low"] == row["answers_high"]:
            is_false = counted.answers[request] != row["answers_low"]
            yield request, "answers: exact (±0)", is_false


def _of_coverage(schedule: Schedule, facts: Row) -> Iterator[tuple[str, str, bool]]:
    """All, or nearly all, of a source was observed."""
    start_us, end_us = period = schedule.world.shape.period
    for row in facts["coverage"]["sources"]:
        watch = schedule.watches[int(row["source"].removeprefix("broker-"))]
        gaps = clipped(_unattended(watch, period), period)
        most_us = _MAX_GAP * (row["interval_us"] or _LONGEST_US)
        least_us = sum(max(0.0, end - start - most_us) for start, end in gaps)
        unknown_us = row["unknown_us"]
        if unknown_us is not None and unknown_us <= (end_us - start_us) / 100:
            says = f"coverage of {row['family']}: {row['percent']} %"
            yield row["source"], says, unknown_us < least_us


def _unattended(watch: Watch, period: Span) -> list[Span]:
    """When there was no agent, neither this one nor its twin."""
    away = [span for span, _ in watch.away]
    if watch.twin is None:
        return away
    return without(away, without([period], [span for span, _ in watch.twin.away]))


def _of_sentences(
    schedule: Schedule, facts: Row, bad: Mapping[tuple[str, str], Truth], counted: Truths
) -> Iterator[tuple[str, str, bool]]:
    """Statements in the lines of sections that say none or 100 %, and states of questions."""
    is_bad = _bad_questions(schedule, bad, counted)
    for one in facts.get("answers") or ():
        if one["state"] == "good" and one["question"] in is_bad:
            yield one["question"], "state: good", any(is_bad[one["question"]].values())
    for detail in details(facts, summarize(facts)):
        about = is_bad.get(_SECTIONS.get(detail.anchor, ""), {})
        line = detail.line.replace("\u00a0", " ")
        for said in line.split("; "):
            words = [word for word in about if word in said]
            if not words or not _GOOD.search(said) or _SAYS_UNKNOWN.search(said):
                continue
            if said.startswith(("No ", "Nothing ", "0 ")) and _SAYS_UNKNOWN.search(line):
                continue
            yield detail.anchor, said, any(about[word] for word in words)


def _bad_questions(
    schedule: Schedule, bad: Mapping[tuple[str, str], Truth], counted: Truths
) -> dict[str, dict[str, bool]]:
    """By question, and by a word of the statements about it: whether anything was bad."""

    def any_of(*names: str) -> bool:
        return any(truth.least > 0 for (name, _), truth in bad.items() if name in names)

    throttled = any_of("produce-throttling", "fetch-throttling", "request-throttling")
    found = {
        "availability": {"leader": any_of("leaderless")},
        "min-isr": {"topic": any_of("min-isr", "leaderless")},
        "throttling": {"client": throttled},
        "tier-lag": {"affected": any_of("copy-lag", "delete-lag")},
    }
    if schedule.world.logs:
        found["lost"] = {"group": any(counted.lost.values())}
        for words, request in _ALL_OF.items():
            found["availability"][words] = counted.errors[request] > 0
    return found
