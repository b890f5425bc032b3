"""One interval of a story, as the lines that a person reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakehouse.periods import micros
from lakehouse.report import figures, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lakehouse.spans import Span

Row = dict[str, Any]

_OUTCOMES: Final = {"timeout": "no answer in time", None: "no agent told of it"}
_UNITS: Final = {"{offset}": "offsets", "{request}": "requests"}
_NAMES: Final = 8
_FEW: Final = 4


def lines(row: Row, subject: Mapping[str, Any]) -> list[str]:
    """How long an interval lasted and how bad it was, who told it, who was silent, what happened.

    Args:
        row: One of the story's ``intervals``.
        subject: Whose story it is, as the story has it.
    """
    told = [figures.name(one).text for one in row["told_by"]]
    found = [_how_long(row), f"told by {listed(told)}" if told else ""]
    return [line for line in (*found, *_silent(row), *_noticed(row, subject)) if line]


def listed(names: Iterable[str]) -> str:
    """Names in a row, and how many more there are."""
    every = list(names)
    left = len(every) - _NAMES
    return ", ".join(every[:_NAMES]) + (f" and {left} more" if left > 0 else "")


def span(row: Mapping[str, Any], start: str = "start", end: str = "end") -> Span:
    """From when to when something lasted, microseconds."""
    return micros(words.parse(row[start])), micros(words.parse(row[end]))


def length(row: Mapping[str, Any]) -> int:
    """How long something lasted, microseconds."""
    start, end = span(row)
    return end - start


def _how_long(row: Row) -> str:
    exactly = {f"x{end}_us": row[f"lasted{end}_us"] for end in ("", "_low", "_high")}
    time = {"unknown_us": 0, **exactly}
    lasted = "" if row["lasted_us"] is None else f"lasted {figures.time(time, 'x').text}"
    edges = [
        f"{what} up to {words.duration(row[key], 'up')} earlier"
        for what, key in (("began", "lead_us"), ("ended", "tail_us"))
        if row[key]
    ]
    return "; ".join(part for part in (lasted, *edges, _worst(row), _of_parts(row)) if part)


def _worst(row: Row) -> str:
    low, high = row["worst_low"], row["worst_high"]
    unit = str(_UNITS.get(row["unit"], row["unit"]))
    if high is None or (unit == "partitions" and len(row["parts"]) == 1 and high == 1):
        return ""
    if unit == "ms":
        return f"at worst {words.milliseconds(high)} a request"
    most = words.quantity(high, unit)
    if row["lasted_us"] is None:
        return most if low == high else f"{words.count(low)} to {most}"
    if low != high:
        return f"at worst {words.quantity(low, unit)} to {most}"
    return f"at worst {most} at once" if unit == "partitions" else f"at worst {most}"


def _of_parts(row: Row) -> str:
    parts = row["parts"]
    if not parts:
        return ""
    noun = "partition" if len(parts) == 1 else "partitions"
    return f"{noun} {listed(words.line(part, words.NAME_LIMIT) for part in parts)}"


def _silent(row: Row) -> list[str]:
    every: Sequence[Row] = row["silent"]
    shown = sorted(every, key=length, reverse=True)[:_FEW]
    told = [f"silent: {_silence(one, row)}" for one in every if one in shown]
    left = len(every) - len(shown)
    return [*told, f"silent: {left} more, see --json"] if left else told


def _silence(one: Row, row: Row) -> str:
    why = _OUTCOMES.get(one["outcome"], words.line(one["outcome"]))
    error = f": {words.line(one['error'])}" if one["error"] else ""
    who = f"{figures.name(one['source']).text} ({words.line(one['family'])})"
    return f"{who} from {_at(one['start'], row)} for {words.duration(length(one))}, {why}{error}"


def _noticed(row: Row, subject: Mapping[str, Any]) -> list[str]:
    told = [_event(one, row, subject) for one in row["events"]]
    left = len(told) - 2 * _FEW
    return [*told[: 2 * _FEW], f"{left} more events, see --json"] if left > 0 else told


def _event(one: Row, row: Row, subject: Mapping[str, Any]) -> str:
    keys = ("topic", "partition", "user", "client_id", "group")
    own = [key for key in keys if one.get(key) is not None and one[key] != subject.get(key)]
    of = "".join(f" of {part.label} {part.text}" for part in figures.subject(one, own))
    values = [words.line(one[key]) for key in ("old", "new") if one.get(key) is not None]
    change = f": {' to '.join(values)}" if values else ""
    kind = words.line(one["kind"]).replace("_", " ")
    by = figures.name(one["source"]).text
    return f"{_at(one['at'], row)} {kind}{of}{change} (noticed by {by})"


def _at(instant: str, row: Row) -> str:
    """The time of day; with its day if that is another than the interval began on."""
    moment = words.parse(instant)
    same = moment.date() == words.parse(row["start"]).date()
    return f"{moment:%H:%M:%S}" if same else words.day_and_time(instant)
