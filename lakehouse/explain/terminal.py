"""A story for a terminal, or as plain text for a pipe or file."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from rich.padding import Padding
from rich.text import Text

from lakehouse.explain.wording import length, lines, listed, span
from lakehouse.metrics import told_as
from lakehouse.periods import DAY_US, instant
from lakehouse.report import figures, words
from lakehouse.report.terminal import printed
from lakehouse.spans import Span, length as covered, overlap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rich.console import RenderableType


Row = dict[str, Any]

MOST: Final = 20
"""Intervals that are shown, the longest; the JSON has all."""

_MARKS: Final = {
    "met": ("✓ met", "green"),
    "missed": ("✗ missed", "red"),
    "uncertain": ("? uncertain", "yellow"),
    "no_data": ("- no data", "dim"),
}
_NOBODY_LOOKED: Final = "Nothing bad was seen, and nothing good either: nobody looked."
_MOST_WIDTH: Final = 120
_NARROW: Final = 72
_INDENT: Final = 3
_FEW: Final = 4

GOOD: Final = "·"
UNKNOWN: Final = "░"
NOT_THERE: Final = " "
BAD: Final = "▁▂▃▄▅▆▇█"
"""By the share of the time that was bad; what was bad at all is never drawn as nothing."""

LEGEND: Final = f"{BAD[0]}{BAD[3]}{BAD[-1]} bad, by its share   {UNKNOWN} not known   {GOOD} good"


def view(
    story: Mapping[str, Any], *, terminal: bool | None = None, width: int | None = None
) -> str:
    """The story with colour for a terminal, plain for anything else.

    Args:
        story: The facts, as docs/explain.md describes them.
        terminal: Whether a terminal reads it; None looks at standard output.
        width: Columns; None: those of the terminal, or 100 where there is none.
    """
    return printed(
        lambda columns: _parts(story, min(columns, _MOST_WIDTH)), terminal=terminal, width=width
    )


def _parts(story: Mapping[str, Any], width: int) -> Iterator[RenderableType]:
    yield Text(_title(story), "bold")
    yield Text(f"{words.period(story['from'], story['to'])}, {_life(story)}", "dim")
    yield from _objectives(story)
    yield Text()
    yield from _picture(story, width)
    yield from _intervals(story)
    yield from _remarks(story)


def _title(story: Mapping[str, Any]) -> str:
    names = figures.subject(story["subject"])
    what = ", ".join(f"{one.label} {one.text}" for one in names)
    cluster = figures.name(story["cluster"]).text
    return f"{what[:1].upper()}{what[1:]} of cluster {cluster}"


def _life(story: Mapping[str, Any]) -> str:
    exists = story["exists"]
    if exists is None:
        return "in which it did not exist"
    whole = exists["from"] == story["from"] and exists["to"] == story["to"]
    first, last = (words.day_and_time(exists[end]) for end in ("from", "to"))
    return "all of which it existed" if whole else f"of which it existed {first} to {last}"


def _objectives(story: Mapping[str, Any]) -> Iterator[RenderableType]:
    for one in story["objectives"]:
        mark, style = _MARKS[one["verdict"]]
        of_topic = story["subject"]["kind"] == "partition" != one["level"]
        whose = " (of its topic)" if of_topic else ""
        good = f"good {figures.attainment(one).text}"
        target = words.percent(one["target"])
        yield Text.assemble(
            (mark, style), f"  {words.line(one['title'])}{whose}: {good}; promised {target}"
        )
        if one["above"]:
            # What is bad above another value than zero is told by windows, as gold has it.
            yield from _bad_windows(one["bad"])


def _bad_windows(rows: Sequence[Row]) -> Iterator[RenderableType]:
    shown = sorted(rows, key=lambda row: row["bad_high_us"], reverse=True)[:_FEW]
    for row in (row for row in rows if row in shown):
        start, end = words.day_and_time(row["start"]), words.day_and_time(row["end"])
        bad = figures.time({**row, "unknown_us": 0}, "bad").text
        yield Padding(Text(f"between {start} and {end} bad for {bad}"), (0, 0, 0, _INDENT))
    if left := len(rows) - len(shown):
        yield Padding(Text(f"{words.plural(left, 'time')} more: see --json"), (0, 0, 0, _INDENT))


def _picture(story: Mapping[str, Any], width: int) -> Iterator[RenderableType]:
    """A line for each metric, its name before it or, where it is narrow, above it."""
    sums = story["sums"]
    narrow = width < _NARROW
    label = 0 if narrow else min(width // 3, max(len(words.line(s["title"])) for s in sums)) + 2
    within = span(story, "from", "to")
    drawn = _cells(within, max(7, width - label))
    life = span(story["exists"], "from", "to") if story["exists"] else None
    for one in sums:
        title = words.line(one["title"], max(label - 2, 30))
        bad = [span(row) for row in story["intervals"] if row["metric"] == one["metric"]]
        letters = _strip(drawn, life, bad, _unknown(story, one["metric"]))
        if narrow:
            yield Text(title)
        colour = "red" if bad else "green"
        yield Text.assemble("" if narrow else title.ljust(label), (letters, colour))
    if line := _axis(drawn):
        yield Text(" " * label + line, "dim")
    yield Text(LEGEND, "dim")


def _strip(
    cells: Sequence[Span], life: Span | None, bad: Iterable[Span], unknown: Iterable[Span]
) -> str:
    """One letter for each cell.

    Args:
        cells: What each letter stands for, in order.
        life: When the subject existed; None: not in this period.
        bad: When it was bad.
        unknown: When nobody knows.
    """
    bad, unknown = list(bad), list(unknown)
    return "".join(_letter(cell, life, bad, unknown) for cell in cells)


def _cells(within: Span, width: int) -> list[Span]:
    """The period in at most so many equal cells; as many each day, if it is of whole days."""
    start, end = within
    days, rest = divmod(end - start, DAY_US)
    number = width // days * days if days and not rest and width >= days else width
    edges = [start + (end - start) * at // number for at in range(number + 1)]
    return list(pairwise(edges))


def _axis(cells: Sequence[Span]) -> str:
    """Letters below the cells that say where each day begins; empty where no name has room."""
    each = sum(1 for cell in cells if cell[0] < cells[0][0] + DAY_US)
    if each == len(cells) or len(cells) % each:
        return ""
    for form in ("%a %-d", "%a", "%-d"):
        days = [f"{instant(cell[0]):{form}}" for cell in cells[::each]]
        if max(map(len, days)) < each:
            return "".join(day.ljust(each) for day in days).rstrip()
    return ""


def _letter(cell: Span, life: Span | None, bad: Iterable[Span], unknown: Iterable[Span]) -> str:
    alive = overlap(cell, life) if life else None
    ill = _covered(cell, bad)
    if ill:
        share = ill / (cell[1] - cell[0])
        return BAD[min(len(BAD) - 1, int(share * len(BAD)))]
    if alive is None:
        return NOT_THERE
    return UNKNOWN if _covered(alive, unknown) else GOOD


def _covered(cell: Span, spans: Iterable[Span]) -> int:
    return covered(common for one in spans if (common := overlap(cell, one)))


def _unknown(story: Mapping[str, Any], metric: str) -> list[Span]:
    """When it is not known: by the objective on this metric, else by any; else by its sources."""
    stated = story["objectives"]
    mine = [one for one in stated if metric in told_as([one["metric"]])] or stated
    if not mine:
        return [span(row) for row in story["silences"]]
    return [span(row) for one in mine for row in one["unknown"]]


def _intervals(story: Mapping[str, Any]) -> Iterator[RenderableType]:
    rows: list[Row] = story["intervals"]
    yield Text()
    if not rows:
        seen = any(one["attainment"] is not None for one in story["objectives"])
        yield Text("Nothing bad was seen." if seen else _NOBODY_LOOKED)
        return
    longest = sorted(rows, key=length, reverse=True)[:MOST]
    shown = [row for row in rows if row in longest]
    for number, row in enumerate(shown, 1):
        start, end = words.day_and_time(row["start"]), words.day_and_time(row["end"])
        title = f"{number}. {words.line(row['title'])}"
        yield Text.assemble((title, "bold"), f"  {start} to {end}")
        yield Padding(Text("\n".join(lines(row, story["subject"]))), (0, 0, 0, _INDENT))
    if left := len(rows) - len(shown):
        yield Text(f"{words.plural(left, 'shorter interval')} more: see --json.", "dim")


def _remarks(story: Mapping[str, Any]) -> Iterator[RenderableType]:
    yield Text()
    quiet = story["silences"]
    if quiet:
        who = list(dict.fromkeys(figures.name(row["source"]).text for row in quiet))
        yield Text(f"Silent at some time in the period: {listed(who)}.")
    for one in story["objectives"]:
        if lost := one["unknown_us"]:
            title, time = words.line(one["title"]), words.duration(lost, "up")
            yield Text(f"{title}: {time} are lost to what nobody saw.")
    if story["until"]:
        until = words.day_and_time(story["until"])
        yield Text(f"There is more: this tells of the time until {until}.", "yellow")
    if floor := story["detection_floor_us"]:
        time = words.duration(floor, "up")
        yield Text(f"What lasted less than {time} may never have been seen.", "dim")
