"""What several outputs look up: in the facts, and in the data of this package."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, TypeVar

import yaml

from lakehouse.report import words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from lakehouse.report.figures import Row

T = TypeVar("T")

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@lru_cache
def declared(file: str) -> Mapping[str, Any]:
    """The content of csv.yaml or page.yaml."""
    text = resources.files("lakehouse.report").joinpath(file).read_text("utf-8")
    found: Mapping[str, Any] = yaml.load(text, _LOADER)  # noqa: S506  safe, and in C where it can be
    return found


def columns(listed: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Names and meanings of a table's columns; a list among them is shared with other tables."""
    for one in listed:
        yield from columns(one) if isinstance(one, list) else one.items()


def value_at(row: Any, path: str) -> Any:
    """What stands at a dotted path, such as ``forecast.0.share``; None where nothing does."""
    for key in path.split("."):
        if isinstance(row, list):
            row = row[int(key)] if int(key) < len(row) else None
        else:
            row = (row or {}).get(key)
    return row


def subjects(told: Mapping[str, Any]) -> Iterator[tuple[Row, Row]]:
    """Each objective with each of its subjects, in the order of the facts.

    Args:
        told: Whatever has ``objectives``: the facts, their business hours or their trends.
    """
    for objective in told.get("objectives") or ():
        for subject in objective.get("subjects") or ():
            yield objective, subject


def titled(told: Mapping[str, Any]) -> Iterator[Row]:
    """Each subject as one row that says its objective in words."""
    for objective, subject in subjects(told):
        yield {**subject, "objective": objective.get("title") or objective.get("name")}


def week_of(facts: Mapping[str, Any]) -> str:
    """Which week is meant: the same name is another time elsewhere. Empty: it is no ISO week."""
    week = facts.get("week")
    return f"ISO week {words.line(week['iso'])} of {words.line(week['time_zone'])}" if week else ""


def nothing_seen(facts: Mapping[str, Any], families: frozenset[str] = frozenset()) -> bool:
    """Whether no reading was made: of any of these families, or, where none is named, of any.

    A family that nobody was told to read is in no row of the coverage: nobody looked at it either.
    """
    if not families:
        return not value_at(facts, "coverage.observed_us")
    sources = value_at(facts, "coverage.sources") or ()
    return not any(row.get("observed_us") for row in sources if row.get("family") in families)


def touching(
    rows: Iterable[T], span: Callable[[T], tuple[Any, Any]], gap: Any = None
) -> Iterator[list[T]]:
    """Rows that touch, in the order of their starts.

    Args:
        rows: In that order.
        span: Start and end of a row.
        gap: What may lie between two that touch; None: nothing.
    """
    alike: list[T] = []
    reached: Any = None
    for row in rows:
        start, end = span(row)
        if alike and start > (reached if gap is None else reached + gap):
            yield alike
            alike = []
        reached = max(reached, end) if alike else end
        alike.append(row)
    if alike:
        yield alike


def tally(found: Iterable[str]) -> dict[str, Any]:
    """Verdicts of subjects together: the worst, how many there are, and of each how many."""
    counts = Counter(found)
    worst = next((verdict for verdict in words.VERDICTS if counts[verdict]), "no_data")
    counted = {verdict: counts[verdict] for verdict in words.VERDICTS}
    return {"verdict": worst, "subjects": counts.total(), **counted}
