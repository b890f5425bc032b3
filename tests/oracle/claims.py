"""Reports on one subject in one window, and the figures that follow from unions of intervals."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tests.oracle.intervals import Span, count, cuts, length, most_at_once, union
from tests.oracle.rows import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

UNDER_MIN_ISR = "kafka.partition.under_min_isr"
LEADERLESS = "kafka.partition.leaderless"
UNAVAILABLE = "kafka.partition.unavailable"


@dataclass
class Atom:
    """A partition, or one source's series: it is observed once at an instant, by any reporter."""

    runs: list[Run] = field(default_factory=list)
    fenced: list[Span] = field(default_factory=list)

    def observed_us(self) -> int:
        """Return the observed time, without good time that a fenced source claims."""
        bad = self.bad()
        doubted = [
            span for span in cuts([*self.fenced, *bad])
            if count(self.fenced, span) and not count(bad, span)
        ]  # fmt: skip
        return length(self.seen()) - length(doubted)

    def seen(self) -> list[Span]:
        return union((run.start, run.end) for run in self.runs)

    def bad(self) -> list[Span]:
        return union((run.start, run.end) for run in self._positive())

    def surely(self) -> list[Span]:
        return union((run.start, run.end - run.tail_edge) for run in self._positive())

    def possibly(self) -> list[Span]:
        return union(
            (max(run.window, run.start - run.lead_edge), run.end) for run in self._positive()
        )

    def spill(self) -> int:
        return spill(self._positive())

    def _positive(self) -> list[Run]:
        return [run for run in self.runs if run.positive]

    def values(self) -> list[tuple[Span, Fraction]]:
        """Return the value over time: the mean of claims above 0, or of all. Idle is 0."""
        found = []
        for start, end in cuts((run.start, run.end) for run in self.runs):
            claims = [run for run in self.runs if run.start <= start and end <= run.end]
            if claims:
                told = [run for run in claims if run.positive] or claims
                total = sum((Fraction(run.value or 0.0) for run in told), Fraction(0))
                found.append(((start, end), total / len(told)))
        return found


def spill(positive: Iterable[Run]) -> int:
    """Return the longest part of a lead before the window, or 0 if a run starts with the window."""
    runs = list(positive)
    if any(run.start == run.window for run in runs):
        return 0
    return max((max(0, run.lead_edge - (run.start - run.window)) for run in runs), default=0)


@dataclass
class Subject:
    """The atoms of one subject, metric and window."""

    atoms: defaultdict[tuple[Any, ...], Atom] = field(default_factory=lambda: defaultdict(Atom))

    def add(self, name: tuple[Any, ...], run: Run) -> None:
        self.atoms[name].runs.append(run)

    def runs(self) -> list[Run]:
        """Return every row once, also if it is in several atoms."""
        return list({id(run): run for atom in self.atoms.values() for run in atom.runs}.values())

    def whole(self) -> Atom:
        """Return all rows as one atom, for unions over the subject."""
        return Atom(self.runs())

    def measures(self) -> dict[str, Any]:
        atoms = list(self.atoms.values())
        values = [run.value for run in self.runs() if run.value is not None]
        over_time = [value for atom in atoms for value in atom.values()]
        return {
            "series_seen_us": sum(atom.observed_us() for atom in atoms),
            "value_seconds": float(
                sum((value * (end - start) for (start, end), value in over_time), Fraction(0))
                / 1_000_000
            ),
            "value_min": least(values),
            "value_max": greatest(values),
            "series_affected_us": sum(length(atom.bad()) for atom in atoms),
            "series_affected_low_us": sum(length(atom.surely()) for atom in atoms),
            "series_affected_high_us": sum(
                length(atom.possibly()) + atom.spill() for atom in atoms
            ),
            "series_before_us": sum(atom.spill() for atom in atoms),
            "increase": None,
            "series": most_at_once([span for atom in atoms for span in atom.seen()]),
            "known_wrong": any("known_wrong" in run.flags for run in self.runs()),
        }

    def union(self) -> dict[str, Any]:
        whole = self.whole()
        return {
            "affected_us": length(whole.bad()),
            "affected_low_us": length(whole.surely()),
            "affected_high_us": length(whole.possibly()) + whole.spill(),
            "before_us": whole.spill(),
            "max_concurrent": most_at_once(
                [span for atom in self.atoms.values() for span in atom.bad()]
            ),
            "max_total": self._greatest_total(),
        }

    def _greatest_total(self) -> float | None:
        """Return the greatest total of sources at an observed instant; None for partitions."""
        steps: defaultdict[int, Fraction] = defaultdict(Fraction)
        seen: defaultdict[int, int] = defaultdict(int)
        of_sources = (atom for name, atom in self.atoms.items() if name[0] != "partition")
        for atom in of_sources:
            for (start, end), value in atom.values():
                steps[start] += value
                steps[end] -= value
                seen[start] += 1
                seen[end] -= 1
        total, count, found = Fraction(0), 0, []
        for at in sorted(steps):
            total, count = total + steps[at], count + seen[at]
            if count:
                found.append(total)
        return float(max(found)) if found else None


def least(values: list[float]) -> float | None:
    """Return the minimum; zero has no sign."""
    return min(values) + 0.0 if values else None


def greatest(values: list[float]) -> float | None:
    return max(values) + 0.0 if values else None


def topics(
    runs: Iterable[Run], fenced: Callable[[Run], list[Span]] = lambda _: []
) -> dict[tuple[Any, ...], Subject]:
    """Gauges of partitions and topics by (cluster, window, metric, topic).

    Atoms are partitions, as ``("partition", number)``, or the report of one source.

    Args:
        runs: The runs.
        fenced: Returns when a run's source was fenced, within the run.
    """
    found: defaultdict[tuple[Any, ...], Subject] = defaultdict(Subject)
    for run in runs:
        if run.counter or not run.measure or run.of_replicas:
            continue
        if run.level not in ("partition", "topic"):
            continue
        names: list[tuple[Any, ...]] = [("source", run.source, run.labels)]
        if run.level == "partition":
            held = run.partitions if run.partitions is not None else (run.partition,)
            names = [("partition", number) for number in held]
        for metric in _metrics(run):
            subject = found[(run.cluster, run.window, metric, run.topic)]
            for name in names:
                subject.add(name, run)
                if run.level == "partition" and run.metric != LEADERLESS and not run.positive:
                    subject.atoms[name].fenced += fenced(run)
    return found


def _metrics(run: Run) -> tuple[str, ...]:
    """Return a row's own metric and the derived one (under min ISR or offline)."""
    if run.level == "partition" and (
        run.metric == UNDER_MIN_ISR or (run.metric == LEADERLESS and run.positive)
    ):
        return run.metric, UNAVAILABLE
    return (run.metric,)


def partitions_of(subject: Subject) -> dict[int, Subject]:
    """Return a topic's partitions as subjects."""
    found: dict[int, Subject] = {}
    for name, atom in subject.atoms.items():
        if isinstance(name, tuple) and name[0] == "partition":
            found[name[1]] = Subject(defaultdict(Atom, {name: atom}))
    return found


def clients(runs: Iterable[Run]) -> dict[tuple[Any, ...], Subject]:
    """Gauges of clients by (cluster, window, metric, user, client id); an atom is a source's."""
    found: defaultdict[tuple[Any, ...], Subject] = defaultdict(Subject)
    for run in runs:
        if run.counter or not run.measure or run.level != "client":
            continue
        for user, client_id in run.clients or ((run.user, run.client_id),):
            key = (run.cluster, run.window, run.metric, user, client_id)
            found[key].add((run.source, run.labels), run)
    return found
