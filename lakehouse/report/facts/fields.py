"""Fields of the facts' records: the figures of gold that these have, their bounds, their JSON."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from math import fsum
from typing import Annotated, Any, Final, NamedTuple, Self, TypeVar, get_origin, get_type_hints

from lakehouse.engines.gold_reader import Row

FORMAT: Final = 1
"""The ``format`` of docs/report-json.md that this version writes and reads."""


class Bounds(NamedTuple):
    """A figure and the least and greatest that it can truly be; None: not known.

    A field ``name_us`` is three keys in JSON: ``name_us``, ``name_low_us`` and ``name_high_us``; a
    field ``name`` is ``name``, ``name_low`` and ``name_high``.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None

    def times(self, factor: float | None) -> Self:
        """All three, multiplied by a factor; None: it is not known, and so none of them is."""
        if factor is None:
            return type(self)()
        return type(self)(*(None if figure is None else figure * factor for figure in self))


class Unread(NamedTuple):
    """For how long a source was not read, microseconds; ``is_whole``: never in its lifetime."""

    us: int
    is_whole: bool


NONE: Final = Bounds(0, 0, 0)
"""The increase of a counter that surely did not rise."""


def to_json(value: Any) -> Any:
    """A record, or a list of records, as report.json has it: a key for each field, in order."""
    if isinstance(value, list):
        return [to_json(item) for item in value]
    if not hasattr(value, "_asdict"):
        return value
    found: dict[str, Any] = {}
    for name, field in value._asdict().items():
        if isinstance(field, Bounds):
            found |= bounds_json(name, field)
        else:
            found[name] = to_json(field)
    return found


Known = float | None
"""A figure; None: it is not known."""

Metrics = Mapping[str, Mapping[str, Any]]
"""Sums of one subject, by metric."""

R = TypeVar("R")

_MEANS: Final = {"mean": "observed_us", "mean_above_0": "positive_us"}
"""The time over which a mean is taken."""


def figures(record: Callable[..., Any], rows: Metrics) -> dict[str, Any]:
    """The fields of a record that are declared as ``Annotated[TYPE, METRIC, COLUMN]``.

    Args:
        record: A named tuple. COLUMN is one of gold, ``mean`` or ``mean_above_0``; of Bounds it is
            the stem of three columns, ``held_back``, or ``increase`` of a counter, for which rows
            need its bounds (``counters.with_bounds``). ``counted`` is followed by a metric of the
            same scrapes, and by further counters: by how much they rose together, which is 0
            without a row of a counter where that metric was read.
        rows: Sums of gold of one subject, by metric.
    """
    return {name: _figure(rows, *declared) for name, declared in _declared(record).items()}


def of_sources(
    record: Callable[..., R],
    sums: Mapping[str, Metrics],
    *metrics: str,
    unread: Mapping[str, Unread] | None = None,
) -> list[R]:
    """A record of every source that has one of some metrics, in the order of their names.

    Args:
        record: A named tuple whose first field is the source, see ``figures`` for the others.
        sums: Sums of gold/brokers, by source and metric.
        metrics: The metrics; none: any.
        unread: Unread time by source, for a record that ends with ``unknown_us``. A source that was
            never read has a record without figures, if any other source has a record.
    """
    found = {name: own for name, own in sums.items() if any(one in own for one in metrics or own)}
    if unread is None:
        return [record(name, **figures(record, own)) for name, own in sorted(found.items())]
    return [
        record(name, **figures(record, found.get(name, {})), unknown_us=unknown_us(unread, name))
        for name in listed(found, unread)
    ]


def listed(found: Iterable[str], unread: Mapping[str, Unread]) -> list[str]:
    """Return the sources of a table in order: those with figures, and those that were never read.

    Args:
        found: Sources with figures; without any of them the table is empty.
        unread: Unread time by source.
    """
    names = set(found)
    return sorted(names | {name for name, one in unread.items() if one.is_whole} if names else ())


