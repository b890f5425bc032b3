"""Sums of gold/sli per objective and subject: over a period, and over lengths before an instant.

What is made of whole hours is summed from hours, all else from the finest windows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from lakehouse import slices, tables
from lakehouse.existence import SUBJECT
from lakehouse.gold_rows import GoldRows, before_window, is_hourly, is_one_of
from lakehouse.maintenance import SPILL, LeftOut, Maintenance
from lakehouse.occurrences import Counting
from lakehouse.periods import HOUR_US, Period, micros
from lakehouse.rollup import shapes
from lakehouse.spans import Span
from lakehouse.statement import Asked, Living, Named, Times

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    import pyarrow as pa

    from lakehouse.rollup.engine import Relation


class Bad(NamedTuple):
    """A window or slice that was bad for some time at least, microseconds."""

    at: int
    low_us: int


Summed = dict[Named, dict[str, Times]]
"""Times by cluster, objective and subject, and by the name of a range."""

_KEYS: Final = ("cluster", "objective", *SUBJECT)
_KEY: Final = ", ".join(f"r.{name} AS {name}" for name in _KEYS)
_BY: Final = ", ".join(f"r.{name}" for name in _KEYS)
_NAMED: Final = shapes.schema((name, "string") for name in _KEYS)
_SPAN: Final = shapes.schema(
    (*((name, "string") for name in ("cluster", *SUBJECT)), ("s", "bigint"), ("e", "bigint"))
)


def spilled() -> str:
    """What of the upper bound may lie before its first window, of a row ``r`` of gold/sli.

    Nothing is first seen of what groups lost, or of attempts that failed: that has no edges.
    """
    before = before_window(SPILL, "bad_high_us", "bad_us")
    return f"CASE WHEN r.group IS NULL AND r.source IS NULL THEN {before} ELSE 0 END"


def summed(
    gold: GoldRows,
    asked: Sequence[Asked],
    living: Sequence[Living],
    left_out: Sequence[Maintenance] = (),
) -> Summed:
    """Times of all that gold tells of.

    Args:
        gold: Where gold is.
        asked: What is asked, each objective once; of events those in slices.
        living: Of which subjects.
        left_out: Whose windows are left out of account.
    """
    found: Summed = {}
    if not asked or not living:
        return found
    sli = _Sli(gold, living, left_out)
    for part in (part for one in asked for part in sli.parts(one)):
        size = len(Times._fields) + 1
        for row in map(tuple, map(dict.values, gold.ask(_ranged(part), rows=sli.judged(part)))):
            cluster, objective, *rest = row
            key, sums = tuple(rest[: len(SUBJECT)]), rest[len(SUBJECT) :]
            own = found.setdefault((cluster, objective, key), {})
            for at, name in enumerate(part.ranges):
                *times, number = sums[at * size : (at + 1) * size]
                if number:
                    own[name] = Times(*times)
    return found


def bad(
    gold: GoldRows, asked: Asked, living: Sequence[Living], whom: Collection[Named]
) -> dict[Named, list[Bad]]:
    """Windows or slices of some that were surely bad for some time, in order.

    Args:
        gold: Where gold is.
        asked: What is asked.
        living: All of whom, and when they existed.
        whom: Of whom; few, for each brings as many rows as it was bad in.
    """
    few = shapes.rows(_NAMED, [(cluster, name, *key) for cluster, name, key in whom])
    part = _Part(asked, asked.ranges(gold.window_us), gold.window_us)
    rows = gold.ask(
        f"SELECT {_KEY}, r.at, r.bad_low_us FROM {{rows}} r JOIN {{few}} f ON {_same('f', _KEYS)} "
        "WHERE r.bad_low_us > 0 ORDER BY r.at",
        rows=_Sli(gold, living, ()).judged(part),
        few=gold.engine.relation(few),
    )
    found: dict[Named, list[Bad]] = {}
    for row in rows:
        key = tuple(row[name] for name in SUBJECT)
        one = Bad(row["at"], row["bad_low_us"])
        found.setdefault((row["cluster"], row["objective"], key), []).append(one)
    return found


class _Part(NamedTuple):
    """Ranges of what is asked that are summed from the same rows, and the length of these."""

    asked: Asked
    ranges: Mapping[str, Span]
    size_us: int

    @property
    def span(self) -> Span:
        """All that these ranges hold."""
        starts, ends = zip(*self.ranges.values(), strict=True)
        return min(starts), max(ends)


@dataclass(frozen=True, slots=True)
class _Sli:
    """Rows of gold/sli of some subjects."""

    gold: GoldRows
    living: Sequence[Living]
    left_out: Sequence[Maintenance]

    def parts(self, asked: Asked) -> list[_Part]:
        """What is asked, by the rows of which it is made."""
        hourly, others = dict[str, Span](), dict[str, Span]()
        cut = asked.slices is not None or bool(self.left_out)
        for name, span in asked.ranges(self.gold.window_us).items():
            by_hour = not cut and is_hourly(Period.of(span))
            (hourly if by_hour else others)[name] = span
        both = (_Part(asked, hourly, HOUR_US), _Part(asked, others, self.gold.window_us))
        return [part for part in both if part.ranges]

    def judged(self, part: _Part) -> Relation:
        """Times of rows of gold, or of slices: ``at``, microseconds, and the columns of ``Times``.

        ``spill_us``: what of a row of gold may have been before it; of slices 0. Of rows of gold
        there is also the one after the last.
        """
        asked, (start, end) = part.asked, part.span
        times = ", ".join(Times._fields)
        if asked.slices is None:
            rows = self._indicators(part, (start, end + part.size_us))
            return self.gold.engine.query(
                f"SELECT {_KEY}, r.window AS at, {times}, r.{SPILL} FROM {{rows}} r", rows=rows
            )
        size = asked.size_us(self.gold.window_us)
        first = micros(asked.period.start)
        slot = f"r.window - ((r.window - {first}) % {size} + {size}) % {size}"
        judged = slices.judged(asked.slices, self.gold.window_us)._asdict().items()
        return self.gold.engine.query(
            f"SELECT {_KEY}, r.at, {', '.join(f'{sql} AS {name}' for name, sql in judged)}, "
            f"0 AS {SPILL} FROM {{rows}} r",
            rows=self._with_expected(self._slots(part, slot), asked, size),
        )

    def _slots(self, part: _Part, slot: str) -> Relation:
        """Sums over slices, or over windows that hold several."""
        (first, *_) = part.asked.objectives
        if first.events is not None:
            counting = Counting(self.gold, self.living, self.left_out)
            return counting.by_slot(first, first.events, part.span, slot)
        sums = zip(("good", "bad", "low", "high"), Times._fields, strict=True)
        summing = ", ".join(f"CAST(sum(r.{column}) AS BIGINT) AS {name}" for name, column in sums)
        return self.gold.engine.query(
            f"SELECT {_KEY}, {slot} AS at, {summing} FROM {{rows}} r GROUP BY {_BY}, {slot}",
            rows=self._indicators(part, part.span),
        )

    def _indicators(self, part: _Part, span: Span) -> Relation:
        known = [one.subject for one in self.living]
        rows_of = self.gold.hours if part.size_us == HOUR_US else self.gold.windows
        rows = self.gold.engine.query(
            f"SELECT r.window AS window, {_KEY}, {', '.join(f'r.{n}' for n in Times._fields)}, "
            f"{spilled()} AS {SPILL} FROM {{rows}} r "
            f"WHERE {is_one_of('r.cluster', sorted({one.cluster for one in known}))} "
            f"AND {is_one_of('r.objective', [one.name for one in part.asked.objectives])}",
            rows=rows_of(tables.SLI, Period.of(span)),
        )
        holes = LeftOut(self.left_out, known, self.gold.window_us)
        rows = holes.rest(self.gold, rows, _KEYS, Times._fields)
        # What may have begun before the span is not asked for.
        inside = f"SELECT r.* FROM {{rows}} r WHERE r.window >= {span[0]}"
        return self.gold.engine.query(inside, rows=rows) if self.left_out else rows

    def _with_expected(self, slots: Relation, asked: Asked, size: int) -> Relation:
        """Slices with how much of them the subject existed."""
        levels = {one.kind for one in asked.objectives}
        known = _spans(one for one in self.living if one.subject.kind in levels)
        told = ", ".join(f"r.{name}" for name in ("at", "good", "bad", "low", "high"))
        lived = f"greatest(0, least(k.e, r.at + {size}) - greatest(k.s, r.at))"
        return self.gold.engine.query(
            f"SELECT {_KEY}, {told}, CAST(coalesce(sum({lived}), 0) AS BIGINT) AS expected "
            f"FROM {{slots}} r LEFT JOIN {{known}} k ON {_same('k', ('cluster', *SUBJECT))} "
            f"GROUP BY {_BY}, {told}",
            slots=slots,
            known=self.gold.engine.relation(known),
        )


def _same(other: str, names: Iterable[str]) -> str:
    return " AND ".join(f"r.{name} IS NOT DISTINCT FROM {other}.{name}" for name in names)


def _spans(living: Iterable[Living]) -> pa.Table:
    """When each subject existed."""
    rows = [(one.subject.cluster, *one.subject.key, *span) for one in living for span in one.spans]
    return shapes.rows(_SPAN, rows)


def _ranged(part: _Part) -> str:
    """Sums over each range, and how many rows it has that say anything.

    What was first seen just after a range may have begun in it. A client is named by a row of
    zeros as well (see the kernel's sli_clients.sql).
    """
    says = f"greatest({', '.join(f'r.{name}' for name in Times._fields)}) > 0"
    if part.asked.slices is None:
        says = f"({says} OR r.user IS NOT NULL OR r.client_id IS NOT NULL)"
    columns = []
    for at, (start, end) in enumerate(part.ranges.values()):
        inside = f"r.at >= {start} AND r.at < {end}"
        for name in Times._fields:
            of = f"sum(CASE WHEN {inside} THEN r.{name} ELSE 0 END)"
            if name == "bad_high_us":
                of += f" + sum(CASE WHEN r.at = {end} THEN r.{SPILL} ELSE 0 END)"
            columns.append(f"CAST({of} AS BIGINT) AS {name}_{at}")
        columns.append(
            f"CAST(sum(CASE WHEN {inside} AND {says} THEN 1 ELSE 0 END) AS BIGINT) AS rows_{at}"
        )
    return f"SELECT {_KEY}, {', '.join(columns)} FROM {{rows}} r GROUP BY {_BY}"
