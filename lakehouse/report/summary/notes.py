"""Notes below the objectives: unobserved time, the pooled score, restated weeks."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from lakehouse.core import display
from lakehouse.report.figures import Facts, Row
from lakehouse.report.summary import amounts
from lakehouse.report.summary.frame import Frame
from lakehouse.report.summary.model import Objective, Text
from lakehouse.report.summary.objective_rows import LEVELS
from lakehouse.report.summary.texts import joined, line, listed, text, words

_COVERAGE: Final = "jmxlake.coverage"


def objectives_note(objectives: Sequence[Objective], frame: Frame) -> str:
    """Return how many objectives have which status."""
    if frame.is_blind:
        return line("objectives.blind", floor=display.share(frame.floor, 0))
    if not objectives:
        return line("headline.none") + "."
    if frame.is_running:
        return line("objectives.running", period=frame.word)
    tally = Counter(one.status for one in objectives)
    parts = [
        f"{tally[status]} {words(f'status.{status}').lower()}"
        for status in ("missed", "met", "at_risk", "uncertain", "no_data", "on_track")
        if tally[status]
    ]
    return line("objectives.tally", parts=", ".join(parts))


def notes(facts: Facts, objectives: Sequence[Objective], frame: Frame) -> tuple[Text, ...]:
    """Return the notes of a report, one sentence or two each."""
    found = _restated(facts)
    if not frame.is_blind:
        found += [_unobserved(facts, objectives, frame)]
        found += [() if frame.is_running else one for one in _pooled(facts)]
    found += [_since(facts)]
    return tuple(filter(None, found))


def _unobserved(facts: Facts, objectives: Sequence[Objective], frame: Frame) -> Text:
    """Return the longest unobserved time of a subject of each kind."""
    most: dict[str, int] = {}
    for one in facts.get("objectives") or ():
        if _COVERAGE not in (one.get("metrics") or ()) and one.get("level") in LEVELS:
            unknown = [row.get("unknown_us") or 0 for row in one.get("subjects") or ()]
            most[one["level"]] = max(most.get(one["level"], 0), *unknown, 0)
    times = [
        text("notes.per", length=display.length(us, "up"), level=level)
        for level, us in most.items()
        if us
    ]
    opening = (words("notes.running"),) if frame.is_running else ()
    if not times:
        return opening
    depends = (words("notes.uncertain"),) if frame.is_running else _depends(facts, objectives)
    neither = "" if frame.is_running or _policies(facts) else words("notes.neither")
    every = listed(times, len(times))
    sentence = text("notes.unobserved", times=every, neither=neither, depends=depends)
    return joined(opening, sentence, between=" ")


def _policies(facts: Facts) -> bool:
    """Return True if an objective counts unobserved time as good or bad."""
    known = {one.get("unknown") or "interval" for one in facts.get("objectives") or ()}
    return bool(known - {"interval"})


def _depends(facts: Facts, objectives: Sequence[Objective]) -> Text:
    lenient = sum(map(_is_lenient, facts.get("objectives") or ()))
    if lenient:
        return text("notes.lenient", count=lenient)
    is_open = any(one.status in {"uncertain", "no_data"} for one in objectives)
    return (words("notes.uncertain" if is_open else "notes.independent"),)


def _is_lenient(objective: Row) -> bool:
    """Return True if an objective is met only as it counts unobserved time."""
    subjects = objective.get("subjects") or ()
    return all(row.get("verdict") == "met" for row in subjects) and any(
        row.get("interval_verdict") not in (None, "met") for row in subjects
    )


def _pooled(facts: Facts) -> list[Text]:
    """Return the composites on all subjects, which have no status."""
    return [
        text(
            "notes.pooled",
            title=display.line(row["title"]),
            count=sum(one["subjects"] > 0 for one in row["objectives"]),
            share=display.share(row.get("attainment")),
            target=display.share(row.get("target")),
        )
        for row in facts.get("composites") or ()
        if not (row.get("team") or row.get("tier")) and row.get("attainment") is not None
    ]


def _restated(facts: Facts) -> list[Text]:
    """Return how many results of this report, and which weeks, changed after publication."""
    count = len(facts.get("restated") or ())
    histories = [one.get("history") or () for one in facts.get("objectives") or ()]
    weeks = sorted({row["week"] for each in histories for row in each if row.get("restated")})
    names = list(map(amounts.week_name, weeks))
    return [
        text("notes.restated", count=count) if count else (),
        text("notes.restated_weeks", weeks=listed(names, len(names))) if names else (),
    ]


def _since(facts: Facts) -> Text:
    since = (facts.get("coverage") or {}).get("since")
    return text("notes.since", since=display.day_and_time(since)) if since else ()


def not_collected(facts: Facts) -> tuple[str, ...]:
    """Return what no agent collects, from the decisions on each question."""
    names = (
        row["question"] for row in facts.get("answers") or () if row["state"] == "not_collected"
    )
    return tuple(
        line("not_collected", asked=words(f"asked.{name}"), data=data)
        for name in names
        if (data := words(f"data.{name}"))
    )
