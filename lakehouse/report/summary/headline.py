"""The headline: the worst status and its count, and what changed in the set."""

from collections import Counter
from collections.abc import Sequence

from lakehouse.core import display
from lakehouse.report.facts.objectives.budget import STATUSES, Status
from lakehouse.report.figures import Facts
from lakehouse.report.summary.frame import Frame
from lakehouse.report.summary.model import Headline, Objective
from lakehouse.report.summary.texts import line, words


def headline(facts: Facts, objectives: Sequence[Objective], frame: Frame) -> Headline:
    """Return the headline of a report."""
    if frame.is_blind:
        return Headline("no_data", blind(frame), "")
    if not objectives:
        return Headline("no_data", words("headline.none"), "")
    tally = Counter(one.status for one in objectives)
    worst = next(status for status in STATUSES if tally[status])
    return Headline(worst, _text(worst, tally, frame), _then(facts, objectives, frame))


def blind(frame: Frame) -> str:
    """Return that too little was observed, and how much."""
    if not frame.coverage:
        return line("headline.blind_at_all", period=frame.word)
    share = display.share(frame.coverage, 1, "down")
    return line("headline.blind", share=share, period=frame.word)


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
