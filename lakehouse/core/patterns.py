"""Patterns of names (``*``, ``?``, ``[abc]``), by which objectives choose subjects and series."""

import re
import warnings
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

_PARTS: Final = re.compile(r"\[!?\]?[^\]]*\]|.", re.DOTALL)
"""What a pattern of ``fnmatchcase`` is made of: classes, and single characters."""


def matches(name: str | None, patterns: Sequence[str]) -> bool:
    """Whether a name is meant: by one pattern, if any is without ``!``, and by none with it."""
    own, (wanted, unwanted) = name or "", _split(patterns)
    if wanted and not any(fnmatchcase(own, one) for one in wanted):
        return False
    return not any(fnmatchcase(own, one) for one in unwanted)


def regexes(patterns: Sequence[str]) -> tuple[str, str]:
    """What a whole name must match, and what it must not, in RE2's syntax; empty: anything."""
    wanted, unwanted = _split(patterns)
    return "|".join(map(_regex, wanted)), "|".join(map(_regex, unwanted))


def _split(patterns: Sequence[str]) -> tuple[list[str], list[str]]:
    unwanted = [one[1:] for one in patterns if one.startswith("!")]
    return [one for one in patterns if not one.startswith("!")], unwanted


def is_regex(pattern: str) -> bool:
    """Whether RE2 can have a pattern: a range that ends before it begins matches nothing."""
    with warnings.catch_warnings():
        # Python warns that [||] may once be a set of sets to it; to RE2 it will not.
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
