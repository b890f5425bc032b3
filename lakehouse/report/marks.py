"""What charts mark beside their figure: restarts, elections, changes, and planned maintenance."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from lakehouse.report import words
from lakehouse.report.lookup import declared
from lakehouse.report.spans import Span

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

Kind = Literal["restart", "election", "change", "agent"]

_MARKS: Final[Mapping[Kind, Any]] = declared("charts.yaml")["marks"]
_KINDS: Final = {event: kind for kind, told in _MARKS.items() for event in told["events"]}
_EXPLAINS: Final[Mapping[str, Sequence[Kind]]] = declared("charts.yaml")["explains"]


@dataclass(frozen=True, slots=True)
class Marks:
    """Instants and spans that a chart marks.

    Attributes:
        instants: When something of which kind happened, oldest first.
        planned: Planned maintenance, cut to the period.
        omitted: Kinds of which there were more than are marked.
    """

    instants: tuple[tuple[datetime, Kind], ...] = ()
    planned: tuple[Span, ...] = ()
    omitted: frozenset[Kind] = frozenset()

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What kinds there are, in the order in which they are told."""
        return tuple(kind for kind, _ in self.counted)

    @property
    def counted(self) -> tuple[tuple[Kind, str], ...]:
        """Each kind, and how many there are in words."""
        counts = Counter(kind for _, kind in self.instants)
        return tuple(
            (kind, f"{self._least(kind)}{counts[kind]:,}\u00a0{told['says'][counts[kind] > 1]}")
            for kind, told in _MARKS.items()
            if counts[kind]
        )

    def _least(self, kind: Kind) -> str:
        return "at least " if kind in self.omitted else ""

    @property
    def said(self) -> str:
        """The same in a sentence; empty where nothing is marked."""
        told = ", ".join(said for _, said in self.counted)
        marked = f" Marked above: {told}." if told else ""
        return f"{marked} Shaded: planned maintenance." if self.planned else marked

    def only(self, kinds: Collection[Kind]) -> Marks:
        """Those of some kinds, and all that was planned."""
        kept = tuple(one for one in self.instants if one[1] in kinds)
        return Marks(kept, self.planned, self.omitted)

    def of_chart(self, name: str) -> Marks:
        """Those that may explain the figure ``name`` of the facts' timelines."""
        return self.only(_EXPLAINS.get(name, ("restart", "change")))

    def apart(self, within: Span, most: int) -> Marks:
        """At most one of a kind in each of ``most`` equal parts of a period, the first of each."""
        width = (within[1] - within[0]) / most
        first: dict[tuple[Kind, int], datetime] = {}
        for at, kind in self.instants:
            first.setdefault((kind, (at - within[0]) // width), at)
        kept = sorted((at, kind) for (kind, _), at in first.items())
        return Marks(tuple(kept), self.planned, self.omitted)


NONE: Final = Marks()


def marks(facts: Mapping[str, Any], within: Span) -> Marks:
    """All that the facts tell of a period."""
    instants = [
        (words.parse(row["at"]), _KINDS.get(str(row.get("kind")), "agent"))
        for row in facts.get("events") or ()
        if row.get("at")
    ]
    planned = [
        (max(words.parse(row["start"]), within[0]), min(words.parse(row["end"]), within[1]))
        for row in facts.get("maintenance") or ()
    ]
    return Marks(
        tuple(sorted(one for one in instants if within[0] <= one[0] <= within[1])),
        tuple(sorted(span for span in planned if span[0] < span[1])),
        frozenset(_KINDS.get(str(kind), "agent") for kind in facts.get("events_omitted") or ()),
    )
