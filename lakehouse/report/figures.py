"""Figures with bounds and names from outside as text, and lookups in the facts of a report."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lakehouse.core import display
from lakehouse.core.metrics import families, roles_of
from lakehouse.core.periods import Span, micros
from lakehouse.tables import MAX_GAP_INTERVALS
from lakehouse.tables.agent_names import role_of

Row = Mapping[str, Any]
Facts = Mapping[str, Any]
"""The facts of a report, with the keys of ``facts/report_record.py``."""

SUBJECT_KEYS: Final = ("group", "user", "client_id", "topic", "partition", "source")
BOUNDS: Final = ("", "_low", "_high")
"""Suffixes of a value and its bounds."""

WIDE: Final = 0.05
"""Distance, as a share of the figure, from which bounds are text."""

_ALIKE: Final = 0.1
"""Greatest difference of two bounds' distances, as a share of both, for ``±``."""

_LABELS: Final = {"client_id": "client id"}


@dataclass(frozen=True, slots=True)
class Name:
    """A name from outside: of a topic, a client, a broker.

    Attributes:
        text: The name, shortened, without invisible characters.
        title: The whole name, capped; empty if ``text`` is the whole name.
        label: The kind of thing it names; empty if the column names it.
    """

    text: str
    title: str = ""
    label: str = ""

    @property
    def labelled(self) -> str:
        """Label and name."""
        return f"{self.label} {self.text}".strip()


def moment(instant: str) -> int:
    """Return an instant of the facts, microseconds."""
    return micros(display.parse(instant))


def span_of(row: Row, start: str = "start", end: str = "end") -> Span:
    """Return two instants of a row, microseconds.

    Args:
        row: A row with ISO 8601 instants.
        start: Key of the first.
        end: Key of the second.
    """
    return moment(row[start]), moment(row[end])


def name(value: object, label: str = "", limit: int = display.NAME_LIMIT) -> Name:
    """Return a name that is safe to show, whatever characters it has."""
    # Escapes of invisible characters are six times as long, so shorten first.
    whole = display.visible(display.shorten(str(value), 2 * display.TITLE_LIMIT))
    text = display.shorten(whole, limit) or "(empty)"
    title = display.shorten(whole, display.TITLE_LIMIT)
    return Name(text, "" if title == text or not whole else title, label)


def subject(row: Row, keys: Iterable[str] = SUBJECT_KEYS) -> tuple[Name, ...]:
    """Return the names of a row's subject; empty for the whole cluster."""
    return tuple(name(row[key], _LABELS.get(key, key)) for key in keys if row.get(key) is not None)


def single(value: object) -> tuple[Name, ...]:
    """Return one name without a label; empty for None."""
    return () if value is None else (name(value),)


def badness(row: Row, *stems: str) -> tuple[float, float, float]:
    """Return a sort key, worst greatest: longest bad time, its upper bound, unknown time.

    The first is the figure that is shown. One that is not known ranks above zero and below every
    known bad time.
    """
    worst = 0.0, 0.0
    for stem in stems:
        value, high = row.get(f"{stem}_us"), row.get(f"{stem}_high_us")
        shown = 0.5 if value is None else float(value)
        worst = max(worst, (shown, 0.5 if high is None else float(high)))
    unknown = row.get("unknown_us")
    return *worst, float("inf") if unknown is None else float(unknown)


def length(us: float | None, rounding: display.Rounding = "nearest") -> str:
    """Return a duration in words; 0 has no unit."""
    return "0" if us == 0 else display.length(None if us is None else round(us), rounding)


def around(
    value: float | None, low: float | None, high: float | None, write: Callable[..., str] = length
) -> tuple[str, bool]:
    """Return the bounds of a figure in words, and whether they must be shown with it.

    Args:
        value: The figure.
        low: Its lower bound, which is rounded down.
        high: Its upper bound, which is rounded up.
        write: Formats a number and takes how it is rounded.
    """
    if value is None or low == value == high or (low is None and high is None):
        return "", False
    if high is None:
        return f"at least {write(low, 'down')}", True
    is_wide = max(high - value, 0 if low is None else value - low) > WIDE * value
    if low is None or not value:
        return f"at most {write(high, 'up')}", is_wide
    if abs((high - value) - (value - low)) <= _ALIKE * (high - low):
        return f"±{write(max(high - value, value - low), 'up')}", is_wide
    return f"{write(low, 'down')} to {write(high, 'up')}", is_wide


