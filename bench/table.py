"""The findings as tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.rig.teller import new_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from bench.curve import Point
    from bench.offsets import OffsetTimes
    from bench.tools import Result
    from bench.weight import Weight


def tools(title: str, results: Sequence[Result]) -> Table:
    """A row for each tool; the first is ours."""
    table = new_table(
        title,
        "median ms",
        "p99 ms",
        "scrapes",
        "broker CPU ms",
        "on the wire kB",
        "RSS MB",
        "ours =",
    )
    ours = results[0].times.median
    for result in results:
        table.add_row(
            result.name,
            f"{result.times.median * 1e3:,.2f}",
            f"{result.times.p99 * 1e3:,.2f}",
            str(len(result.times.seconds)),
            f"{result.cost.cpu_seconds * 1e3:,.2f}",
            f"{result.cost.wire_bytes / 1e3:,.1f}",
            f"{result.rss_mb:,.0f}" if result.rss_mb else "-",
            f"1/{result.times.median / ours:,.1f}",
        )
    return table


def curve(points: Sequence[Point]) -> Table:
    """A row for each share of bad partitions."""
    table = new_table(
        "Ours, by what is wrong", "under min ISR", "median ms", "p99 ms", "broker CPU ms"
    )
    for point in points:
        table.add_row(
            f"{point.partitions:,} partitions",
            f"{point.under:,}",
            f"{point.times.median * 1e3:,.2f}",
            f"{point.times.p99 * 1e3:,.2f}",
            f"{point.cpu_seconds * 1e3:,.2f}",
        )
    return table


def offsets(times: OffsetTimes) -> Table:
    """Both ways to read the same offsets."""
    table = new_table(f"Log start and end offsets of {times.partitions:,} partitions", "ms")
    table.add_row("Admin, in batches", f"{times.admin * 1e3:,.1f}")
    table.add_row("bean by bean", f"{times.bean_by_bean * 1e3:,.1f}")
    return table


def weights(found: Sequence[Weight]) -> Table:
    """A row for each kind of agent."""
    table = new_table(
        "The agent",
        "scrapes",
        "anonymous MB",
        "RSS MB",
        "peak RSS MB",
        "grew by MB",
        "CPU % of a core, alone",
    )
    for weight in found:
        table.add_row(
            f"JMX{weight.name.replace('_', ', ', 1)}",
            f"{weight.scrapes:,}",
            f"{weight.memory.anonymous_mb:,.0f}",
            f"{weight.memory.resident_mb:,.0f}",
            f"{weight.peak_mb:,.0f}",
            f"{weight.memory.growth_mb:+,.1f}",
            f"{weight.cpu_percent:.2f}",
        )
    return table
