"""The table of objectives: one row and one status each, worst first."""

import fnmatch
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from lakehouse.core import display
from lakehouse.core.metrics import COVERAGE
from lakehouse.core.periods import DAY_US, Span
from lakehouse.core.subjects import is_whole
from lakehouse.report import figures
from lakehouse.report.facts.fields import Bounds, bounds_in
from lakehouse.report.facts.objectives.statement_rows import STATUSES, Status
from lakehouse.report.facts.report_record import QUESTIONS
from lakehouse.report.figures import Facts, Name, Row
from lakehouse.report.owners import shown
from lakehouse.report.summary import texts
from lakehouse.report.summary.texts import Frame, Text, line, text, words


class Week(NamedTuple):
    """The status of an objective in one week."""

    name: str
    status: Status


class Objective(NamedTuple):
    """One row of the table of objectives.

    Attributes:
        name: Name of its file, for anchors.
        title: ``Unread data loss``.
        status: Its one status.
        word: ``Missed``.
        worst: Worst subject, its bad time with wide bounds, and how many subjects missed.
        attained: ``98.76 %``, ``98.9 to 99.9 %`` where the bounds could change the status;
            ``not known``, ``not collected`` or ``not applicable``, with the reason in ``worst``.
        bounds: Exact figure and bounds, for a tooltip.
        target: ``target 99.9 %``; with windows that are not the period: ``28 days to 22 Nov``.
        used: Budget used by the worst subject: ``1,240 %``, ``not known``.
        used_share: The same, as a fraction of the whole window's budget; None: not known.
        used_low: At least; None: not known.
        used_high: At most, unobserved time included; None: not known.
        left: Budget left at the end of each hour so far, fraction of the whole; empty: not known.
        weeks: The last eight weeks, oldest first.
        owner: Owner of the worst subject; None: no owners file, or no owner.
        section: Anchor of the details.
        note: Business hours, corrections: a second line, mostly empty.
        subject: Name of the worst subject; empty without subjects.
        unobserved_us: Its unobserved time, microseconds; None: not known.
    """

    name: str
    title: str
    status: Status
    word: str
    worst: Text
    attained: str
    bounds: str
    target: str
    used: str
    used_share: float | None
    used_low: float | None
    used_high: float | None
    left: tuple[float, ...]
    weeks: tuple[Week, ...]
    owner: Name | None
    section: str
    note: str
    subject: Text = ()
    unobserved_us: int | None = None


class _Judged(NamedTuple):
    """An objective of the facts with its verdict and its worst subject."""

    row: Row
    verdict: Row
    worst: Row | None
    status: Status
    used: Bounds
    is_known: bool


def objective_rows(facts: Facts, frame: Frame) -> tuple[Objective, ...]:
    """Return the rows of all objectives, worst first."""
    verdicts = {row["objective"]: row for row in facts.get("verdicts") or ()}
    judged = [
        _judged(row, verdicts.get(row["name"], {}), frame) for row in facts.get("objectives") or ()
    ]
    judged.sort(key=lambda one: (STATUSES.index(one.status), -(one.used[0] or 0)))
    return tuple(_objective(one, facts, frame) for one in judged)


def _judged(row: Row, verdict: Row, frame: Frame) -> _Judged:
    worst = worst_subject(row)
    status = _status(row, frame)
    is_known = worst is not None and worst.get("attainment") is not None
    is_known = is_known and status != "no_data"
    used = bounds_in(row, "used") if is_known else Bounds()
    return _Judged(row, verdict, worst, status, used, is_known)


def worst_subject(row: Row) -> Row | None:
    """Return the subject that an objective's figures are of; None without subjects."""
    subjects = row.get("subjects") or ()
    used = row.get("used")
    of_used = (one for one in subjects if used is not None and one.get("used") == used)
    return next(of_used, subjects[0] if subjects else None)


