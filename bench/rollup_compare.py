"""Whether a peer's answers are ours: the same rows of gold, figure by figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from deltalake import DeltaTable

from bench.rollup_fleet import connect
from bench.rollup_world import AT, HOUR_US, LAG, UNDER, micros

if TYPE_CHECKING:
    import datetime as dt
    from pathlib import Path

    from duckdb import DuckDBPyConnection, DuckDBPyRelation

_KEYS: Final = {
    "partitions": ("length", "w", "metric", "topic", "partition"),
    "topics": ("length", "w", "metric", "topic"),
}
_FIGURES: Final = {
    "partitions": ("fine_series_seen_us", "series_affected_us", "value_seconds", "highest"),
    "topics": (
        "series_seen_us",
        "series_affected_us",
        "value_seconds",
        "affected_us",
        "max_concurrent",
    ),
}
_ALIKE: Final = 1e-3


class Agreement(NamedTuple):
    """How a peer's rows compare with ours, over both tables.

    Attributes:
        rows: Rows that both have.
        missing: Rows that only one of them has.
        equal: Share of the rows of which all figures are equal, to a millionth.
        worst: Largest difference of a figure's sum over all rows, relative.
    """

    rows: int
    missing: int
    equal: float
    worst: float

    @property
    def same(self) -> bool:
        """Whether the peer answered the same question.

        They differ where a source ceases to answer or a leader moves: samples do not tell when.
        """
        return self.rows > 0 and self.missing == 0 and self.worst < _ALIKE


def compare(lake: Path, out: Path, cluster: str, start: dt.datetime, hours: int) -> Agreement:
    """Compare windows of 5 minutes and hours."""
    rows = missing = equal = 0
    worst = 0.0
    for table, figures in _FIGURES.items():
        found = _compare(lake, out, table, (cluster, micros(start), hours))
        rows += int(found[0])
        missing += int(found[1])
        equal += int(found[2])
        sums = zip(found[3::2], found[4::2], strict=True)
        assert len(found) == 3 + 2 * len(figures)
        worst = max([worst, *(abs(a - b) / max(abs(a), 1e-9) for a, b in sums if a or b)])
    return Agreement(rows, missing, equal / rows if rows else 0.0, worst)


def _compare(lake: Path, out: Path, table: str, part: tuple[str, int, int]) -> tuple[float, ...]:
    cluster, first_us, hours = part
    keys, figures = _KEYS[table], _FIGURES[table]
    theirs = out / f"{table}.parquet"
    db = connect()
    # Hours of a partition leave out the windows in which it was zero all the time.
    fine = "CASE WHEN length = 'windows' THEN series_seen_us ELSE 0 END AS fine_series_seen_us"
    of_hours, of_windows = (_gold(db, lake, one) for one in (table, f"{table}_windows"))
    ours = (
        of_hours.union(of_windows)
        .select(f"*, {fine}")
        .filter(f"cluster = '{cluster}' AND metric IN ('{UNDER}', '{AT}', '{LAG}')")
    )
    answers = str(theirs / "*.parquet") if theirs.is_dir() else str(theirs)
    peer = db.read_parquet(answers).select(f"*, {fine}")
    chosen = f"w >= {first_us} AND w < {first_us + hours * HOUR_US}"
    positive = "series_affected_us > 0" if table == "partitions" else "TRUE"
    names = ", ".join((*keys, "series_seen_us", *figures))
    ours.filter(f"{chosen} AND {positive}").select(names).create("ours")
    peer.filter(f"{chosen} AND {positive}").select(names).create("theirs")
    alike = " AND ".join(
        f"abs(ours.{name} - theirs.{name}) <= 1e-6 * greatest(abs(ours.{name}), 1)"
        for name in figures
    )
    both = ", ".join(f"sum(ours.{name})::DOUBLE, sum(theirs.{name})::DOUBLE" for name in figures)
    paired = "ours.series_seen_us IS NOT NULL AND theirs.series_seen_us IS NOT NULL"
    counts = (paired, f"NOT ({paired})", alike)
    counted = ", ".join(f"count(*) FILTER ({one})" for one in counts)
    joined = f"ours FULL JOIN theirs USING ({', '.join(keys)})"
    found = db.execute(" ".join(["SELECT", counted, ",", both, "FROM", joined])).fetchone()
    db.close()
    assert found is not None
    return tuple(one or 0 for one in found)


def _gold(db: DuckDBPyConnection, lake: Path, name: str) -> DuckDBPyRelation:
    """A table of gold, with how long its windows are."""
    files = DeltaTable(str(lake / "gold" / name)).file_uris()
    read = db.read_parquet([one.removeprefix("file://") for one in files], hive_partitioning=True)
    is_finest = name.endswith("_windows")
    length, start = ("windows", "window_start") if is_finest else ("hours", "hour")
    renamed = "partition_id AS partition, " * name.startswith("partitions")
    own = f"epoch_us({start}) AS w, value_max AS highest"
    return read.select(f"'{length}' AS length, * EXCLUDE ({start}), {renamed}{own}")
