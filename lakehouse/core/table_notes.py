"""Notes about gold's tables: hours in which a table can lack rows; IDs and versions.

The hours are in the table's own Delta properties, so the note is lost only with the table. IDs and
versions are in gold/progress.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from lakehouse import tables
from lakehouse.core.periods import Span, iso, micros, union
from lakehouse.errors import TableSchemaError

NOTE: Final = "jmxlake.incomplete"
"""Property of a table: the intervals in which it is incomplete."""

DUE: Final = "jmxlake.recompute"
"""Property of a table: ``true`` until a rollup has recomputed these intervals from bronze."""

COMPUTED: Final = (tables.SUBJECTS, *tables.OF_HOURS)
"""Tables that can be recomputed from bronze."""

CHECKED: Final = (*COMPUTED, tables.SLA)
"""Tables with a note of their completeness."""


class Gap(NamedTuple):
    """An interval in which a table can lack rows; microseconds."""

    start: int
    end: int
    reason: str


class Noted(NamedTuple):
    """A table as noted in gold/progress. The version is None if the engine has none."""

    id: str
    version: int | None


def gaps(properties: Mapping[str, str]) -> list[Gap]:
    """Return the intervals in a table's properties.

    Raises:
        TableSchemaError: Another tool has changed the property.
    """
    found = []
    for part in filter(None, properties.get(NOTE, "").split("; ")):
        span, _, reason = part.partition(" ")
        start, _, end = span.partition("/")
        try:
            found.append(Gap(_us(start), _us(end), reason))
        except (ValueError, OverflowError, TypeError) as error:
            raise TableSchemaError(
                f"a table of gold has an invalid property {NOTE} ({part[:60]!r}): another tool "
                "changed it. Remove the property, then run jmxlake rollup LAKE --since DATE"
            ) from error
    return found


def properties(found: Iterable[Gap], *, due: bool) -> dict[str, str]:
    """Return the properties that note intervals; adjacent intervals of a reason are joined."""
    by_reason: dict[str, list[Span]] = {}
    for gap in found:
        by_reason.setdefault(gap.reason, []).append((gap.start, gap.end))
    parts = (
        f"{iso(start)}/{iso(end)} {reason}"
        for reason, spans in by_reason.items()
        for start, end in union(spans)
    )
    return {NOTE: "; ".join(parts), DUE: "true" if due else "false"}


def is_due(properties: Mapping[str, str]) -> bool:
    """Return True if a rollup has not yet recomputed the intervals of a table."""
    return properties.get(DUE) == "true"


def of_tables(found: Mapping[str, Noted]) -> list[str]:
    """Return IDs and versions of tables as in the column ``tables`` of gold/progress."""
    return sorted(
        f"{name} {one.id} {'' if one.version is None else one.version}".rstrip()
        for name, one in found.items()
    )


def known_tables(notes: Sequence[str] | None, progress_id: str | None) -> dict[str, Noted]:
    """Return the tables noted in a row of gold/progress, by name.

    The result is empty for rows of an older version. It is also empty if gold/progress has another
    ID, because gold was cloned to another place.

    Args:
        notes: Column ``tables`` of the row.
        progress_id: ID of the table gold/progress.
    """
    found = {}
    for text in notes or ():
        name, _, rest = text.partition(" ")
        id_, _, version = rest.partition(" ")
        found[name] = Noted(id_, int(version) if version.isdecimal() else None)
    own = found.get(tables.PROGRESS.name)
    return found if own and own.id == progress_id else {}


def _us(text: str) -> int:
    return micros(dt.datetime.fromisoformat(text))
