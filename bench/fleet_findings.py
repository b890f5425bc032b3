"""What the fleets did, as a table for people and as one line for machines."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from rich import box
from rich.table import Table

from bench.fleet_levels import Result, median, p99

if TYPE_CHECKING:
    from collections.abc import Sequence

CLAIM: Final = (
    "Hundreds of agents commit to one S3 lake every five minutes without losing or doubling a row, "
    "because their commits are spread over the interval"
)
_BEARABLE: Final = 0.01  # share of time late
_FULL_MACHINE: Final = 0.9


@dataclass
class Findings:
    """Filled level by level."""

    results: list[Result] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)

    @property
    def knee(self) -> int:
        """Most agents at the usual interval up to which windows are in the lake in time."""
        usual = (one for one in self.results if one.spread)
        borne = 0
        for result in sorted(usual, key=lambda one: one.like):
            if result.late_share > _BEARABLE:
                break
            borne = result.like
        return borne

    @property
    def knee_is_the_machines(self) -> bool:
        """Whether a bigger machine might have borne more: this one was full, or nothing broke."""
        more = [one for one in self.results if one.spread and one.like > self.knee]
        return all(one.busy > _FULL_MACHINE for one in more)

    @property
    def machine_is_full(self) -> bool:
        """Whether agents left it no processor: what is heavier would tell nothing of lakes."""
        return any(one.busy > _FULL_MACHINE for one in self.results if one.spread)

    def ratios(self) -> dict[str, float]:
        """All at once by spread, so that more speaks for spreading; the same number of agents."""
        spread = {(one.agents, one.interval): one for one in self.results if one.spread}
        found = {}
        for one in self.results:
            if not one.spread and (one.agents, one.interval) in spread:
                ours = spread[one.agents, one.interval]
                name = f"{one.agents}_at_once_{one.commit_retries}_tries"
                found[f"p99_{name}"] = p99(one.ticks) / p99(ours.ticks)
        return {name: round(ratio, 3) for name, ratio in found.items()}

    def as_json(self) -> dict[str, Any]:
        """The last line of the benchmark."""
        figures: dict[str, Any] = {
            "knee_agents_at_5m": self.knee,
            "knee_is_the_machines": self.knee_is_the_machines,
            "lost": sum(one.lost for one in self.results),
            "doubled": sum(one.doubled for one in self.results),
            "given_up": self.given_up,
            "levels": [_figures(one) for one in self.results],
        }
        return {"claim": CLAIM, "figures": figures, "ratios": self.ratios()}


def _figures(one: Result) -> dict[str, Any]:
    found = {
        "agents": one.agents,
        "interval_seconds": one.interval,
        "like_agents_at_5m": one.like,
        "spread": one.spread,
        "commit_tries": one.commit_retries,
        "windows": len(one.ticks),
        "window_p50_seconds": median(one.ticks),
        "window_p99_seconds": p99(one.ticks),
        "commit_p50_seconds": median(one.commits),
        "commit_p99_seconds": p99(one.commits),
        "lost_rounds_mean": _mean(one.lost_rounds),
        "lost_rounds_max": max(one.lost_rounds, default=0),
        "failures": sum(one.failures.values()),
        "failure": next((text for text, _ in one.failures.most_common(1)), None),
        "late_share": one.late_share,
        "requests_per_window": one.requests,
        "machine_busy": one.busy,
        "lost": one.lost,
        "doubled": one.doubled,
    }
    return {name: _short(number) for name, number in found.items()}


def _short(number: Any) -> Any:
    if not isinstance(number, float):
        return number
    return None if math.isnan(number) else round(number, 3)  # JSON knows no NaN


def show(results: Sequence[Result]) -> Table:
    """A row for each fleet."""
    table = Table(
        title="Agents that commit to one S3 lake, 50 to 100 ms a request",
        box=box.SIMPLE_HEAD,
        title_justify="left",
        pad_edge=False,
        padding=(0, 1),
    )
    table.add_column("", no_wrap=True)
    for column in (
        "like", "p50 s", "p99 s", "runs s", "p99 s", "rounds", "errors", "late",
        "calls", "busy", "lost", "twice",
    ):  # fmt: skip
        table.add_column(column, justify="right", no_wrap=True)
    for one in results:
        table.add_row(
            _name(one),
            f"{one.like:,}" if one.spread else "-",
            f"{median(one.ticks):,.1f}",
            f"{p99(one.ticks):,.1f}",
            f"{median(one.commits):,.1f}",
            f"{p99(one.commits):,.1f}",
            f"{_mean(one.lost_rounds):,.2f}, {max(one.lost_rounds, default=0):,}",
            f"{sum(one.failures.values()):,}",
            f"{one.late_share:.1%}",
            f"{one.requests:,.0f}",
            f"{one.busy:.0%}",
            f"{one.lost:,}",
            f"{one.doubled:,}",
        )
    return table


def _mean(counts: Sequence[int]) -> float:
    return statistics.fmean(counts) if counts else 0.0


def _name(one: Result) -> str:
    if not one.spread:
        return f"{one.agents:,} at once, {one.commit_retries} tries"
    interval = f"{one.interval / 60:g} min" if one.interval >= 60 else f"{one.interval:g} s"
    return f"{one.agents:,} at {interval}"
