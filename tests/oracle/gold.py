"""Rows of gold in the form of the oracle, and the differences."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from lakehouse import tables
from lakehouse.core import metrics
from lakehouse.tables.gold import HOURS, WINDOWS
from tests.oracle import decoded, existence, hours, plain, promises, stretches

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from lakehouse.core.objective import Objective
    from tests.oracle.plain import Rows
    from tests.oracle.rows import Bronze

TABLES = {
    table.name: table
    for table in (*HOURS, *WINDOWS.values(), tables.DISTRIBUTIONS)
}  # fmt: skip
"""Tables of windows and hours, whose columns declare their aggregates."""

KEYS: dict[str, tuple[str, ...]] = {
    **{name: ("cluster", table.start, *table.keys[1:]) for name, table in TABLES.items()},
    "incidents": (
        "cluster", "hour", "metric", "level", "topic", "partition_id", "user_name", "client_id",
        "consumer_group", "source", "started_at",
    ),
    "readings": ("cluster", "hour", "source", "family", "outcome", "started_at"),
    "lags": ("cluster", "window_start", "metric", "topic", "source"),
    "subjects": (
        "cluster", "kind", "topic", "user_name", "client_id", "consumer_group", "source",
    ),
    "rejected": (
        "cluster", "window_start", "reason", "table_name", "source", "metric", "members",
    ),
}  # fmt: skip
_ROUNDED = frozenset(
    {
        "value_seconds", "value_mean", "increase", "max_total", "seconds_total", "offsets_low",
        "offsets_high", "total", "records_max",
    }
)  # fmt: skip


def wanted(bronze: Bronze, objectives: Sequence[Objective]) -> dict[str, Rows]:
    """Return every table of gold, computed in plain Python."""
    finest = {**plain.finest(bronze), "sli": promises.sli(bronze, objectives)}
    found = {name: hours.hours(TABLES[name], rows) for name, rows in finest.items()}
    finest["sli"] = hours.folded(found["sli"], finest["sli"])
    for name in WINDOWS.keys() & finest.keys():
        table, rows = WINDOWS[name], finest[name]
        found[table.name] = {key: hours.complete(table, row) for key, row in rows.items()}
    at_zero = {
        one.metric
        for one in objectives
        if one.events is None and one.op == "lte" and one.threshold <= 0
    }
    found["incidents"] = stretches.incidents(bronze, at_zero.union(metrics.WATCHED))
    found["readings"] = stretches.readings(bronze)
    found["lags"] = existence.lags(bronze)
    found["subjects"] = existence.subjects(bronze)
    found["rejected"] = existence.rejected(bronze)
    return found


def told(root: Path, name: str) -> Rows:
    """Return all rows of a table of a lake's gold by key."""
    rows = decoded.rows(root, _table(name))
    return by_key(name, _once(rows) if name == "rejected" else rows)


def _once(rows: Iterable[decoded.Row]) -> list[decoded.Row]:
    """Return rejected rows, summed by key: the rollup has some per batch."""
    grouped: defaultdict[tuple[Any, ...], list[decoded.Row]] = defaultdict(list)
    for row in rows:
        grouped[tuple(row[name] for name in KEYS["rejected"])].append(row)
    over = {"started_at": min, "ended_at": max, "agent": min, "batch": min, "row_count": sum}
    return [
        {**own[0], **{name: choose(row[name] for row in own) for name, choose in over.items()}}
        for own in grouped.values()
    ]


def by_key(name: str, rows: Iterable[decoded.Row]) -> Rows:
    """Return rows of a table of gold by key.

    Raises:
        AssertionError: Two rows have the same key, or a row's date is not that of its window.
    """
    found: Rows = {}
    start = _table(name).start
    for row in rows:
        if "date" in row:
            assert row["date"] == row[start] // 86_400_000_000, f"{name}: {row}"
        key = tuple(row[column] for column in KEYS[name])
        figures = {column: row[column] for column in row.keys() - {*KEYS[name], "date"}}
        assert key not in found, f"{name} holds {key} twice"
        found[key] = figures
    return found


def _table(name: str) -> tables.Table:
    return next(table for table in tables.GOLD if table.name == name)


def differences(name: str, found: Rows, expected: Rows, slack: float = 1e-6) -> list[str]:
    """Return a line for each missing, additional or different row.

    Args:
        name: The table.
        found: Rows of gold.
        expected: Rows of the oracle.
        slack: How far sums of doubles may differ however small they are.
    """
    lines = [f"{name}: no row {_shown(key)}" for key in expected.keys() - found.keys()]
    lines += [f"{name}: a row too many {_shown(key)}" for key in found.keys() - expected.keys()]
    for key in sorted(found.keys() & expected.keys(), key=repr):
        for column in sorted(found[key].keys() | expected[key].keys()):
            ours, right = (rows[key].get(column, "absent") for rows in (found, expected))
            if not same(column, ours, right, slack):
                lines.append(f"{name}: {_shown(key)}: {column} is {ours!r}, not {right!r}")
    return sorted(lines)


def _shown(key: tuple[Any, ...]) -> str:
    return " ".join(repr(part) for part in key)


def same(column: str, found: Any, expected: Any, slack: float) -> bool:
    """Return True for equal figures; sums of doubles are equal to 1e-9 or to millionths."""
    numbers = isinstance(found, float) and isinstance(expected, float)
    if column not in _ROUNDED or not numbers:
        return bool(found == expected)
    return math.isclose(found, expected, rel_tol=1e-9, abs_tol=slack)
