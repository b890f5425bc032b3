"""Attainment per objective and subject over a period, with the interval that is honest.

Expected time is what the calendar and gold/subjects say, not what reported. See ``statement`` for
what is said, and docs/objectives.md for what it means.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from lakehouse import tables
from lakehouse.asked import WHOLE, Asked
from lakehouse.existence import Subject, subject
from lakehouse.gold_rows import GoldRows, window_of
from lakehouse.periods import micros
from lakehouse.sla_published import publish
from lakehouse.sla_reading import Manner, Reading, living_until
from lakehouse.statement import VERDICTS, Statement
from lakehouse.statements import statements
from lakehouse.tallied import Times

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakehouse.asked import Named
    from lakehouse.periods import Period
    from lakehouse.rollup.engine import Engine
    from lakehouse.slo_objective import Objective

__all__ = [
    "AS_ASKED",
    "VERDICTS",
    "Manner",
    "Statement",
    "Times",
    "now_us",
    "of_sums",
    "of_time",
    "publish",
    "read",
    "subjects",
]  # fmt: skip

AS_ASKED: Final = Manner()


def read(
    engine: Engine,
    objectives: Sequence[Objective],
    period: Period,
    now_us: int,
    known: Sequence[Subject] | None = None,
    manner: Manner = AS_ASKED,
) -> list[Statement]:
    """Statements from gold over a period of whole windows.

    Args:
        engine: Reads gold.
        objectives: What is asked for.
        period: What the statements are about.
        now_us: Nothing is expected later than this.
        known: All subjects of the clusters that are asked for; by default of every cluster.
        manner: What else is stated.

    Raises:
        ObjectiveError: An objective's slices do not fit gold's windows.
        PeriodError: It takes finest windows of gold that are kept no more.
    """
    known = subjects(engine) if known is None else known
    if not known:
        return []
    seconds = manner.window_seconds or window_of(engine)
    until = min(now_us, micros(period.end))
    gold = GoldRows(engine, seconds * 1_000_000)
    return Reading(gold, period, until, manner).statements(objectives, known)


def of_sums(
    objectives: Sequence[Objective],
    known: Sequence[Subject],
    times: Mapping[Named, Times],
    period: Period,
    now_us: int,
) -> list[Statement]:
    """Statements on time that somebody summed up; of objectives in slices or events, none.

    Args:
        objectives: What is asked for.
        known: All subjects of the clusters that are asked for.
        times: Sums of gold/sli over the period.
        period: What the statements are about.
        now_us: Nothing is expected later than this.
    """
    timed = tuple(one for one in objectives if one.slices is None and one.events is None)
    timed = tuple(one for one in timed if one.kind == one.level)
    living, _ = living_until(known, min(now_us, micros(period.end)))
    found = {named: {WHOLE: one} for named, one in times.items()}
    return statements([Asked(timed, None, period)], living, found, window_us=1)


def of_time(
    promised: Sequence[Statement], objectives: Sequence[Objective], period: Period
) -> tuple[list[Statement], list[Objective]]:
    """Which statements tell of the time of just one period, and what is to be asked for the rest.

    The rest are objectives over other windows, in slices, or of some subjects only. Those of
    events tell of no time, and nothing is asked instead.
    """
    others = {one.objective.name for one in promised if one.period != period}
    others |= {one.name for one in objectives if one.slices or one.events or one.match}
    others |= {one.name for one in objectives if one.kind != one.level}
    told = [one for one in promised if one.objective.name not in others]
    asked = (one for one in objectives if one.name in others and one.events is None)
    return told, [replace(one, level=one.kind, slices=None, match={}) for one in asked]


def subjects(engine: Engine) -> list[Subject]:
    """All of gold/subjects, in the order of their names, however the table lies in files."""
    rows = engine.collect(engine.rows(tables.SUBJECTS)).to_pylist(maps_as_pydicts="strict")
    found = [subject(row) for row in rows]
    return sorted(found, key=lambda one: (one.cluster, one.kind, [name or "" for name in one.key]))


def now_us() -> int:
    """This instant, microseconds."""
    return micros(dt.datetime.now(dt.UTC))
