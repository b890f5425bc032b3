"""The start of a report: its period, headline and key figures.

A key figure has its change against the week before and its trend.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, cast, get_args

from lakehouse.core import display
from lakehouse.core.periods import instant
from lakehouse.core.subjects import is_whole
from lakehouse.report import figures
from lakehouse.report.facts.fields import Bounds, bounds_in
from lakehouse.report.facts.objectives.statement_rows import STATUSES, Status
from lakehouse.report.facts.report_record import QUESTIONS
from lakehouse.report.figures import Facts, Row
from lakehouse.report.summary import texts
from lakehouse.report.summary.objective_rows import Objective
from lakehouse.report.summary.texts import Frame, Text, blind, line, text, words

Change = Literal["worse", "better", "unclear", "same", "none"]
"""Against the week before; ``none``: there is nothing to compare with."""


class Headline(NamedTuple):
    """The worst status and its count.

    Attributes:
        status: The worst status of all objectives; ``no_data`` below the coverage floor.
        text: ``4 of 9 objectives missed``.
        then: ``the same 4 as last week``, or the first observation of the cluster; empty if there
            is nothing to compare with.
    """

    status: Status
    text: str
    then: str


class Tile(NamedTuple):
    """A key figure with its change and its trend.

    Attributes:
        anchor: The section of the details that it links to.
        label: ``Writes unavailable``.
        value: ``20 min``, ``≤ 42,000``, ``2 of 12``, ``not known``, ``not collected``.
        status: The worst status of its objectives; None: no objective is on it.
        note: ``worst topic: orders (±40 s)``.
        delta: ``+9 min vs W46``, ``+1 min; no clear change``; empty in a running week.
        change: Kind of the change.
        trend: The last eight weeks, oldest first. Greater is worse. None: not known.
        title: Exact figure and bounds, for a tooltip.
    """

    anchor: str
    label: str
    value: str
    status: Status | None
    note: Text
    delta: str
    change: Change
    trend: tuple[float | None, ...]
    title: str


def period(frame: Frame) -> str:
    """Return the dates of a period: ``Mon 16 to Sun 22 Nov 2026, UTC``."""
    start, end = frame.span
    zone = display.line(display.zone(), 40)
    first, last = (display.local(instant(us)) for us in (start, end))
    if first.date() == texts.date(end - 1) and (frame.word != "week"):
        hours = texts.clock(start), texts.clock(end)
        day = f"{texts.day(start)} {first.year}"
        return line("period.day", day=day, start=hours[0], end=hours[1], zone=zone)
    if any((each.hour, each.minute) != (0, 0) for each in (first, last)):
        shown = [f"{texts.day(us)} {texts.clock(us)}" for us in (start, end)]
        return line("period.days", first=shown[0], last=f"{shown[1]}, {last.year}", zone=zone)
    return line("period.days", first=_first_day(start, end - 1), last=_full(end - 1), zone=zone)


def _full(us: int) -> str:
    return f"{texts.day(us)} {texts.date(us).year}"


def _first_day(start: int, last: int) -> str:
    """Return the first day, without what it has in common with the last."""
    one, other = texts.date(start), texts.date(last)
    if one.year != other.year:
        return _full(start)
    day = texts.day(start)
    return day.rpartition("\u00a0")[0] if one.month == other.month else day


def elapsed(frame: Frame) -> str:
    """Return the elapsed share of a running period; empty if it has ended."""
    if not frame.is_running:
        return ""
    start, end = frame.span
    share = display.share((frame.observed_to - start) / (end - start), 0, "down")
    return line("period.running", period=frame.word, elapsed=share)


def headline(facts: Facts, objectives: Sequence[Objective], frame: Frame) -> Headline:
    """Return the headline of a report."""
    if frame.is_blind:
        return Headline("no_data", blind(frame), "")
    if not objectives:
        return Headline("no_data", words("headline.none"), "")
    tally = Counter(one.status for one in objectives)
    worst = next(status for status in STATUSES if tally[status])
    return Headline(worst, _text(worst, tally, frame), _then(facts, objectives, frame))


def _text(worst: Status, tally: Counter[Status], frame: Frame) -> str:
    count, total = tally[worst], tally.total()
    if worst == "missed" and frame.is_running:
        risk = tally["at_risk"] or None
        return line("headline.missed_so_far", count=count, total=total, at_risk=risk)
    if worst == "missed":
        return line("headline.missed", count=count, total=total)
    if worst in {"at_risk", "uncertain"}:
        status = words(f"status.{worst}").lower()
        return line("headline.none_missed", count=count, total=total, status=status)
    if worst == "no_data":
        met = tally["met"] or None
        name = "headline.no_data" if count < total else "headline.no_data_at_all"
        return line(name, count=count, total=total, met=met)
    if count < total:
        return line("headline.on_track_some", count=count, total=total, met=tally["met"] or None)
    several = total if total > 1 else None
    return line(f"headline.{worst}", all=several, one=None if several else total)


def _then(facts: Facts, objectives: Sequence[Objective], frame: Frame) -> str:
    """Return what is different from the week before; empty if there is nothing to compare with."""
    before = facts.get("previous")
    since = (facts.get("coverage") or {}).get("since")
    if since and not _is_whole_since(figures.moment(since), frame):
        return line("headline.since", since=display.day_and_time(since))
    if not before or before.get("missed") is None:
        return ""
    names = {one.name for one in objectives if one.status == "missed"}
    missed, newly = len(names), len(names & {*before["newly_missed"]})
    fewer = len(before["no_longer_missed"])
    if not missed:
        return line("headline.recovered", count=fewer) if fewer and not frame.is_running else ""
    if newly:
        return line("headline.newly", count=newly) if missed > 1 else words("headline.newly_one")
    if fewer:
        return "" if frame.is_running else line("headline.fewer", count=int(before["missed"]))
    return line("headline.same", count=missed)


def _is_whole_since(first_us: int, frame: Frame) -> bool:
    """Return True if nearly all of the time so far is after the first observation."""
    start = frame.span[0]
    elapsed_us = frame.observed_to - start
    return elapsed_us > 0 and is_whole(100 * (1 - (first_us - start) / elapsed_us))


_QUESTIONS: Final = {
    "writes_unavailable": "min-isr",
    "no_leader": "min-isr",
    "messages_lost": "lost",
    "clients_throttled": "throttling",
    "requests_failed": "availability",
    "produce_latency": "latency",
}
"""The question whose observed share a figure depends on."""

_SECTIONS: Final = {one.name: one.section for one in QUESTIONS}
_ANCHORS: Final = {
    "coverage": "coverage",
    **{name: _SECTIONS[question] for name, question in _QUESTIONS.items()},
}

_LEVELS: Final = ("topic", "group", "source", "client")


def tiles(facts: Facts, objectives: tuple[Objective, ...], frame: Frame) -> tuple[Tile, ...]:
    """Return the key figures in the order of the facts; none of a report that is blind."""
    if frame.is_blind:
        return ()
    by_name = {one.name: one for one in objectives}
    answers = {row["question"]: row for row in facts.get("answers") or ()}
    return tuple(_tile(row, by_name, answers, frame) for row in facts.get("key_figures") or ())


def _tile(
    row: Row, objectives: Mapping[str, Objective], answers: Mapping[str, Row], frame: Frame
) -> Tile:
    name = str(row["name"])
    objective = objectives.get(str(row.get("objective")))
    is_known = row.get("state") == "known" and _is_stated(bounds_in(row, "value"))
    delta, change = _delta(row, frame) if is_known else ("", "none")
    if is_known:
        value, note = _value(row), _note(row) or _partly(row, answers)
    else:
        value, note = _missing(row, answers)
    return Tile(
        anchor=_ANCHORS.get(name, "own-metrics"),
        label=_label(name, str(row.get("unit"))),
        value=value,
        status=objective.status if objective else None,
        note=note,
        delta=delta,
        change=cast("Change", change),
        trend=tuple(row.get("history") or ()),
        title=_title(row) if is_known else "",
    )


def _label(name: str, unit: str) -> str:
    label = words(f"tiles.{name}_{unit}") or words(f"tiles.{name}")
    return label or display.line(name, display.NAME_LIMIT)


def _is_stated(figure: Bounds) -> bool:
    """Return False if a figure is not known, or is 0 and unobserved time may hide more."""
    return bool(figure.value) or (figure.value is not None and figure.high is not None)


def _missing(row: Row, answers: Mapping[str, Row]) -> tuple[str, Text]:
    """Return the text of a figure without a value, and the reason."""
    if row.get("state") == "known":  # 0, and unobserved time may hide more
        percent = _answer(row, answers).get("observed_percent")
        shown = ""
        if percent is not None and percent < 100:
            shown = display.share(percent / 100, 1, "down")
        return display.NOT_KNOWN, text("tile.none_observed", share=shown)
    word, reason = texts.missing(row.get("state"), row.get("reason"))
    return word, (reason,) if reason else ()


def _value(row: Row) -> str:
    """Return a figure; at least it, where unobserved time may hide more."""
    value, low, high = bounds_in(row, "value")
    unit = str(row["unit"])
    if high is None:
        return figures.at_least(_of_all(row, _amount(low or value, unit)))
    if unit == "offsets" and high:
        return figures.at_most(_amount(high, unit))
    if unit == "clients" and low != high:
        bounds = line("amount.between", low=_amount(low, unit), high=_amount(high, unit))
        return _of_all(row, bounds)
    return _of_all(row, _amount(value, unit))


def _of_all(row: Row, count: str) -> str:
    if row.get("of") is None:
        return count
    return line("tile.of", count=count, known=int(row["of"]))


def _amount(value: Any, unit: str, digits: int = 2) -> str:
    if unit == "us":
        return figures.length(value)
    if unit == "share":
        return display.share(value, digits)
    if unit == "ms":
        return display.quantity(value, "ms")
    return display.count(value)


def _note(row: Row) -> Text:
    is_time, worst = row["unit"] == "us", bounds_in(row, "subject_value")
    bounds = texts.around(bounds_in(row, "value")) if is_time else ""
    level = next((key for key in _LEVELS if row.get(key) is not None), None)
    level = "client" if row.get("user") is not None or row.get("client_id") is not None else level
    if level is None:
        return (bounds,) if bounds else ()
    has_own_length = row.get("subject_unit") == "us" and not (
        is_time and worst == bounds_in(row, "value")
    )
    length = figures.length(worst.value) if has_own_length and worst.value else ""
    bounds = (texts.around(worst) or bounds) if is_time else ""
    if worst.value == 0 and not bounds:
        return ()  # no subject is the worst
    template = "tile.unobserved" if row["name"] == "coverage" else "tile.worst"
    subject = texts.subject(row)
    return text(template, level=level, subject=subject, length=length, bounds=bounds)


def _partly(row: Row, answers: Mapping[str, Row]) -> Text:
    """Return how much was observed if a figure without a worst subject depends on it."""
    answer = _answer(row, answers)
    percent = answer.get("observed_percent")
    # A question can be bad because of another figure.
    if percent is None or (answer["state"] != "partly_known" and is_whole(percent)):
        return ()
    return text("tile.partly", share=display.share(percent / 100, 1, "down"))


def _answer(row: Row, answers: Mapping[str, Row]) -> Row:
    """Return the answer to the question of a figure; empty without one."""
    return answers.get(_QUESTIONS.get(str(row["name"]), ""), {})


def _title(row: Row) -> str:
    """Return the bounds of a figure, and the unobserved time of its worst subject."""
    unknown = row.get("unknown_us")
    unobserved = line("tile.unknown_time", length=display.length(unknown, "up")) if unknown else ""
    return "; ".join(filter(None, (_bounds(row), unobserved)))


def _bounds(row: Row) -> str:
    unit, figure = str(row["unit"]), bounds_in(row, "value")
    if unit == "us":
        return texts.exactly(figure)
    if figure.low is None or figure.high is None or figure.low == figure.high:
        return ""
    low, high = (_amount(bound, unit, 3) for bound in (figure.low, figure.high))
    return line("amount.between", low=low, high=high)


def _delta(row: Row, frame: Frame) -> tuple[str, str]:
    """Return the change against the week before, in words and as a kind.

    A running week is not compared; the period of the report names it as running.
    """
    if frame.is_running:
        return "", "none"
    before = row.get("previous")
    change = row.get("change") if row.get("change") in get_args(Change) else "none"
    if not before:
        other = words("tile.untracked" if frame.has_week_before else "tile.none")
        return (other if frame.word == "week" else ""), "none"
    week = texts.week_name(before["week"])
    if before.get("value") is None:
        return line("tile.unknown", week=week), "none"
    if change == "same":
        return line("tile.same", week=week), "same"
    return _changed(row, before, week, is_clear=change != "unclear"), str(change)


def _changed(row: Row, before: Row, week: str, *, is_clear: bool) -> str:
    if row["unit"] == "share":
        shown = _amount(before["value"], "share")
        return line("tile.share" if is_clear else "tile.unclear_share", before=shown, week=week)
    difference = row["value"] - before["value"]
    sign = "+" if difference > 0 else "\u2212"
    shown = f"{sign}{_amount(abs(difference), row['unit'])}" if difference else ""
    name = "tile.delta" if is_clear else "tile.unclear"
    if not is_clear and before.get("high") is None:
        name = "tile.partly_known"
    return line(name, difference=shown, week=week)
