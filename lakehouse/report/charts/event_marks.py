"""The changes and the planned maintenance that are marked on a chart."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Self

from lakehouse.core import display, periods
from lakehouse.core.spans import Span, overlap
from lakehouse.report.figures import Facts, span_of
from lakehouse.report.resources import declared

Kind = Literal["restart", "election", "change", "agent"]

_MARKS: Final[Mapping[Kind, Any]] = declared("charts.yaml")["marks"]
_KINDS: Final = {event: kind for kind, spec in _MARKS.items() for event in spec["events"]}
_EXPLAINS: Final[Mapping[str, Sequence[Kind]]] = declared("charts.yaml")["explains"]


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of a chart; microseconds.

    Attributes:
        instants: Changes with their kinds, oldest first.
        planned: Planned maintenance, cut to the period.
        omitted: Kinds of which the facts do not list all changes.
    """

    instants: tuple[tuple[int, Kind], ...] = ()
    planned: tuple[Span, ...] = ()
    omitted: frozenset[Kind] = frozenset()

    @property
    def counted(self) -> tuple[tuple[Kind, str], ...]:
        """The kinds in the order of charts.yaml, and how many of each, in words."""
        counts = Counter(kind for _, kind in self.instants)
        return tuple((kind, self._counted(kind, counts[kind])) for kind in _MARKS if counts[kind])

    def _counted(self, kind: Kind, number: int) -> str:
        least = "at least " * (kind in self.omitted)
        return f"{least}{number:,}\u00a0{_MARKS[kind]['words'][number > 1]}"

    @property
    def caption(self) -> str:
        """The same in a sentence; empty where nothing is marked."""
        counts = ", ".join(text for _, text in self.counted)
        marked = f" Marked above: {counts}." if counts else ""
        return f"{marked} Shaded: planned maintenance." if self.planned else marked

    def of_chart(self, name: str) -> Self:
        """The marks that may explain the figure ``name`` of the facts' timelines."""
        kinds = _EXPLAINS.get(name, ("restart", "change"))
        return replace(self, instants=tuple(mark for mark in self.instants if mark[1] in kinds))

    def apart(self, within: Span, most: int) -> Self:
        """The first change of each kind in each of ``most`` equal parts of a period."""
        whole = within[1] - within[0]
        first: dict[tuple[Kind, int], int] = {}
        for at, kind in self.instants:
            first.setdefault((kind, (at - within[0]) * most // whole), at)
        kept = sorted((at, kind) for (kind, _), at in first.items())
        return replace(self, instants=tuple(kept))


NONE: Final = Marks()


def marks_of(facts: Facts) -> Marks:
    """The changes and the planned maintenance of a report's period."""
    within = span_of(facts, "from", "to")
    instants = [
        (periods.micros(display.parse(row["at"])), _KINDS.get(str(row.get("kind")), "agent"))
        for row in facts.get("changes") or ()
        if row.get("at")
    ]
    planned = (overlap(span_of(row), within) for row in facts.get("maintenance") or ())
    return Marks(
        tuple(sorted(mark for mark in instants if within[0] <= mark[0] <= within[1])),
        tuple(sorted(span for span in planned if span)),
        frozenset(_KINDS.get(str(kind), "agent") for kind in facts.get("changes_omitted") or ()),
    )
