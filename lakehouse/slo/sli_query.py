"""Rows of gold/sli that objectives share: their ranges, slices of time, and excluded windows.

Slices are good or bad, as OpenSLO's Timeslices and RatioTimeslices define them. gold/sli has good
and bad time per window, without its position. A slice of several windows is their sum. If a window
has several slices, its bad time may be in few of them or in many, so the number of bad slices is
known within bounds.

A slice without any observed time is unknown. A partly observed slice is judged by that part, and
the bounds count the rest both ways. The results are times, each slice at its full length, so that
statements treat them like other times.

The judgement is SQL over these columns, microseconds:
    good, bad, low, high: of a slice, or of a window of several slices.
    expected: the time in it in which the subject existed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from lakehouse.core.objective import Events, Objective, Slices
from lakehouse.core.periods import Period, Span, overlap
from lakehouse.core.subjects import SUBJECT, SUBJECT_COLUMNS, Subject
from lakehouse.engines.relation import Relation, is_one_of, select
from lakehouse.slo.report_calendar import Maintenance, matches

Key = tuple[str | None, ...]
SliKey = tuple[str, str, Key]
"""Cluster, objective and subject."""

PERIOD: Final = "period"
"""The name of the range that is the whole period."""


class Lifetime(NamedTuple):
    """A subject and its active periods."""

    subject: Subject
    spans: Sequence[Span]
    has_ended: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """Objectives whose times are sums of the same rows over the same period.

    Attributes:
        objectives: Objectives with the same slices. An objective on events has its own query.
        period: Whole windows.
        window_us: Finest grain of gold.
        lengths: Further ranges that end at ``until_us``, microseconds by name.
        until_us: An edge of windows.
        ahead_us: Rest of an objective's window after the present, by the objective's name.
    """

    objectives: tuple[Objective, ...]
    period: Period
    window_us: int
    lengths: Mapping[str, int] = field(default_factory=dict)
    until_us: int = 0
    ahead_us: Mapping[str, int] = field(default_factory=dict)

    @property
    def slices(self) -> Slices | None:
        """The slices of its objectives."""
        return self.objectives[0].slices

    @property
    def events(self) -> Events | None:
        """The events that are counted."""
        return self.objectives[0].events

    @property
    def ranges(self) -> dict[str, Span]:
        """The period, and the lengths that are made of whole windows or slices; microseconds."""
        whole, size = self.period.span, self.unit_us
        until = whole[0] + (self.until_us - whole[0]) // size * size
        fitting = {name: length for name, length in self.lengths.items() if length % size == 0}
        return {PERIOD: whole, **{name: (until - us, until) for name, us in fitting.items()}}

    @property
    def unit_us(self) -> int:
        """Length of the rows that are judged: a window, or a slice."""
        return unit_us(self.slices, self.window_us) if self.slices else self.window_us

    def expected_us(self, within: Span, spans: Sequence[Span]) -> int:
        """Return the time of a range in which a subject existed, in whole slices if any."""
        clipped = [common for span in spans if (common := overlap(span, within))]
        if self.slices is None:
            return sum(end - start for start, end in clipped)
        return expected_us(self.slices, self.window_us, within[0], clipped)


# Slices.

_SEEN: Final = "(good + bad)"
_WHOLE: Final = "greatest(expected, good + bad)"
_UNKNOWN: Final = f"({_WHOLE} - good - bad)"


Judgement = tuple[str, ...]
"""SQL of the times that a slice counts for: good, bad, and bad at least and at most."""


def judge(slices: Slices, window_us: int) -> Judgement:
    """Return the judgement of rows that are ``unit_us`` long; zeros without observed time.

    Args:
        slices: Length and target of a slice.
        window_us: Finest grain of gold.
    """
    length = unit_us(slices, window_us)
    if slices.target is None:
        judgement = _averaged(length)
    elif slices.length_us < length:
        judgement = _within_a_window(slices.length_us, slices.target)
    else:
        judgement = _whole(length, slices.target)
    return tuple(_choice(f"{_SEEN} > 0", sql, 0) for sql in judgement)


def unit_us(slices: Slices, window_us: int) -> int:
    """Return the length of the judged rows, microseconds: a slice, or a window of several."""
    return max(slices.length_us, window_us)


def fits(slices: Slices, window_us: int) -> bool:
    """Return True if a window is whole slices, or a slice whole windows."""
    return slices.length_us % window_us == 0 or window_us % slices.length_us == 0


def expected_us(slices: Slices, window_us: int, start_us: int, spans: Iterable[Span]) -> int:
    """Return the time of all slices that overlap some spans, each at full length, microseconds.

    Args:
        slices: Length and target of a slice.
        window_us: Finest grain of gold.
        start_us: Start of the first slice.
        spans: In order, without overlap.
    """
    length = slices.length_us if slices.target is not None else unit_us(slices, window_us)
    count = reached = 0
    for start, end in spans:
        first = max(reached, (start - start_us) // length)
        reached = max(reached, -(-(end - start_us) // length))
        count += max(0, reached - first)
    return count * length


def _whole(length: int, target: float) -> Judgement:
    """Return the judgement of a slice: good if the target's share of its observed time was."""
    least = f"CAST({target!r} AS DOUBLE)"
    is_good = f"good >= {least} * {_SEEN}"
    surely_good = f"good + bad - high >= {least} * {_WHOLE}"
    surely_bad = f"{_WHOLE} - low < {least} * {_WHOLE}"
    good, bad = _choice(is_good, length, 0), _choice(is_good, 0, length)
    return good, bad, _choice(surely_bad, length, 0), _choice(surely_good, 0, length)


