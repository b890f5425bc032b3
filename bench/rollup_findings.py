"""What the rollups came to: figures for machines, tables for people."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bench.rollup_compare import Agreement
from bench.rollup_ours import Growth, RolledUp
from bench.rollup_process import Cost
from bench.teller import new_table

if TYPE_CHECKING:
    from rich.table import Table

    from bench.teller import Teller

CLAIM: Final = (
    "A day of 100 brokers with 1,000 partitions each, 2.6 billion samples, is rolled up in minutes"
    " on two cores, and an hour more costs the same whatever lies before it"
)
_MILLION: Final = 1_000_000


class Peer(NamedTuple):
    """What an engine took for plain samples, beyond its start."""

    name: str
    samples: int
    seconds: float
    peak_gib: float
    agreement: Agreement

    @property
    def micros(self) -> float:
        """Microseconds a sample."""
        return self.seconds * 1e6 / self.samples


@dataclass
class Findings:
    """Filled step by step.

    Attributes:
        share: Share of the partitions whose lag changes at every scrape.
        starts: What starting Spark costs, for much data (True) and for little.
        day: The rollup of the day.
        sizes: First rollups of other sizes.
        told: What ``sla`` and ``report`` took.
    """

    share: float
    starts: dict[bool, Cost]
    day: RolledUp | None = None
    peers: list[Peer] = field(default_factory=list)
    growth: list[Growth] = field(default_factory=list)
    sizes: list[RolledUp] = field(default_factory=list)
    told: dict[str, Cost] = field(default_factory=dict)

    def beyond(self, cost: Cost, *, large: bool = True) -> float:
        """Seconds of a process without those that Spark takes to start."""
        return cost.seconds - self.starts[large].seconds

    @property
    def ours(self) -> float:
        """Microseconds a sample, of the day."""
        assert self.day is not None
        return self.beyond(self.day.cost) * 1e6 / self.day.written.samples

    def a_million_runs(self) -> list[float]:
        """Seconds a million new runs, by the number of runs."""
        return [self.beyond(one.cost) / one.written.runs * _MILLION for one in self._by_size()]

    def a_million_runs_more(self) -> list[float]:
        """Seconds a million runs more, from each size to the next.

        What a rollup costs whatever it reads, planning and compiling mostly, is in none of them.
        """
        return [
            (more.cost.seconds - less.cost.seconds) / (more.written.runs - less.written.runs)
            * _MILLION
            for less, more in pairwise(self._by_size())
        ]  # fmt: skip

    def _by_size(self) -> list[RolledUp]:
        return sorted([*self.sizes, *([self.day] if self.day else [])])

    def figures(self) -> dict[str, Any]:
        """By name, as the last line has them."""
        assert self.day is not None
        cost, written = self.day.cost, self.day.written
        found: dict[str, Any] = {
            "seconds": round(self.beyond(cost), 1),
            "seconds_with_start": round(cost.seconds, 1),
            "cpu_seconds": round(cost.cpu_seconds, 1),
            "peak_gib": round(cost.peak_gib, 2),
            "runs": written.runs,
            "samples": written.samples,
            "share": self.share,
            "micros_a_sample": round(self.ours, 4),
        }
        found |= {f"micros_a_sample_{one.name}": round(one.micros, 4) for one in self.peers}
        found |= {f"samples_{one.name}": one.samples for one in self.peers}
        found |= {
            f"{name}_seconds": round(self.beyond(one, large=False), 1)
            for name, one in self.told.items()
        }
        found |= {f"{name}_peak_gib": round(one.peak_gib, 2) for name, one in self.told.items()}
        return found | {
            f"hour_after_{one.days}_days_seconds": round(
                one.seconds - self.starts[False].seconds, 1
            )
            for one in self.growth
        }

    def ratios(self) -> dict[str, float]:
        """Theirs by ours, so that more is better; growth is ours by ours, and 1 is best."""
        found = {f"vs_{one.name}": one.micros / self.ours for one in self.peers}
        if self.growth:
            short, long = self.growth
            start = self.starts[False]
            found["history_growth"] = (long.seconds - start.seconds) / (
                short.seconds - start.seconds
            )
            found["history_growth_cpu"] = (long.cpu_seconds - start.cpu_seconds) / (
                short.cpu_seconds - start.cpu_seconds
            )
        if self.sizes:
            dearest, cheapest = max(self.a_million_runs()), min(self.a_million_runs())
            found["run_growth"] = dearest / cheapest
            more = self.a_million_runs_more()
            found["run_growth_more"] = max(more) / min(more)
        return {name: round(value, 2) for name, value in found.items()}


def show(findings: Findings, teller: Teller) -> None:
    """All of it as tables."""
    teller.show(_rollups(findings))
    if findings.peers:
        teller.show(_peers(findings))
    if findings.growth:
        teller.show(_growth(findings))
    if findings.told:
        table = new_table("A week of all brokers, beyond Spark's start", "seconds", "peak GiB")
        for name, cost in findings.told.items():
            seconds = findings.beyond(cost, large=False)
            table.add_row(name, f"{seconds:,.1f}", f"{cost.peak_gib:.2f}")
        teller.show(table)


def _rollups(findings: Findings) -> Table:
    table = new_table(
        f"First rollups, all tables; {findings.share:.1%} of the lags change at every scrape",
        "runs", "samples", "seconds", "with start", "CPU s", "peak GiB", "s per million runs",
    )  # fmt: skip
    found = sorted([*findings.sizes, *([findings.day] if findings.day else [])])
    for one, dear in zip(found, findings.a_million_runs(), strict=True):
        cost, written = one.cost, one.written
        table.add_row(
            "the day" if one is findings.day else "",
            f"{written.runs:,}",
            f"{written.samples:,}",
            f"{findings.beyond(cost):,.1f}",
            f"{cost.seconds:,.1f}",
            f"{cost.cpu_seconds:,.1f}",
            f"{cost.peak_gib:.2f}",
            f"{dear:.2f}",
        )
    return table


def _peers(findings: Findings) -> Table:
    table = new_table(
        "The same questions of plain samples, on the same cores",
        "samples", "seconds", "us a sample", "peak GiB", "theirs / ours", "rows equal",
        "sums differ",
    )  # fmt: skip
    table.add_row("jmxlake", "", "", f"{findings.ours:.4f}", "", "", "", "")
    for one in findings.peers:
        agreed = one.agreement
        table.add_row(
            one.name,
            f"{one.samples:,}",
            f"{one.seconds:,.1f}",
            f"{one.micros:.4f}",
            f"{one.peak_gib:.2f}",
            f"{one.micros / findings.ours:,.1f}",
            f"{agreed.equal:.2%} of {agreed.rows:,}",
            f"{agreed.worst:.1e}" if agreed.same else f"[red]{agreed.missing:,} rows missing[/]",
        )
    return table


def _growth(findings: Findings) -> Table:
    table = new_table("An hour more, medians", "seconds", "with start", "CPU s with start")
    start = findings.starts[False].seconds
    for one in findings.growth:
        seconds = f"{one.seconds - start:,.1f}"
        table.add_row(
            f"after {one.days} days", seconds, f"{one.seconds:,.1f}", f"{one.cpu_seconds:,.1f}"
        )
    return table
