"""Everything that one run found, and what it comes to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bench import tools
from bench.curve import Point
from bench.offsets import OffsetTimes
from bench.peers.jmxquery import Jmxquery
from bench.peers.jolokia import Jolokia
from bench.peers.ours import Jmxlake, JmxlakeByExporter
from bench.tools import Result
from bench.weight import Weight

CLAIM = (
    "Reading under min ISR, quotas and tier lags takes a fraction of the time and of the broker's "
    "processor that other tools take for the same beans, and grows less than the partitions do"
)


@dataclass
class Findings:
    """Filled stage by stage.

    Attributes:
        same: The tools for the same beans.
        everything: Ours again, and jmx_exporter with all beans.
        points: The curve of ours.
        offsets: Log starts and ends, batched and one by one.
        weights: The agent without and with the Admin client.
        large_window: Memory for a window of many rows, by the names of the figures.
        remote_log: Processor time of a scrape of ``remote_log``, by the names of the figures.
        many_brokers: What an agent takes that reads ten brokers, by the names of the figures.
    """

    same: list[Result] = field(default_factory=list)
    everything: list[Result] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    offsets: OffsetTimes | None = None
    weights: list[Weight] = field(default_factory=list)
    large_window: dict[str, float] = field(default_factory=dict)
    remote_log: dict[str, float] = field(default_factory=dict)
    many_brokers: dict[str, float] = field(default_factory=dict)

    def ratios(self) -> dict[str, float]:
        """Theirs by ours, so that more is better.

        But ``growth_5x`` is 5,000 by 1,000 partitions, and ``prometheus_vs_jmx`` our time by an
        exporter by our time over JMX, the only one if no peers were measured.
        """
        same = {result.name: result for result in self.same}
        everything = {result.name: result for result in self.everything}
        ours, beside = same[Jmxlake.name], everything[Jmxlake.name]
        found: dict[str, float] = {}
        if len(same) > 1:
            pairs = {
                "jmx_exporter_same": (same[tools.EXPORTER_SAME], ours),
                "jmx_exporter_all": (everything[tools.EXPORTER_ALL], beside),
                "jmx_exporter_server": (same[tools.EXPORTER_SERVER], ours),
                "jmxquery": (same[Jmxquery.name], ours),
                "jolokia": (same[Jolokia.name], ours),
            }
            found |= {f"vs_{name}": _faster(*pair) for name, pair in pairs.items()}
            found |= {f"broker_cpu_vs_{name}": _cheaper(*pair) for name, pair in pairs.items()}
            found["broker_cpu_vs_jmx_exporter"] = found["broker_cpu_vs_jmx_exporter_same"]
        found["prometheus_vs_jmx"] = _faster(everything[JmxlakeByExporter.name], beside)
        if len(healthy := [point for point in self.points if not point.under]) == 2:
            few, many = healthy
            found["growth_5x"] = many.times.median / few.times.median
        return found

    def as_json(self) -> dict[str, Any]:
        """The last line of the benchmark."""
        figures: dict[str, Any] = {}
        for weight in self.weights:
            figures |= weight.figures()
        figures |= self.large_window | self.remote_log | self.many_brokers
        for result in self.same[:1]:  # ours
            figures["read_ms"] = round(result.times.median * 1e3, 3)
            figures["read_p99_ms"] = round(result.times.p99 * 1e3, 3)
        figures["tools"] = {result.name: _tool(result) for result in self.same}
        figures["all_beans"] = {result.name: _tool(result) for result in self.everything}
        figures["curve"] = [_point(point) for point in self.points]
        if self.offsets is not None:
            figures["offsets"] = self.offsets.figures()
        return {"claim": CLAIM, "figures": figures, "ratios": _short(self.ratios())}


def _faster(theirs: Result, ours: Result) -> float:
    return theirs.times.median / ours.times.median


def _cheaper(theirs: Result, ours: Result) -> float:
    return theirs.cost.cpu_seconds / max(ours.cost.cpu_seconds, 1e-6)


def _tool(result: Result) -> dict[str, float | None]:
    return _short(
        {
            "median_ms": result.times.median * 1e3,
            "p99_ms": result.times.p99 * 1e3,
            "scrapes": len(result.times.seconds),
            "broker_cpu_ms": result.cost.cpu_seconds * 1e3,
            "wire_kb": result.cost.wire_bytes / 1e3,
            "rss_mb": result.rss_mb,
        }
    )


def _point(point: Point) -> dict[str, float | None]:
    return _short(
        {
            "partitions": point.partitions,
            "under_min_isr": point.under,
            "median_ms": point.times.median * 1e3,
            "p99_ms": point.times.p99 * 1e3,
            "broker_cpu_ms": point.cpu_seconds * 1e3,
        }
    )


def _short(numbers: dict[str, Any]) -> dict[str, Any]:
    return {name: round(n, 3) if isinstance(n, float) else n for name, n in numbers.items()}
