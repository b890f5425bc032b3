"""What the traces came to: figures for machines, tables for people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from bench.kept import Kept
from bench.recording import PARTITIONS
from tests.rig.teller import new_table

if TYPE_CHECKING:
    from tests.rig.teller import Teller

CLAIM: Final = (
    "Ten times under Gorilla's bytes a sample on a quiet broker, and less than twice as much where "
    "every series changes at every scrape"
)
GORILLA: Final = 1.37
"""Bytes a sample that its paper reports (VLDB 2015)."""

PROMETHEUS: Final = (1.3, 2.0)
"""Bytes a sample that its documentation and people's own figures report."""

_SHOWN: Final = ("quiet", "busy", "default-cadences", "hostile")

RULE: Final = """\
A sample is the value of one series in one answer, zero and idle (NaN) among them. What is derived,
the agent's account and events count as no samples, and their bytes count all the same. Bytes are
live data files of all four tables after one compaction."""


@dataclass
class Findings:
    """Filled step by step; ``plain`` and ``ordered`` are bytes of the quiet trace."""

    kept: dict[str, Kept] = field(default_factory=dict)
    plain: int = 0
    ordered: int = 0

    def figures(self) -> dict[str, Any]:
        """By name, as the last line has them."""
        quiet = self.kept["quiet"]
        named = {"bytes_per_sample": quiet.per_sample}
        named |= {
            f"bytes_per_sample_{name.replace('-', '_')}": one.per_sample
            for name, one in self.kept.items()
            if one is not quiet
        }
        named["bytes_per_sample_plain_delta"] = self.plain / quiet.samples
        named["bytes_per_sample_plain_delta_sorted"] = self.ordered / quiet.samples
        default = self.kept["default-cadences"]
        rows = sum(default.rows.values()) / PARTITIONS / default.hours
        named["rows_per_partition_hour"] = rows
        counts = {"samples": quiet.samples, "rows": sum(quiet.rows.values())}
        sizes = {"bytes": sum(quiet.files.values()), "log_bytes": quiet.log}
        return {name: round(value, 4) for name, value in named.items()} | counts | sizes

    def ratios(self) -> dict[str, float]:
        """Theirs by ours, so that more is better."""
        quiet = self.kept["quiet"]
        ours = quiet.per_sample
        found = {
            "vs_plain_delta": self.plain / quiet.samples / ours,
            "vs_plain_delta_sorted": self.ordered / quiet.samples / ours,
            "vs_gorilla": GORILLA / ours,
            "vs_prometheus": PROMETHEUS[0] / ours,
            "vs_gorilla_hostile": GORILLA / self.kept["hostile"].per_sample,
        }
        return {name: round(value, 2) for name, value in found.items()}


def show(findings: Findings, teller: Teller) -> None:
    """The sizes, and where they come from."""
    table = new_table(
        "Bytes a sample, live data files", "samples", "changed", "rows", "bytes", "log", "a sample"
    )
    for name, one in findings.kept.items():
        numbers = sum(one.rows.values()), sum(one.files.values()), one.log
        table.add_row(
            f"as runs, {name}",
            *(f"{one.samples:,}", f"{one.changes / one.samples:.1%}"),
            *(f"{each:,}" for each in numbers),
            f"{one.per_sample:.3f}",
        )
    samples = findings.kept["quiet"].samples
    for name, size in (("defaults", findings.plain), ("sorted, zstd", findings.ordered)):
        told = f"{samples:,}", "", f"{samples:,}", f"{size:,}", "", f"{size / samples:.3f}"
        table.add_row(f"plain Delta, quiet, {name}", *told)
    table.add_row("Gorilla, its paper", *5 * [""], f"{GORILLA}")
    table.add_row("Prometheus, literature", *5 * [""], "{} to {:g}".format(*PROMETHEUS))
    teller.show(table)
    table = new_table("Where the bytes of bronze/runs go", *_SHOWN)
    shown = [findings.kept[name].columns for name in _SHOWN]
    for column in shown[0]:
        shares = (columns.get(column, 0) / sum(columns.values()) for columns in shown)
        table.add_row(column, *(f"{share:.1%}" for share in shares))
    teller.show(table)
    print(RULE)