def unknown_us(unread: Mapping[str, Unread], source: str) -> int | None:
    """Return the unknown time of a source, microseconds; None: not known."""
    return unread[source].us if source in unread else None


@lru_cache
def _declared(record: Callable[..., Any]) -> dict[str, tuple[Any, ...]]:
    hints = get_type_hints(record, include_extras=True)
    return {
        name: (hint.__origin__, *hint.__metadata__)
        for name, hint in hints.items()
        if get_origin(hint) is Annotated
    }


def _figure(rows: Metrics, kind: Any, metric: str, column: str, *counted: str) -> Any:
    row = rows.get(metric) or {}
    if counted:
        return _rise(rows, counted[0], (metric, *counted[1:]))
    if column == "increase" and kind is Bounds:
        return _increase(row)
    if column == "held_back":
        held = duration(row, "positive")
        # Versions that lose the bean of waits after an hour without one (KAFKA-19484) have no upper
        # bound. Without the bean there was no wait, or this Kafka has none.
        return held._replace(high=None) if row.get("known_wrong") else held
    if kind is Bounds:
        return duration(row, column)
    return per_second(row, _MEANS[column]) if column in _MEANS else row.get(column)


def _increase(row: Mapping[str, Any]) -> Bounds:
    return Bounds(*(row.get(f"increase{bound}") for bound in ("", "_low", "_high")))


def _rise(rows: Metrics, beside: str, counters: Sequence[str]) -> Bounds:
    read = [rows[name] for name in counters if rows.get(name)]
    if not (read or rows.get(beside)):
        return Bounds()
    nothing = rows.get(beside, {}).get("no_increase", NONE)
    known = [_increase(row) for row in read]
    return total(known if len(known) == len(counters) else [nothing, *known])


def total(bounds: Iterable[Bounds]) -> Bounds:
    """A sum; a bound of it is unknown where that of a part is."""
    parts = zip(NONE, *bounds, strict=True)
    return Bounds(*(None if None in each else fsum(each) or 0 for each in parts))


def duration(row: Mapping[str, Any], stem: str, absent: int | None = None) -> Bounds:
    """The duration ``stem`` of a row and its bounds, microseconds.

    Args:
        row: A row of sums.
        stem: ``any`` for a union over series, ``positive`` for a sum over them.
        absent: What a row without this duration means.
    """
    return Bounds(*(row.get(f"{stem}{bound}_us", absent) for bound in ("", "_low", "_high")))


def per_second(row: Mapping[str, Any], time: str) -> float | None:
    """The mean of a value over the time ``time``; None without such time."""
    seconds = (row.get(time) or 0) / 1e6
    return row["value_seconds"] / seconds if seconds else None


def seconds_mean(row: Row) -> float:
    """The mean of a total over the time in which any source reported it; 0 without such time.

    Brokers that report in turns are several series in the time of one. No total was above
    ``max_total``, so it took at least ``value_seconds / max_total`` to add up to the sum.
    """
    total = row["value_seconds"] or 0.0
    seconds = (row["observed_us"] or 0) / 1e6 / (row["series"] or 1)
    if row["max_total"]:
        seconds = max(seconds, total / row["max_total"])
    return total / seconds if seconds else 0.0


def bounds_keys(name: str) -> tuple[str, str, str]:
    """Return the keys in JSON of a field of ``Bounds``."""
    stem = name.removesuffix("_us")
    unit = name[len(stem) :]
    return name, f"{stem}_low{unit}", f"{stem}_high{unit}"


def bounds_in(row: Mapping[str, Any], name: str) -> Bounds:
    """Return a field of ``Bounds`` of a row as JSON."""
    return Bounds(*map(row.get, bounds_keys(name)))


def bounds_json(name: str, value: Bounds) -> dict[str, Any]:
    """Return a field of ``Bounds`` as JSON."""
    return dict(zip(bounds_keys(name), value, strict=True))