def _averaged(length: int) -> Judgement:
    """Return the judgement of a slice by its good share."""
    # Rows without observed time do not count, but Spark must not divide by zero there either.
    seen, whole = (f"greatest({sql}, 1)" for sql in (_SEEN, _WHOLE))
    share = f"CAST({length} AS DOUBLE)"
    good = f"CAST(round({share} * good / {seen}) AS BIGINT)"
    low = f"CAST(floor({share} * low / {whole}) AS BIGINT)"
    high = f"CAST(ceil({share} * (high + {_UNKNOWN}) / {whole}) AS BIGINT)"
    bad = f"({length} - {good})"
    low, high = f"least({low}, {bad})", f"greatest({bad}, least({length}, {high}))"
    return good, bad, low, high


def _within_a_window(length: int, target: float) -> Judgement:
    """Return the number of bad slices in a window, at least and at most, times their length.

    A slice is bad if its bad time exceeds an allowance. The number is least if every slice uses its
    allowance and some are bad throughout, and greatest if each slightly exceeds it. The figure
    itself assumes that the bad time is contiguous.
    """
    allowance = round((1 - target) * length)

    def least(bad: str) -> str:
        over = f"({bad} - {allowance} * {count})"
        return _ceiling(f"greatest(0, {over})", max(1, length - allowance))

    def most(bad: str) -> str:
        if not allowance:
            return _choice(f"{bad} > 0", count, 0)
        cut = _choice(f"{_WHOLE} % {length} = 0", 1, 0)  # a partial slice is allowed less
        return f"least({count}, greatest(0, {_ceiling(bad, allowance)} - {cut}))"

    count = _ceiling(_WHOLE, length)
    seen = f"least({count}, {_ceiling(_SEEN, length)})"
    rest = _choice(f"bad % {length} > {allowance}", 1, 0)
    contiguous = f"CAST(floor(bad / CAST({length} AS DOUBLE)) AS BIGINT) + {rest}"
    bad = f"least({seen}, greatest({least('bad')}, least({most('bad')}, {contiguous})))"
    low = f"least({bad}, {least('low')})"
    worst = f"least({_WHOLE}, high + {_UNKNOWN})"
    high = f"greatest({bad}, {most(worst)} - ({count} - {seen}))"
    good = f"({seen} - {bad})"
    return tuple(f"{length} * {sql}" for sql in (good, bad, low, high))


def _choice(condition: str, one: str | int, other: str | int) -> str:
    return f"CASE WHEN {condition} THEN {one} ELSE {other} END"


def _ceiling(sql: str, by: int) -> str:
    return f"CAST(ceil({sql} / CAST({by} AS DOUBLE)) AS BIGINT)"


# Excluded time.

BEFORE: Final = "before_us"
"""The column with the part of a row's upper bound that may be before its window."""


_COLUMNS: Final = dict(zip(SUBJECT, SUBJECT_COLUMNS, strict=True)) | {"cluster": "cluster"}
"""Columns of gold, by the names that patterns are of."""


class Exclusions(NamedTuple):
    """Excluded time, of maintenance and corrections, whose windows do not count.

    Attributes:
        planned: That time.
        subjects: All subjects that the rows are of; rows have their names.
        window_us: Length of gold's finest windows.
    """

    planned: Sequence[Maintenance]
    subjects: Sequence[Subject]
    window_us: int

    def condition(self, window: str = "r.window_start") -> str:
        """Return the SQL condition that a row ``r`` is in maintenance of its subject."""
        return " OR ".join(self._condition(one, window) for one in self.planned) or "false"

    def apply(
        self, rows: Relation, keys: Sequence[str], sums: Sequence[str], since: int
    ) -> Relation:
        """Return the rows outside maintenance, with the bad time that may be just before it.

        Bad time that is first observed in the first window of maintenance may have started before
        it. No other row covers that, so the window before gets an additional row. Only its upper
        bound is not zero.

        Args:
            rows: With ``window_start``, ``keys``, ``sums`` and ``BEFORE``.
            keys: Columns that a row keeps.
            sums: Columns with times; the upper bound is the last.
            since: Start of the first window that counts, microseconds.
        """
        if not self.planned:
            return rows
        before = f"r.window_start - {self.window_us}"
        kept = ", ".join(f"r.{name} AS {name}" for name in (*keys, *sums, BEFORE))
        values = {name: f"r.{name}" for name in keys} | dict.fromkeys((*sums, BEFORE), "0")
        values[sums[-1]] = f"r.{BEFORE}"
        moved = ", ".join(f"{value} AS {name}" for name, value in values.items())
        return select(
            f"SELECT r.window_start, {kept} FROM {{rows}} r WHERE NOT ({self.condition()}) "
            f"UNION ALL SELECT {before} AS window_start, {moved} FROM {{rows}} r "
            f"WHERE ({self.condition()}) AND NOT ({self.condition(before)}) AND r.{BEFORE} > 0 "
            f"AND {before} >= {since}",
            rows=rows,
        )

    def _condition(self, planned: Maintenance, window: str) -> str:
        start, end = planned.windows(self.window_us)
        parts = [f"{window} >= {start} AND {window} < {end}"]
        if "cluster" in planned.names:
            parts.append(self._has_name("cluster", planned))
        if keys := planned.subject_columns:
            named = (f"coalesce({self._has_name(key, planned)}, false)" for key in keys)
            parts.append(f"({' OR '.join(named)})")
        return f"({' AND '.join(parts)})"

    def _has_name(self, key: str, planned: Maintenance) -> str:
        """Return the SQL condition that a row has a name that a pattern of this key matches."""
        names = {{"cluster": one.cluster, **one.names}[key] for one in self.subjects}
        found = (str(name) for name in names if matches(name, planned.names[key]))
        return is_one_of(f"r.{_COLUMNS[key]}", sorted(found))
