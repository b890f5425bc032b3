"""Commands of a page with their expected outputs, and a comparison with real outputs."""

from __future__ import annotations

import re
from textwrap import dedent
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_BLOCK: Final = re.compile(r'(?ms)^( *)```(sh|console)( title="[^"\n]*")?\n(.*?)^\1```$')
_HERE_DOCUMENT: Final = re.compile(r"<<-?\s*['\"]?(\w+)")
_MARK: Final = "\x1e"
_DAYS: Final = "Mon|Tue|Wed|Thu|Fri|Sat|Sun"
_MONTHS: Final = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_MASKS: Final = (
    (re.compile(rf"\b(?:{_DAYS}|{_MONTHS})\b"), "DATE"),
    (re.compile(r"\d[\d.,:]*"), "0"),
    (re.compile(r"[ \t]+"), " "),
    (re.compile(r"(?:under )?\b0 (?:h|min|s|ms)\b(?: 0 (?:min|s|ms)\b)*"), "DURATION"),
)
"""Texts that differ between runs: dates, numbers, widths of columns, and units of durations."""
_PROGRESS: Final = re.compile(r"jmxlake: .*(?:DURATION|rows/s|left)")
"""Lines that only a slow machine prints, or that have the duration of a phase."""
_ANY_LINES: Final = "..."


class Step(NamedTuple):
    """Commands of a page that run together.

    Attributes:
        line: Line of the page.
        script: The commands.
        count: Number of commands.
        expected: Lines of the expected output. None: the page does not show it.
        title: Where it runs, if it cannot run on the lake of the sample.
    """

    line: int
    script: str
    count: int
    expected: tuple[str, ...] | None
    title: str = ""


def steps(markdown: str) -> Iterator[Step]:
    """Yield the steps of all blocks: a block of ``sh``, or each command of a console block."""
    for block in _BLOCK.finditer(markdown):
        _, kind, title, indented = block.groups()
        text = dedent(indented)
        line = markdown.count("\n", 0, block.start()) + 2
        place = (title or "").removeprefix(' title="').rstrip('"')
        if kind == "sh":
            yield Step(line, text, len(logical_lines(text)), None, place)
        else:
            yield from _of_console(text, line, place)


def _of_console(text: str, line: int, title: str) -> Iterator[Step]:
    lines = text.splitlines()
    starts = [at for at, one in enumerate(lines) if one.startswith("$ ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        typed, at = [lines[start][2:]], start + 1
        while typed[-1].endswith("\\"):
            typed.append(lines[at].removeprefix("> "))
            at += 1
        yield Step(line + start, "\n".join(typed) + "\n", 1, tuple(lines[at:end]), title)


def logical_lines(script: str) -> list[str]:
    """Return the commands of a script, without comments and here documents."""
    found: list[str] = []
    lines = iter(script.splitlines())
    for line in lines:
        text = line
        while text.endswith("\\"):
            text = text[:-1] + next(lines, "")
        if text.strip() and not text.lstrip().startswith("#"):
            found.append(text)
        if document := _HERE_DOCUMENT.search(text):
            while next(lines, document[1]).strip() != document[1]:
                pass
    return found


def bash(run: Sequence[Step]) -> str:
    """Return a script that runs steps one after another, and marks their outputs."""
    marked = (f"printf '\\n{_MARK}{at}{_MARK}\\n'\n{one.script}" for at, one in enumerate(run))
    return "set -e\nexec 2>&1\n" + "\n".join(marked) + f"\nprintf '\\n{_MARK}{len(run)}{_MARK}\\n'"


def outputs(printed: str) -> dict[int, list[str]]:
    """Return the lines of each started step, by its number; the number after the last: the end."""
    parts = re.split(rf"\n{_MARK}(\d+){_MARK}\n", printed)[1:]
    return {
        int(number): text.splitlines() for number, text in zip(parts[::2], parts[1::2], strict=True)
    }


def is_stale(expected: Iterable[str], actual: Sequence[str]) -> bool:
    """Return True if an output is not as expected. A line ``...`` is any number of lines.

    A page may leave out what jmxlake logs on standard error.
    """
    pattern = "".join(
        r"(?:.*\n)*" if line.strip() == _ANY_LINES else _line_pattern(line)
        for line in _without_progress(expected)
    )
    whole = _without_progress(actual)
    printed = [line for line in whole if not line.startswith("jmxlake: ")]
    return not any(
        re.fullmatch(pattern, "".join(f"{_masked(line)}\n" for line in lines))
        for lines in (whole, printed)
    )


def _without_progress(lines: Iterable[str]) -> list[str]:
    return [line for line in lines if not _PROGRESS.fullmatch(_masked(line))]


def _line_pattern(line: str) -> str:
    parts = (re.escape(_masked(part)) for part in line.split(_ANY_LINES))
    return ".*".join(parts) + r"\n"


def _masked(line: str) -> str:
    for pattern, replacement in _MASKS:
        line = pattern.sub(replacement, line)
    return line.rstrip()