def _status(row: Row, frame: Frame) -> Status:
    found = row.get("status")
    status = cast("Status", found) if found in STATUSES else "no_data"
    # Too little coverage leaves only what is certain: that an objective is missed.
    return "no_data" if frame.is_blind and status != "missed" else status


def _objective(one: _Judged, facts: Facts, frame: Frame) -> Objective:
    row, worst = one.row, one.worst
    used, low, high = one.used
    if one.is_known:
        (share, share_used), about = _figures(one, frame), _worst(one, frame)
    else:
        share, about = _missing(one, facts, frame)
        share_used = share
    return Objective(
        name=row["name"],
        title=display.line(row.get("title") or row["name"]),
        status=one.status,
        word=words(f"status.{one.status}"),
        worst=about,
        attained=share,
        bounds=_bounds(worst) if one.is_known and worst else display.NOT_KNOWN,
        target=_target(row, frame),
        used=share_used,
        used_share=used,
        used_low=low,
        used_high=high,
        left=tuple(worst.get("left") or ()) if one.is_known and worst else (),
        weeks=_weeks(row, one.status, frame),
        owner=_owner(row, worst),
        section=section_of(row.get("metrics") or ()),
        note=_note(row["name"], worst, facts) if one.is_known and worst else "",
        subject=texts.subject(worst) if worst else (),
        unobserved_us=(worst or {}).get("unknown_us"),
    )


def _figures(one: _Judged, frame: Frame) -> tuple[str, str]:
    """Return attainment and used budget; their bounds if unobserved time is much of them."""
    worst, (used, low, high) = one.worst or {}, one.used
    least, most = worst.get("attainment_low"), worst.get("attainment_high")
    is_wide = one.status == "uncertain" or frame.is_blind or not _is_observed(worst)
    if is_wide and least is not None and most is not None:
        share = texts.between_shares(least, most, 1, float(one.row["target"]))
        return share, texts.used_between(low, high)
    apart = (0, 1, float(one.row["target"]))
    share = display.share(worst.get("attainment"), apart=apart)
    return share, texts.used(used)


def _is_observed(worst: Row) -> bool:
    """Return True if nearly all expected time of a subject was observed."""
    expected_us, unknown_us = worst.get("expected_us"), worst.get("unknown_us")
    return not expected_us or not unknown_us or is_whole(100 * (1 - unknown_us / expected_us))


def _bounds(worst: Row) -> str:
    low, high = worst.get("attainment_low"), worst.get("attainment_high")
    if low is None or high is None:
        return display.NOT_KNOWN
    if low == high:
        return display.share(low, 3)
    shares = display.share(low, 3, "down"), display.share(high, 3, "up")
    return line("objective.bounds", low=shares[0], high=shares[1])


def _worst(one: _Judged, frame: Frame) -> Text:
    worst = one.worst or {}
    figure = bounds_in(worst, "bad_us")
    unknown = worst.get("unknown_us") if one.status == "uncertain" else None
    bad = figures.length(figure.value) if figure.value else words("objective.nothing_bad")
    bounds = texts.around(figure)
    if events := worst.get("events"):
        total = display.count(events["total"])
        bad, bounds = line("objective.events", bad=display.count(events["bad"]), total=total), ""
    return text(
        "objective.worst",
        subject=texts.subject(worst),
        bad=bad,
        bounds=bounds,
        unknown=display.length(unknown, "up") if unknown else "",
        tally=_tally(one, frame),
    )


def _tally(one: _Judged, frame: Frame) -> str:
    """Return how many subjects have the status of the objective."""
    subjects, total = _subjects(one.row), len(one.row.get("subjects") or ())
    if one.status not in {"missed", "uncertain", "met"} or total == 1 or frame.is_running:
        return subjects
    for verdict in ("missed", "uncertain"):
        if count := one.verdict.get(verdict):
            status = words(f"status.{verdict}").lower()
            return line("objective.some", count=count, subjects=subjects, status=status)
    return line("objective.all_met", subjects=subjects) if one.status == "met" else subjects


