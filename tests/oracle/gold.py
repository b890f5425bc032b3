"""What gold says, in the shape of the oracles' rows, and where the two differ."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lakehouse import tables
from tests.oracle import decoded, existence, grains, plain, promises

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lakehouse.slo import Objective
    from lakehouse.tables import Table
    from tests.oracle.plain import Key, Rows
    from tests.oracle.rows import Bronze

GRAINS = ("grain", "period", "cluster", "window")
KEYS: dict[str, tuple[str, ...]] = {
    "topics": (*GRAINS, "metric", "topic"),
    "partitions": (*GRAINS, "metric", "topic", "partition"),
    "clients": (*GRAINS, "metric", "user", "client_id"),
    "groups": (*GRAINS, "metric", "group", "topic"),
    "brokers": (*GRAINS, "metric", "source"),
    "coverage": (*GRAINS, "source", "family", "outcome"),
    "non_consumed": (*GRAINS, "group", "topic", "partition"),
    "distributions": (
        *GRAINS,
        "metric",
        "topic",
        "user",
        "client_id",
        "group",
        "source",
        "sign",
        "bucket",
    ),
    "sli": (*GRAINS, "objective", "topic", "user", "client_id", "group", "source"),
    "subjects": ("cluster", "kind", "topic", "user", "client_id", "group", "source"),
    "rejected": (*GRAINS, "reason", "table", "source", "metric"),
}
_ROUNDED = frozenset(
    {
        "value_seconds",
        "mean",
        "increase",
        "max_total",
        "seconds_total",
        "offsets_low",
        "offsets_high",
    }
)


def told(root: Path, name: str) -> Rows:
    """All rows of a table of gold by their key.

    Raises:
        AssertionError: Two rows have the same key.
    """
    table = next(table for table in tables.GOLD if table.name == name)
    duck = decoded.connection()
    decoded.view(duck, root, table)
    keys = KEYS[name]
    names = [column for column in table.column_names if column not in keys]
    columns = ", ".join(_column(table, column) for column in (*keys, *names))
    found: Rows = {}
    for row in duck.execute(f"SELECT {columns} FROM {name}").fetchall():  # noqa: S608
        key, figures = tuple(row[: len(keys)]), dict(zip(names, row[len(keys) :], strict=True))
        if key in found and name == "rejected":
            figures["rows"] += found[key]["rows"]
        elif key in found:
            raise AssertionError(f"{name} holds {key} twice")
        found[key] = figures
    return found


def _column(table: Table, name: str) -> str:
    type_ = next(column.type for column in table.columns if column.name == name)
    return f'epoch_us("{name}") AS "{name}"' if type_ == "timestamp" else f'"{name}"'


def wanted(bronze: Bronze, objectives: Sequence[Objective]) -> dict[str, Rows]:
    """Every table of gold as plain Python computes it."""
    finest = plain.finest(bronze)
    found = {name: grains.all_grains(rows, bronze.window_us) for name, rows in finest.items()}
    found["sli"] = at_finest(promises.sli(bronze, objectives), bronze.window_us)
    found["subjects"] = existence.subjects(bronze)
    found["rejected"] = existence.rejected(bronze)
    return found


def at_finest(rows: Rows, window_us: int) -> Rows:
    """Finest rows with their place in front."""
    placed = {}
    for (cluster, window, *rest), figures in rows.items():
        grain, period, start = grains.windows(window, window_us)[0]
        placed[(grain, period, cluster, start, *rest)] = figures
    return placed


def differences(name: str, found: Rows, expected: Rows, slack: float = 1e-6) -> list[str]:
    """One line for each row that is missing, too many, or has another figure.

    Args:
        name: The table.
        found: What is told.
        expected: What is right.
        slack: How far sums of doubles may differ however small they are.
    """
    if name == "sli":  # times that are all 0 say nothing
        found = {key: row for key, row in found.items() if any(row.values())}
    lines = [f"{name}: no row {_shown(key)}" for key in expected.keys() - found.keys()]
    lines += [f"{name}: a row too many {_shown(key)}" for key in found.keys() - expected.keys()]
    for key in sorted(found.keys() & expected.keys(), key=repr):
        for column, value in expected[key].items():
            if not same(column, found[key].get(column), value, slack):
                lines.append(
                    f"{name}: {_shown(key)}: {column} is {found[key].get(column)!r}, not {value!r}"
                )
    return sorted(lines)


def _shown(key: Key) -> str:
    return " ".join(repr(part) for part in key)


def same(column: str, found: Any, expected: Any, slack: float) -> bool:
    """Equal to the bit; sums of doubles to 1e-9, or to the millionths they are made of."""
    if column not in _ROUNDED or found is None or expected is None:
        return bool(found == expected)
    return math.isclose(found, expected, rel_tol=1e-9, abs_tol=slack)
