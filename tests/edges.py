"""Run the tests marked ``edge`` and end with a JSON line: ``make test-edges``.

An edge is an ordinary fault after which a report could reassure about time that was not observed.
Each test belongs to a row of ``ROWS``; every parametrized case counts as one edge.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

CLAIM: Final = "After an ordinary fault no report calls good what was not observed"

ROWS: Final = {
    1: "an answer of the Admin API in part",
    2: "a gold table is lost",
    3: "two agents read one broker, or a batch is there twice",
    4: "an exporter hides InSyncReplicasCount",
    5: "a source shows some series only",
    6: "hardly any of the period was observed",
    7: "a stopped broker takes its counters with it",
    8: "no agent reads a metric",
    9: "a fenced broker claims leadership",
    10: "the sentence states the worst row",
    11: "a group loses records in several partitions",
    12: "weeks of one time zone are read in another",
    13: "the weekly job runs in the time zone of its week",
    14: "a running week",
    15: "upload lag that is held back on purpose, and Kafka 4.4",
    16: "a data file is lost",
    17: "the folder of the lake disappears",
}
"""What goes wrong, by the number that a test names in its mark."""


class _Edges:
    """Counts the outcome of each test that is marked."""

    def __init__(self) -> None:
        self.rows: Counter[int] = Counter()
        self.failed: list[str] = []
        self.broken = False

    def pytest_collection_modifyitems(self, items: Sequence[pytest.Item]) -> None:
        """Count each edge under its row."""
        for item in items:
            if mark := item.get_closest_marker("edge"):
                self.rows[int(mark.args[0])] += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be collected may hold edges."""
        self.broken = self.broken or report.failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember what did not pass; a skipped edge was not shown either."""
        if not report.passed and report.nodeid not in self.failed:
            self.failed.append(report.nodeid)


def main() -> int:
    """Run every edge, and print the figures."""
    edges = _Edges()
    # Importing every test module costs more than the edges do, so lanes are left to `make test`.
    code = pytest.main(["tests", "--ignore=tests/deploy", "-m", "edge", "-q"], plugins=[edges])
    missing = [row for row in ROWS if not edges.rows[row]]
    figures = {
        "edges": sum(edges.rows.values()),
        "failed": len(edges.failed),
        "rows": len(edges.rows),
        "rows_missing": missing,
        "by_row": {str(row): edges.rows[row] for row in sorted(edges.rows)},
    }
    sys.stdout.write(json.dumps({"claim": CLAIM, "figures": figures, "ratios": {}}) + "\n")
    return int(bool(code or edges.broken or edges.failed or missing))


if __name__ == "__main__":
    sys.exit(main())