_OF_GROUP: Final = ("group", "team", "owner", "tier")


def value_at(row: Any, path: str) -> Any:
    """Return the value at a dotted path, such as ``copy.lagging_us``; None without one."""
    for key in path.split("."):
        row = (row or {}).get(key)
    return row


def rows_at(facts: Row, path: str) -> Iterator[Row]:
    """Yield the rows at a dotted path; a row of a list within rows has their values as well."""
    key, _, rest = path.partition(".")
    found = facts.get(key) or ()
    if isinstance(found, Mapping):
        yield from rows_at(found, rest)
        return
    for row in found:
        yield from ({**row, **one} for one in rows_at(row, rest)) if rest else (row,)


def group_totals(partitions: Iterable[Row]) -> list[dict[str, Any]]:
    """Return the offsets that each group lost in all its partitions, most first.

    Args:
        partitions: Rows of ``lost_before_read.groups``. If a partition lacks an upper bound, its
            group lacks it. The unknown time of a group is the longest of its partitions.
    """
    by_group: dict[Any, list[Row]] = {}
    for row in partitions:
        by_group.setdefault(row["group"], []).append(row)
    totals = [
        {
            **{key: row for key, row in rows[0].items() if key in _OF_GROUP},
            "topics": len({row.get("topic") for row in rows}),
            "partitions": len(rows),
            "offsets_low": _sum(
                [low for row in rows if (low := row.get("offsets_low")) is not None]
            ),
            "offsets_high": _sum([row.get("offsets_high") for row in rows]),
            "unknown_us": _most(row.get("unknown_us") for row in rows),
        }
        for rows in by_group.values()
    ]
    return sorted(totals, key=_most_lost)


def _most_lost(row: Row) -> tuple[float, str]:
    return -(row["offsets_high"] or row["offsets_low"] or 0), str(row["group"])


def _sum(values: Sequence[float | None]) -> float | None:
    return None if None in values or not values else sum(filter(None, values))


def _most(values: Iterable[int | None]) -> int | None:
    found = list(values)
    return None if None in found else max(value for value in found if value is not None)


def nothing_seen(facts: Facts, metric: str | None = None) -> bool:
    """Return True if no family with this metric was read; None: no family at all.

    A family that no agent reads has no row in the coverage, and counts as not read.
    """
    if metric is None:
        return not value_at(facts, "coverage.observed_us")
    sources, read_with = value_at(facts, "coverage.sources") or (), families(metric)
    return not any(row.get("observed_us") for row in sources if row.get("family") in read_with)


def is_out_of_reach(facts: Facts, metric: str) -> bool:
    """Return True if it is in MBeans only, and every source is a cluster read through Admin."""
    sources = [str(row.get("source")) for row in value_at(facts, "coverage.sources") or ()]
    of_admin = bool(sources) and all(role_of(one) == "cluster" for one in sources)
    return of_admin and "cluster" not in roles_of(metric)


def floor_us(interval_us: int, slowest_us: int) -> int:
    """Return the longest time between two readings that is not unknown time, microseconds.

    Usually it is one interval. After a restart of the agent, or with late responses, it is more: a
    response covers ``MAX_GAP_INTERVALS`` intervals at most, and a value that is read first in a
    response can be read last in the next.

    Args:
        interval_us: Time between scrapes.
        slowest_us: Duration of the slowest response.
    """
    return round(MAX_GAP_INTERVALS * interval_us) + 2 * slowest_us


def longest_floor_us(read: Iterable[tuple[int | None, int | None]]) -> int | None:
    """Return the longest floor of pairs of interval and slowest response; None: without any."""
    return max((floor_us(us, slowest or 0) for us, slowest in read if us), default=None)