def _subjects(row: Row) -> str:
    level = row.get("level")
    return display.plural(
        len(row.get("subjects") or ()), str(level) if level in LEVELS else "subject"
    )


LEVELS: Final = ("topic", "partition", "client", "group", "broker", "source", "cluster")
"""Kinds of subjects, as nouns."""


def _missing(one: _Judged, facts: Facts, frame: Frame) -> tuple[str, Text]:
    """Return the text of an attainment without a value, and the reason.

    An objective without subjects has the text and the reason of its key figure.
    """
    if one.row.get("subjects") or frame.is_blind:
        return display.NOT_KNOWN, _unobserved(one)
    metrics = {*(one.row.get("metrics") or ())}
    names = {question.name for question in QUESTIONS if metrics & {*question.judged}}
    answers = (row for row in facts.get("answers") or () if row["question"] in names)
    answer: Row = next((row for row in answers if row.get("reason")), {})
    word, reason = texts.missing(answer.get("state"), answer.get("reason"))
    return word, (reason,) if reason else _unobserved(one)


def _unobserved(one: _Judged) -> Text:
    """Return how many subjects were not observed long enough."""
    subjects, total = _subjects(one.row), len(one.row.get("subjects") or ())
    if not total:
        return text("objective.no_subject", subjects=subjects)
    count = one.verdict.get("no_data") or total
    return text("objective.no_data", count=count if count < total else None, subjects=subjects)


def _target(row: Row, frame: Frame) -> str:
    percent = round(float(row["target"]) * 100, 6)
    digits = next(digits for digits in range(1, 7) if round(percent, digits) == percent)
    return line("objective.target", target=f"{percent:.{digits}f} %", window=_window(row, frame))


def _window(row: Row, frame: Frame) -> str:
    """Return the time that an objective is judged over, where it is not the period."""
    if not row.get("from") or not row.get("to"):
        return ""
    own: Span = figures.span_of(row, "from", "to")
    if own == frame.span:
        return ""
    days = round((own[1] - own[0]) / DAY_US)
    return line("objective.window", days=days, last=_short_day(own[1] - 1)) if days else ""


def _short_day(us: int) -> str:
    return texts.day(us).partition("\u00a0")[2]


def _weeks(row: Row, status: Status, frame: Frame) -> tuple[Week, ...]:
    """Return the statuses of the last weeks; of a report of a week, the last is the row's."""
    history = row.get("history") or ()
    found = [Week(texts.week_name(one["week"]), _of_week(one)) for one in history]
    if found and frame.word == "week":
        found[-1] = found[-1]._replace(status=status)
    return tuple(found)


def _of_week(week: Row) -> Status:
    return cast("Status", display.verdict(week.get("verdict")))


def _owner(row: Row, worst: Row | None) -> Name | None:
    owner = row.get("owner") or shown(worst or {})
    return None if owner is None else figures.name(owner)


def section_of(metrics: Sequence[str]) -> str:
    """Return the anchor of the details of an objective: of the first question with its figures."""
    if COVERAGE in metrics:
        return "coverage"
    names = [*metrics, *(f"{one}.low" for one in metrics)]  # objectives omit .low and .high
    return next(
        (
            one.section
            for one in QUESTIONS
            for pattern in (*one.judged, *one.metrics)
            if fnmatch.filter(names, pattern)
        ),
        "own-metrics",
    )


def _note(name: str, worst: Row, facts: Facts) -> str:
    """Return the figures in business hours and with agreed corrections."""
    notes = []
    for own in (facts.get("business_hours") or {}).get("objectives") or ():
        if own["name"] == name and (least := worst_subject(own)):
            share = display.share(least.get("attainment"))
            notes.append(line("objective.business_hours", share=share))
    if agreed := worst.get("agreed"):
        notes.append(_agreed(agreed))
    return "; ".join(notes)


def _agreed(agreed: Mapping[str, Any]) -> str:
    word = words(f"status.{display.verdict(agreed.get('verdict'))}")
    return line("objective.agreed", share=display.share(agreed.get("attainment")), word=word)
