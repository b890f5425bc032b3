"""How ``top`` looks: as much of the worst as the terminal has room for."""

from __future__ import annotations

from itertools import groupby
from textwrap import wrap
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.cells import cell_len
from rich.console import Group
from rich.table import Table
from rich.text import Text

from collector.commands.display import Middle, amount, ranges, span, styled, subject
from collector.commands.printable import printable
from collector.symptoms import FENCED, LAGGING, LEADERLESS, THROTTLED, UNDER_MIN_ISR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from collector.symptoms import State, Symptom, Unknown

_STYLES: Final = {
    LEADERLESS: "bold red",
    UNDER_MIN_ISR: "red",
    FENCED: "magenta",
    THROTTLED: "yellow",
    LAGGING: "cyan",
}
_WIDE: Final = 60  # columns from which on there is room for values
_MOST_UNKNOWN: Final = 4
_PART: Final = 3  # of the lines that what is unknown may take
_GAP: Final = "   "


class _Row(NamedTuple):
    """One line of the table; ``stands_for`` so many symptoms."""

    kind: str
    word: str
    of: str
    value: str
    brief: str
    since: str
    stands_for: int


def view(
    state: State, kinds: Sequence[str], now: float, heading: tuple[str, str], size: tuple[int, int]
) -> RenderableType:
    """The whole view.

    Args:
        state: What is wrong and what is not known.
        kinds: The symptoms that could be told here.
        now: The steady instant that durations are told up to.
        heading: What stands on the left and on the right of the first line.
        size: Columns and lines; 0 lines: as many as it takes.
    """
    width, height = size
    top = [
        _heading(*heading, width),
        *_counts(state, kinds, width),
        *_unknown(state.unknown, now, size),
    ]
    if not state.symptoms:
        text = "" if state.unknown else "Nothing is wrong, as far as these can tell."
        return Group(*top, Text(), styled(text, "green"))
    rows = _rows(state.symptoms, now)
    used = len(top) + 3  # an empty line, the header, the last line
    shown = rows[: max(1, height - used)] if height else rows
    rest = len(state.symptoms) - sum(row.stands_for for row in shown)
    table = _table(shown, width, fits=bool(height))
    return Group(*top, Text(), table, styled(f"and {rest:,} more" if rest else "", "dim"))


def _rows(symptoms: Sequence[Symptom], now: float) -> list[_Row]:
    """A row each; partitions of one topic to which the same happened at once share theirs."""

    def together(one: Symptom) -> object:
        series = one.series
        same = (one.kind, one.word, one.since, one.at_first_look, series.topic)
        return (
            (*same, None) if one.unit == "1" and series.partition is not None else (*same, series)
        )

    rows = []
    for _, group in groupby(symptoms, key=together):
        first, *others = group
        if others:
            numbers = ranges(one.series.partition or 0 for one in (first, *others))
            of = f"{first.series.topic}-{{{numbers}}}"
            value, brief = f"{1 + len(others):,} partitions", f"{1 + len(others):,}x"
        else:
            of = subject(first.series) or first.word
            value = brief = "" if first.unit == "1" else amount(first.value, first.unit)
        since = f"{'>' if first.at_first_look else ''}{span(now - first.since)}"
        rows.append(
            _Row(first.kind, first.word, printable(of), value, brief, since, 1 + len(others))
        )
    return rows


def _heading(left: str, right: str, width: int) -> Text:
    text = styled(left, "bold")
    text.truncate(max(1, width - len(right) - 1), overflow="ellipsis", pad=True)
    return text.append(f" {right}", "dim")


def _counts(state: State, kinds: Sequence[str], width: int) -> list[Text]:
    """How many have each symptom; a number stays on the line of what it counts."""
    lines = [Text()]
    for kind in kinds:
        count = state.number_of(kind)
        style = "bold red" if count is None else _STYLES[kind] if count else "dim"
        number = "?" if count is None else f"{count:,}"
        if count == 0 and kind in state.untold:
            number = "-"
        told = styled(f"{kind} {number}", style)
        if len(lines[-1]) + len(_GAP) + len(told) > width:
            lines.append(Text())
        lines[-1].append(_GAP if lines[-1] else "").append_text(told)
    return lines


def _unknown(unknown: Sequence[Unknown], now: float, size: tuple[int, int]) -> list[Text]:
    """A paragraph for each place and reason; as many lines as there is room for."""
    width, height = size
    causes: dict[tuple[str, str], list[Unknown]] = {}
    for one in unknown:
        causes.setdefault((one.place, one.why), []).append(one)
    most = max(1, min(_MOST_UNKNOWN, height // 4)) if height else len(causes)
    shown = list(causes.items())
    if len(shown) > most:
        shown = shown[: most - 1]
    told = [_cause(why, families, now) for (_, why), families in shown]
    lines = [line for text in told for line in wrap(text, width, break_on_hyphens=False)]
    if not height or len(lines) > height // _PART:  # a pipe wants whole lines
        lines = told
    rest = sum(map(len, causes.values())) - sum(len(families) for _, families in shown)
    lines += [f"and {rest} more families"] if rest else []
    styles = [styled(line, "bold red") for line in lines]
    for line in styles if height else ():
        line.truncate(width, overflow="ellipsis")
    return styles


def _cause(why: str, families: list[Unknown], now: float) -> str:
    names = ", ".join(one.family for one in families)
    since = min(one.since for one in families)
    return f"unknown {names} for {span(now - since)}: {printable(why)}"


def _table(rows: Sequence[_Row], width: int, *, fits: bool) -> Table:
    wide = width >= _WIDE
    values = [row.value if wide else row.brief for row in rows]
    whats = [f"{row.kind} {row.word}".strip() if wide else row.kind for row in rows]
    columns = [
        ["What", *whats],
        ["Of", *(row.of for row in rows)],
        *([["Value", *values]] if wide or any(values) else []),
        ["For", *(row.since for row in rows)],
    ]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, (name, *_) in enumerate(columns):
        of = name == "Of"
        table.add_column(
            name, no_wrap=True, ratio=1 if of else None, justify="left" if number < 2 else "right"
        )
    if fits:
        natural = sum(max(map(cell_len, column)) for column in columns)
        table.width = min(width, natural + 2 * (len(columns) - 1))
    for row, what, (_, of, *rest) in zip(
        rows, whats, list(zip(*columns, strict=True))[1:], strict=True
    ):
        table.add_row(styled(what, _STYLES[row.kind]), Middle(of), *map(styled, rest))
    return table
