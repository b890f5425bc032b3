"""Patterns of names (``*``, ``?``, ``[abc]``), with which objectives choose subjects and series."""

import re
import warnings
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

_PARTS: Final = re.compile(r"\[!?\]?[^\]]*\]|.", re.DOTALL)
"""Elements of a pattern of ``fnmatchcase``: classes and single characters."""


def matches(name: str | None, patterns: Sequence[str]) -> bool:
    """Return True if a pattern without ``!``, if any, matches a name and no pattern with ``!``."""
    own, (wanted, unwanted) = name or "", _split(patterns)
    if wanted and not any(fnmatchcase(own, one) for one in wanted):
        return False
    return not any(fnmatchcase(own, one) for one in unwanted)


def regexes(patterns: Sequence[str]) -> tuple[str, str]:
    """Return RE2 expressions that a whole name must match, and must not match. Empty: any name."""
    wanted, unwanted = _split(patterns)
    return "|".join(map(_regex, wanted)), "|".join(map(_regex, unwanted))


def _split(patterns: Sequence[str]) -> tuple[list[str], list[str]]:
    unwanted = [one[1:] for one in patterns if one.startswith("!")]
    return [one for one in patterns if not one.startswith("!")], unwanted


def is_regex(pattern: str) -> bool:
    """Return True if RE2 accepts a pattern; a reversed range is invalid."""
    with warnings.catch_warnings():
        # Python warns that the meaning of [||] can change; RE2's will not.
        warnings.simplefilter("ignore", FutureWarning)
        try:
            re.compile(_regex(pattern.removeprefix("!")))
        except re.error:
            return False
    return True


def _regex(pattern: str) -> str:
    made = []
    for part in _PARTS.findall(pattern):
        if len(part) > 1:
            inner = part[1:-1].replace("\\", r"\\").replace("[", r"\[")
            negated, inner = inner.startswith("!"), inner.removeprefix("!")
            inner = inner.replace("]", r"\]").replace("^", r"\^")
            made.append(f"[{'^' if negated else ''}{inner}]")
        else:
            made.append({"*": ".*", "?": "."}.get(part, re.escape(part)))
    return f"(?s:{''.join(made)})"
