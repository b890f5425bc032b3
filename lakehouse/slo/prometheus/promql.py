"""Pieces of PromQL: strings, and patterns of names as matchers of labels."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

_PARTS: Final = re.compile(r"\[!?\]?[^\]]*\]|.", re.DOTALL)
"""What a pattern of ``fnmatchcase`` is made of: classes, and single characters."""


def matchers(match: Mapping[str, Sequence[str]], columns: Collection[str]) -> list[str]:
    """An objective's ``match`` in some columns; a label that is absent is empty to both."""
    found = []
    for column in match.keys() & set(columns):
        wanted = [_regex(one) for one in match[column] if not one.startswith("!")]
        unwanted = [_regex(one[1:]) for one in match[column] if one.startswith("!")]
        found += [f"{column}=~{quoted('|'.join(wanted))}"] if wanted else []
        found += [f"{column}!~{quoted('|'.join(unwanted))}"] if unwanted else []
    return sorted(found)


def is_regex(pattern: str) -> bool:
    """Whether Prometheus can have a pattern: a range that ends before it begins matches nothing."""
    try:
        re.compile(_regex(pattern.removeprefix("!")))
    except re.error:
        return False
    return True


def selected(chosen: Sequence[str]) -> str:
    """Matchers as they stand after a metric's name."""
    return f"{{{','.join(chosen)}}}" if chosen else ""


def quoted(text: str) -> str:
    """A string, which PromQL escapes as Go does: as JSON, but for surrogates."""
    return json.dumps(text, ensure_ascii=False)


def _regex(pattern: str) -> str:
    """A pattern of ``fnmatchcase`` in RE2's syntax; Prometheus anchors it at both ends."""
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
