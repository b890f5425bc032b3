"""Attainment per objective and subject over a period, with the interval that is honest.

Expected time is what the calendar and gold/subjects say, not what reported. See ``statement`` for
what is said, and docs/objectives.md for what it means.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from lakehouse import burn, partitions, slices, tables, tally
from lakehouse.burnt import with_burnt
from lakehouse.errors import ObjectiveError
from lakehouse.existence import Subject, subject, with_ends
from lakehouse.gold_rows import GoldRows, window_of
from lakehouse.maintenance import Maintenance
from lakehouse.occurrences import Counting
from lakehouse.periods import Period, instant, micros
from lakehouse.rollup.engine import ask
from lakehouse.spans import without
from lakehouse.statement import (
    VERDICTS,
    WHOLE,
    Asked,
    Key,
    Living,
    Named,
    Statement,
    Times,
    key_of,
    statement,
    statements,
)
from lakehouse.weighted import clusters_as_one

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakehouse.rollup.engine import Engine
    from lakehouse.slo_objective import Objective, Slices
    from lakehouse.statement import Counts
    from lakehouse.tally import Summed

__all__ = ["VERDICTS", "Manner", "Statement", "Times", "now_us", "of_sums", "of_time", "read"]


@dataclass(frozen=True, slots=True)
class Manner:
    """What is stated beside plain figures.

    Attributes:
        own_windows: Each objective is stated over the window of its own that ends with the period
            (see ``TimeWindow.of``), and not over the period.
        burns: Whether burn rates are.
        maintenance: What was planned.
        window_seconds: Length of gold's finest windows; by default what gold/progress says.
        only: Kind and key of whom alone is stated; by default everybody. The others still tell
            whether it has come to its end.
    """

    own_windows: bool = False
    burns: bool = False
    maintenance: tuple[Maintenance, ...] = ()
    window_seconds: int | None = None
    only: tuple[str, Key] | None = None

    def concerns(self, one: Subject) -> bool:
        """Whether a subject is stated."""
        return self.only is None or self.only == (one.kind, one.key)


_AS_ASKED: Final = Manner()


def read(
    engine: Engine,
    objectives: Sequence[Objective],
    period: Period,
    now_us: int,
    known: Sequence[Subject] | None = None,
    manner: Manner = _AS_ASKED,
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
    return _Reading(gold, period, until, manner).statements(objectives, known)


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
    timed = tuple(
        one for one in objectives if one.method == "GoodSeconds" and one.kind == one.level
    )
    living, _ = _living_until(known, min(now_us, micros(period.end)))
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


@dataclass(frozen=True, slots=True)
class _Reading:
    """Gold, asked in one manner; nothing is expected after ``until_us``."""

    gold: GoldRows
    period: Period
    until_us: int
    manner: Manner

    @property
    def window_us(self) -> int:
        """Length of gold's finest windows."""
        return self.gold.window_us

    def statements(
        self, objectives: Sequence[Objective], known: Sequence[Subject]
    ) -> list[Statement]:
        """All that is stated of some subjects.

        Raises:
            ObjectiveError: An objective's slices do not fit gold's windows.
        """
        every, ended = _living_until(known, self.until_us)
        living = [one for one in every if self.manner.concerns(one.subject)]
        asked = self._asked(objectives)
        found, counts = self._found(asked, living, ())
        stated = statements(asked, living, found, self.window_us)
        stated = [
            replace(
                one,
                counts=counts.get(key_of(one)),
                ahead_us=0 if _identity(one.subject) in ended else self._ahead_us(one),
            )
            for one in stated
        ]
        if self.manner.burns:
            stated = with_burnt(self.gold, stated, asked, living)
        stated = self._with_maintenance(stated, asked, living)
        return clusters_as_one(partitions.of_each(self.gold, stated, self.manner.maintenance))

    def _asked(self, objectives: Sequence[Objective]) -> list[Asked]:
        """Those together that can be summed up together: events are counted one by one."""
        alike: defaultdict[tuple[Slices | None, Period, str], list[Objective]] = defaultdict(list)
        for one in objectives:
            self._see_that_it_fits(one)
            alike[one.slices, self._period(one), one.name if one.events else ""].append(one)
        lengths = burn.LENGTHS_US if self.manner.burns else {}
        reached = self._reached_us() if lengths else 0
        return [
            Asked(tuple(own), cut, period, {} if name and cut is None else lengths, reached)
            for (cut, period, name), own in alike.items()
        ]

    def _see_that_it_fits(self, one: Objective) -> None:
        cut = one.slices
        if cut is None:
            return
        if not slices.fits(cut, self.window_us) or (one.events and cut.length_us < self.window_us):
            raise ObjectiveError(
                f"objective {one.name}: slices of {cut.length_us // 1_000_000} s do not fit gold's "
                f"windows of {self.window_us // 1_000_000} s; write a multiple"
            )

    def _period(self, objective: Objective) -> Period:
        """What an objective is stated over: no more than has begun."""
        if not self.manner.own_windows:
            return self.period
        own = objective.window.of(self._begun)
        until = Period(own.start, min(own.end, self.period.end), own.grain)
        return until.aligned(self.window_us // 1_000_000)

    @property
    def _begun(self) -> Period:
        """The period up to now, in whole windows: a rolling window ends where we are."""
        until = instant(-(-self.until_us // self.window_us) * self.window_us)
        end = min(until, self.period.end)
        return Period(self.period.start, end) if end > self.period.start else self.period

    def _ahead_us(self, one: Statement) -> int:
        """What of its window is yet to come, of a subject that goes on."""
        if not self.manner.own_windows:
            return 0
        return max(0, micros(one.objective.window.of(self._begun).end) - self.until_us)

    def _reached_us(self) -> int:
        """End of the last window of the period that tells of anything."""
        rows = self.gold.windows(tables.COVERAGE, self.period)
        ((last,),) = ask(self.gold.engine, "SELECT max(r.window) FROM {rows} r", rows=rows)
        return micros(self.period.end) if last is None else int(last) + self.window_us

    def _found(
        self, asked: Sequence[Asked], living: Sequence[Living], left_out: Sequence[Maintenance]
    ) -> tuple[Summed, dict[Named, Counts]]:
        """Times of all, those of events too, and the events."""
        timed = [one for one in asked if one.slices or one.objectives[0].events is None]
        found = tally.summed(self.gold, timed, living, left_out)
        counting = Counting(self.gold, living, left_out)
        spans = {(one.subject.cluster, one.subject.key): one.spans for one in living}
        counts: dict[Named, Counts] = {}
        for one in asked:
            within = one.ranges(self.window_us)[WHOLE]
            for objective in one.objectives:
                if objective.events is None:
                    continue
                told = counting.counts(objective, objective.events, within)
                counts |= told
                if objective.slices is not None:
                    continue
                for (cluster, name, key), own in told.items():
                    lived = spans.get((cluster, key), ())
                    expected = one.expected_us(within, lived, self.window_us)
                    found[cluster, name, key] = {WHOLE: own.times(expected)}
        return found, counts

    def _with_maintenance(
        self, stated: list[Statement], asked: Sequence[Asked], living: Sequence[Living]
    ) -> list[Statement]:
        """The same; where maintenance was planned, with it and with the figures but for it."""
        planned = [m for m in self.manner.maintenance if any(m.overlaps(a.period) for a in asked)]
        touched = {}
        for one in living:
            own = [m.windows(self.window_us) for m in planned if m.concerns(one.subject)]
            if own:
                left = [rest for span in one.spans for rest in without(span, own)]
                touched[_identity(one.subject)] = Living(one.subject, left)
        if not touched:
            return stated
        plain = [replace(one, lengths={}) for one in asked]
        found, counts = self._found(plain, list(touched.values()), planned)
        of = {objective.name: one for one in plain for objective in one.objectives}
        told = []
        for said in stated:
            each, asked_as = touched.get(_identity(said.subject)), of[said.objective.name]
            own_ = [m for m in planned if m.concerns(said.subject) and m.overlaps(asked_as.period)]
            if each is None or not own_:
                told.append(said)
                continue
            times = found.get(key_of(said), {})
            other = statement(asked_as, said.objective, each, times, self.window_us)
            other = replace(other, counts=counts.get(key_of(said)), ahead_us=said.ahead_us)
            told.append(replace(said, maintenance=tuple(own_), without=other))
        return told


def _living_until(known: Sequence[Subject], until_us: int) -> tuple[list[Living], set[_Identity]]:
    """When subjects existed, and which have come to their end."""
    by_cluster: defaultdict[str, list[Subject]] = defaultdict(list)
    for one in known:
        by_cluster[one.cluster].append(one)
    living, ended = [], set()
    for own in by_cluster.values():
        for one, end_us in with_ends(own):
            last = until_us if end_us is None else min(until_us, end_us)
            living.append(Living(one, [(one.first_us, last)] if one.first_us < last else []))
            if end_us is not None:
                ended.add(_identity(one))
    return living, ended


_Identity = tuple[str, str, Key]


def _identity(one: Subject) -> _Identity:
    return (one.cluster, one.kind, one.key)
