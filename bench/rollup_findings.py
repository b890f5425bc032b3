"""What the rollups came to: figures for machines, tables for people."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bench.rollup_compare import Agreement
from bench.rollup_fleet import START
from bench.rollup_ours import Growth, RolledUp
from bench.rollup_process import Cost
from lakehouse.engines.rollup_batches import ClusterHour, Versions, batches
from lakehouse.engines.spark_engine import most_rows
from tests.rig.teller import new_table

if TYPE_CHECKING:
    from rich.table import Table

    from tests.rig.teller import Teller

CLAIM: Final = (
    "A day of 100 brokers with 1,000 partitions each, 2.6 billion samples, is rolled up in minutes"
    " on two cores, and an hour more costs the same whatever lies before it"
)


_RUNS_OF_1000_BROKERS: Final = 23_000_000
"""Of an hour, by the density of the fleet."""


class Peer(NamedTuple):
    """What another engine took for the same questions of plain samples."""

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
        start: What starting Spark costs.
        days: Rollups of the day by name: ``day_spark``, ``day_local``, ``day_clients_spark``.
        week: Cost of ``slo publish`` and ``report`` of the week.
        told: Figures of other parts, by name.
        compared: Ratios of other parts, by name.
    """

    share: float
    start: Cost
    days: dict[str, RolledUp] = field(default_factory=dict)
    peers: list[Peer] = field(default_factory=list)
    growth: list[Growth] = field(default_factory=list)
    week: dict[str, Cost] = field(default_factory=dict)
    told: dict[str, float] = field(default_factory=dict)
    compared: dict[str, float] = field(default_factory=dict)

    def beyond(self, seconds: float) -> float:
        """Seconds of a small rollup without those that Spark takes to start."""
        return seconds - self.start.seconds

    @property
    def ours(self) -> float:
        """Microseconds a sample of the day on Spark, without its start."""
        cost, written = self.days["day_spark"].cost, self.days["day_spark"].written
        return (cost.seconds - self.start.seconds) * 1e6 / written.samples

    def figures(self) -> dict[str, Any]:
        """By name, as the last line has them."""
        found: dict[str, Any] = {
            "share": self.share,
            "spark_start_s": round(self.start.seconds, 1),
            "spark_start_cpu_s": round(self.start.cpu_seconds, 1),
            **self.told,
        }
        for name, one in self.days.items():
            found |= {
                f"{name}_s": round(one.cost.seconds, 1),
                f"{name}_cpu_s": round(one.cost.cpu_seconds, 1),
                f"{name}_peak_gib": round(one.cost.peak_gib, 2),
                f"{name}_runs": one.written.runs,
                f"{name}_samples": one.written.samples,
            }
        if self.peers:
            found["micros_a_sample"] = round(self.ours, 4)
        found |= {f"micros_a_sample_{one.name}": round(one.micros, 4) for one in self.peers}
        found |= {f"samples_{one.name}": one.samples for one in self.peers}
        found |= {f"{name}_week_s": round(one.seconds, 1) for name, one in self.week.items()}
        found |= {f"{name}_peak_gib": round(one.peak_gib, 2) for name, one in self.week.items()}
        if self.growth:
            found["hour_more_s"] = round(max(self.beyond(one.seconds) for one in self.growth), 1)
        return found | {
            f"hour_after_{one.days}_days_{one.evening:%A}_s".lower(): round(
                self.beyond(one.seconds), 1
            )
            for one in self.growth
        }

    def ratios(self) -> dict[str, float]:
        """Theirs by ours, so that more is better; growth is ours by ours, and 1 is best."""
        found = {f"vs_{one.name}": one.micros / self.ours for one in self.peers}
        if {"day_spark", "day_local"} <= self.days.keys():
            spark, local = (self.days[f"day_{name}"].cost for name in ("spark", "local"))
            found["day_spark_vs_local"] = spark.seconds / local.seconds
            found["day_spark_vs_local_cpu"] = spark.cpu_seconds / local.cpu_seconds
        if self.growth:
            pairs = list(zip(self.growth[::2], self.growth[1::2], strict=True))
            found["history_growth"] = max(
                self.beyond(long.seconds) / self.beyond(short.seconds) for short, long in pairs
            )
            cpu = self.start.cpu_seconds
            found["history_growth_cpu"] = max(
                (long.cpu_seconds - cpu) / (short.cpu_seconds - cpu) for short, long in pairs
            )
        return {**self.compared, **{name: round(value, 2) for name, value in found.items()}}


def planned() -> dict[str, int]:
    """What the planner makes of a day of 1,000 brokers on 64 cores; nothing is run."""
    hours = [ClusterHour("large", START + dt.timedelta(hours=hour)) for hour in range(24)]
    rows = dict.fromkeys(hours, _RUNS_OF_1000_BROKERS)
    found = batches(rows, rows.keys(), frozenset(), Versions(1, 1, 1), most_rows(64), 64)
    return {
        "batches_day_1000_brokers_64_cores": len(found),
        "giant_hour_tasks": found[0].calls[0].parts,
    }


def show(findings: Findings, teller: Teller) -> None:
    """All of it as tables."""
    if findings.days:
        teller.show(_days(findings))
    if findings.peers:
        teller.show(_peers(findings))
    if findings.growth:
        teller.show(_growth(findings))
    if findings.week:
        table = new_table("A week of all brokers", "seconds", "peak GiB")
        for name, cost in findings.week.items():
            table.add_row(name, f"{cost.seconds:,.1f}", f"{cost.peak_gib:.2f}")
        teller.show(table)


def _days(findings: Findings) -> Table:
    table = new_table(
        f"First rollups, all tables; {findings.share:.1%} of the lags change at every scrape",
        "runs", "samples", "seconds", "CPU s", "peak GiB", "s per million runs",
    )  # fmt: skip
    for name, (written, cost) in findings.days.items():
        table.add_row(
            name.replace("_", " "),
            f"{written.runs:,}",
            f"{written.samples:,}",
            f"{cost.seconds:,.1f}",
            f"{cost.cpu_seconds:,.1f}",
            f"{cost.peak_gib:.2f}",
            f"{cost.seconds / written.runs * 1e6:.2f}",
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
    table = new_table("An hour more, medians", "beyond Spark's start", "seconds", "CPU s")
    for one in findings.growth:
        table.add_row(
            f"{one.evening:%A} after {one.days} days",
            f"{findings.beyond(one.seconds):,.1f}",
            f"{one.seconds:,.1f}",
            f"{one.cpu_seconds:,.1f}",
        )
    return table
