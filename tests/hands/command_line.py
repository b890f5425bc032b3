"""Check of command lines of jmxlake in a text: existing commands, options and choices."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

import click

from docs.tools.commands import PROGRAMS
from tests.hands.page_script import logical_lines, steps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_INLINE: Final = re.compile(r"`((?:jmxlake|jmxlake-agent) [^`\n]+)`")
_OPERATORS: Final = frozenset("();<>|&")
_ASSIGNMENT: Final = re.compile(r"\w+=.*", re.DOTALL)
_PREFIXES: Final = {"sudo", "exec", "nice", "env", "time", "$"}


def problems(markdown: str) -> Iterator[str]:
    """Yield each wrong command line of a page, with its line."""
    for step in steps(markdown):
        for text in logical_lines(step.script):
            yield from (f"{step.line}: {one}" for one in wrong(text))
    prose = re.sub(r"(?ms)^```.*?^```$", lambda block: "\n" * block[0].count("\n"), markdown)
    for span in _INLINE.finditer(prose):
        line = prose.count("\n", 0, span.start()) + 1
        yield from (f"{line}: {one}" for one in wrong(span[1]))


def wrong(text: str) -> Iterator[str]:
    """Yield the problem of each call of jmxlake or jmxlake-agent in a shell line."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return  # a word of an apostrophe, or of a quote over several lines
    for call in _calls(words):
        if problem := _problem(call):
            yield f"{' '.join(call)}: {problem}"


def _calls(words: Sequence[str]) -> Iterator[list[str]]:
    """Yield the words of each call, from the program to the next operator."""
    command: list[str] = []
    for word in [*words, ";"]:
        if not _OPERATORS.issuperset(word):
            command.append(word)
            continue
        if call := _program(command):
            yield call
        command = []


def _program(words: list[str]) -> list[str]:
    """Return the words from jmxlake on, if it is the program, otherwise an empty list."""
    if "--" in words:
        words = words[words.index("--") + 1 :] or words
    while words and (words[0] in _PREFIXES or _ASSIGNMENT.fullmatch(words[0])):
        words = words[1:]
        while words and words[0] == "-u":
            words = words[2:]
    name = words[0].rpartition("/")[2] if words else ""
    return [name, *words[1:]] if name in PROGRAMS and not words[0].endswith("/") else []


def _problem(call: Sequence[str]) -> str | None:
    """Return what is wrong with a call. None: its command and its options exist."""
    name, *words = call
    words = words[: words.index("...")] if "..." in words else words
    command: click.Command = PROGRAMS[name]
    context = click.Context(command, info_name=name)
    while True:
        try:
            given, rest, _ = command.make_parser(context).parse_args(list(words))
        except click.NoSuchOption as error:
            return error.message
        except click.UsageError:
            return None  # prose names an option without its value
        if not isinstance(command, click.Group) or not rest:
            return _wrong_choice(command, given)
        below = command.get_command(context, rest[0])
        if below is None:
            return f"no command {rest[0]}"
        command, words = below, rest[1:]
        context = click.Context(command, parent=context, info_name=rest[0])


def _wrong_choice(command: click.Command, given: dict[str, object]) -> str | None:
    for one in command.params:
        value = given.get(one.name or "")
        is_word = isinstance(value, str) and value.islower() and value.isalnum()
        if is_word and isinstance(one.type, click.Choice) and value not in one.type.choices:
            return f"{one.opts[0]} has no choice {value}"
    return None
