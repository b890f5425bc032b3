r"""Translation of Java's regular expressions to Python's, for jmx_exporter's rules.

It translates or refuses everything that only one of the languages supports or that differs: named
groups, flags within a pattern, classes by name, unions and intersections of classes, ``\Q...\E``.
The input is object names with placeholders. So classes are exact up to U+00FF only, and flags for
other letters or for line ends (d, u, U) have no effect. ``\b`` uses ASCII, as in Java 19 and later.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache
from typing import Final

_LONGEST: Final = 10_000
_DEEPEST: Final = 50
_FLAGS: Final = re.compile(r"\?([imsduUx]*)(?:-([imsduUx]*))?([:)])")
_IGNORED: Final = re.compile("[duU]")
_NAMED: Final = re.compile(r"\?<([a-zA-Z][a-zA-Z0-9]*)>")
_NAME: Final = re.compile("<([a-zA-Z][a-zA-Z0-9]*)>")
_PLAIN_GROUP: Final = re.compile(r"\?(?:[:=!>]|<[=!])")
_REPEATED: Final = re.compile(r"(?:[*+?]|\{\d{1,9}(?:,\d{0,9})?\})[?+]?")
_BY_NAME: Final = re.compile(r"[pP](?:([A-Z])|\{\^?([\w=]+)\})", re.ASCII)
_BY_NUMBER: Final = re.compile(
    r"0([0-3][0-7]{2}|[0-7]{1,2})|x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})"
)
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\x07", "e": "\x1b"}
_LINE_ENDS: Final = r"\n\x0b\f\r\x85\u2028\u2029"
_BLANKS: Final = r" \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000"
_ESCAPES: Final = {
    **{char: f"\\{char}" for char in "dDwWsSbB"},
    "h": f"[{_BLANKS}]",
    "H": f"[^{_BLANKS}]",
    "v": f"[{_LINE_ENDS}]",
    "V": f"[^{_LINE_ENDS}]",
    "R": rf"(?:\r\n|[{_LINE_ENDS}])",
    "A": r"\A",
    "z": r"\Z",
    "Z": r"(?=(?:\r\n|\n|\r)?\Z)",
}

_OTHER: Final = 256
"""Member of a set for all characters above U+00FF."""
_ALL: Final = frozenset(range(_OTHER + 1))
_Set = frozenset[int]


class PatternError(ValueError):
    """A pattern that is invalid in Java or not supported."""


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of Java so that ``fullmatch`` finds it anywhere in a text.

    Raises:
        PatternError: The pattern is invalid in Java or not supported.
    """
    try:
        return re.compile(f".*(?:{_Translator(pattern).whole()}).*", re.ASCII)
    except PatternError as error:
        raise PatternError(
            f"the agent does not support the pattern {pattern[:100]!a:.120}: {error}"
        ) from None
    except (re.error, OverflowError, RecursionError):
        why = "a group does not exist, or a lookbehind has no fixed length"
        raise PatternError(
            f"the agent does not support the pattern {pattern[:100]!a:.120}: {why}"
        ) from None


class _Translator:
    """One pattern, read from left to right."""

    def __init__(self, pattern: str) -> None:
        self._text, self._at = pattern, 0
        self._groups, self._names = 0, set[str]()
        self._any_case = False
        self._depth = 0

    def whole(self) -> str:
        if len(self._text) > _LONGEST:
            raise PatternError(f"longer than {_LONGEST:,} characters")
        found = self._alternatives()
        if self._at < len(self._text):
            raise PatternError("unbalanced closing bracket")
        return found

    def _alternatives(self) -> str:
        """Translate up to the end of a group. Flags in it apply up to this end."""
        out, flags, any_case = list[str](), list[str](), self._any_case
        self._depth += 1
        if self._depth > _DEEPEST:
            raise PatternError(f"groups are nested more than {_DEEPEST} deep")
        while self._at < len(self._text) and not self._text.startswith(")", self._at):
            if self._take("|"):
                out += [")" * len(flags), "|", *flags]
            elif flag := self._own_flags():
                flags.append(flag)
                out.append(flag)
            else:
                out += [*self._atom(), self._repeated()]
        self._any_case = any_case
        self._depth -= 1
        return "".join(out) + ")" * len(flags)

    def _take(self, text: str) -> bool:
        found = self._text.startswith(text, self._at)
        self._at += len(text) if found else 0
        return found

    def _match(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        found = expression.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return found

    def _next(self) -> str:
        if self._at >= len(self._text):
            raise PatternError("incomplete")
        self._at += 1
        return self._text[self._at - 1]

    def _repeated(self) -> str:
        found = self._match(_REPEATED)
        return found[0] if found else ""

    def _own_flags(self) -> str:
        """Translate flags for the rest of a group to a group with the same end."""
        at = self._at
        if self._take("(") and (found := self._match(_FLAGS)) and found[3] == ")":
            return self._flags(found)
        self._at = at
        return ""

    def _flags(self, found: re.Match[str]) -> str:
        on, off = found[1], found[2] or ""
        if "x" in on:
            raise PatternError("the flag x (comments) is not supported")
        self._any_case = (self._any_case or "i" in on) and "i" not in off
        on, off = _IGNORED.sub("", on), _IGNORED.sub("", off).replace("x", "")
        on = "".join(sorted(set(on) - set(off)))
        return f"(?{on}{'-' + ''.join(sorted(set(off))) if off else ''}:"

    def _atom(self) -> list[str]:
        """Translate an element; a repetition applies to the last item of the result."""
        char = self._next()
        if char == "(":
            return [self._group()]
        if char == "[":
            return [_written(self._class())]
        if char == "\\":
            return self._escape()
        if char in "*+?{":
            raise PatternError(f"{char} does not follow an element")
        return [char if char in ".^$" else re.escape(char)]

    def _group(self) -> str:
        any_case = self._any_case
        if plain := self._match(_PLAIN_GROUP):
            head = f"({plain[0]}"
        elif named := self._match(_NAMED):
            if named[1] in self._names:
                raise PatternError(f"duplicate group name {named[1]:.40}")
            self._names.add(named[1])
            self._groups += 1
            head = f"(?P<{named[1]}>"
        elif flags := self._match(_FLAGS):
            head = self._flags(flags)
        elif self._take("?"):
            raise PatternError(f"unknown kind of group (?{self._text[self._at :][:1]}")
        else:
            self._groups += 1
            head = "("
        inner = self._alternatives()
        self._any_case = any_case
        if not self._take(")"):
            raise PatternError("a bracket is not closed")
        return f"{head}{inner})"

    def _escape(self) -> list[str]:
        if self._take("Q"):
            return [*map(re.escape, self._quoted())] or ["(?:)"]
        if (char := self._single()) is not None:
            return [re.escape(char)]
        if by_name := self._by_name():
            return [_written(by_name)]
        char = self._next()
        if char in "123456789":
            return [self._reference(char)]
        if char == "k" and (named := self._match(_NAME)):
            return [f"(?P={named[1]})"]
        found = _ESCAPES.get(char)
        if found is None or (char == "b" and self._text.startswith("{", self._at)):
            raise PatternError(f"\\{char} is not supported")
        return [found]

    def _reference(self, number: str) -> str:
        # As many digits as form the number of a group before this reference.
        while (digit := self._text[self._at : self._at + 1]).isdecimal() and digit.isascii():
            if int(number + digit) > self._groups:
                break
            number += self._next()
        return f"(?:\\{number})"

    def _quoted(self) -> str:
        text, end, _ = self._text[self._at :].partition("\\E")
        if not end:  # the exporter's suffix of the pattern would also be quoted
            raise PatternError(r"\Q has no closing \E")
        self._at += len(text) + len(end)
        return text

    def _single(self) -> str | None:
        """Return the single character that an escape means. None: it means something else."""
        if found := self._match(_BY_NUMBER):
            octal, *hexadecimal = found.groups()
            code = int(octal, 8) if octal else int(next(filter(None, hexadecimal)), 16)
            if code > 0x10FFFF:
                raise PatternError(f"\\{found[0]} is not a character")
            return chr(code)
        char = self._next()
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char == "c":
            return chr(ord(self._next()) ^ 64)
        if not (char.isascii() and char.isalnum()):
            return char
        self._at -= 1
        return None

    def _by_name(self) -> _Set | None:
        at = self._at
        found = self._match(_BY_NAME)
        if found is None:
            return None
        members = _named_class(found[1] or found[2], any_case=self._any_case)
        if members is None or "^" in found[0]:
            raise PatternError(f"the class \\{self._text[at : self._at]:.40} is not supported")
        return _ALL - members if found[0].startswith("P") else members

    def _class(self) -> _Set:
        """Translate a class, after its opening bracket."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise PatternError(f"classes are nested more than {_DEEPEST} deep")
        is_negated = self._take("^")
        parts, members, is_empty, is_plain = list[_Set](), _Set(), True, True
        while is_empty or not self._take("]"):
            if self._take("&&"):
                if is_empty:
                    raise PatternError("&& does not follow a class")
                parts.append(members)
                members, is_empty, is_plain = _Set(), True, False
                continue
            if self._take("["):
                members, is_plain = members | self._class(), False
            else:
                members |= self._members()
            is_empty = False
        if is_negated and not is_plain:
            raise PatternError("a negated combination of classes depends on the version of Java")
        self._depth -= 1
        for part in parts:
            members &= part
        return _ALL - members if is_negated else members

    def _members(self) -> _Set:
        """Translate an item of a class: a character, a range, or a class by name."""
        char = self._next()
        if char == "\\":
            if self._take("Q"):
                return self._folded(map(ord, self._quoted()))
            single = self._single()
            if single is None:
                return self._class_escape()
            char = single
        start = end = ord(char)
        rest = self._text[self._at : self._at + 2]
        if rest[:1] == "-" and rest[1:] not in ("", "]", "["):
            self._at += 1
            last: str | None = self._next()
            last = self._single() if last == "\\" else last
            if last is None or ord(last) < start:
                raise PatternError("a range in a class ends before its start")
            end = ord(last)
        return self._folded(range(start, end + 1))

    def _class_escape(self) -> _Set:
        if by_name := self._by_name():
            return by_name
        char = self._next()
        if char in "dDwWsShHvV":
            expression = re.compile(_ESCAPES[char], re.ASCII)
            within = {one for one in range(_OTHER) if expression.match(chr(one))}
            return frozenset(within | ({_OTHER} if char.isupper() else set()))
        raise PatternError(f"\\{char} in a class is not supported")

    def _folded(self, codes: Iterable[int]) -> _Set:
        members = {min(code, _OTHER) for code in codes}
        return _in_any_case(members) if self._any_case else frozenset(members)


def _in_any_case(members: Iterable[int]) -> _Set:
    found = set(members)
    found |= {ord(chr(one).swapcase()) for one in found if one < 128}
    return frozenset(found)


def _written(members: _Set) -> str:
    """Return a set as a class of Python."""
    if members == _ALL:
        return "(?s:.)"
    is_open = _OTHER in members
    codes = sorted(_ALL - members if is_open else members)
    if not codes:
        return "(?!)"
    ranges, start = list[str](), codes[0]
    for code, after in zip(codes, [*codes[1:], -1], strict=True):
        if after != code + 1:
            ranges.append(f"\\x{start:02x}-\\x{code:02x}")
            start = after
    return f"[{'^' if is_open else ''}{''.join(ranges)}]"


def _of(fits: Callable[[str], bool], most: int = 128) -> _Set:
    return frozenset(code for code in range(most) if fits(chr(code)))


def _punctuation(char: str) -> bool:
    return char.isprintable() and not char.isalnum() and char != " "


_POSIX: Final = {
    "Lower": _of(str.islower),
    "Upper": _of(str.isupper),
    "ASCII": _of(lambda _: True),
    "Alpha": _of(str.isalpha),
    "Digit": _of(str.isdigit),
    "Alnum": _of(str.isalnum),
    "Punct": _of(_punctuation),
    "Graph": _of(lambda char: char.isprintable() and char != " "),
    "Print": _of(str.isprintable),
    "Blank": _of(" \t".__contains__),
    "Cntrl": _of(lambda char: not char.isprintable()),
    "XDigit": _of("0123456789abcdefABCDEF".__contains__),
    "Space": _of(" \t\n\x0b\f\r".__contains__),
}
_CATEGORIES: Final = {
    "alphabetic": "L", "letter": "L", "digit": "Nd", "lowercase": "Ll",
    "uppercase": "Lu", "punctuation": "P", "control": "Cc", "titlecase": "Lt",
    "letterordigit": "L|Nd", "lc": "Lu|Ll|Lt", "ld": "L|Nd",
}  # fmt: skip
"""Categories of Unicode by Java's names after ``Is`` or ``java``."""
_CASES: Final = ("Lu", "Ll", "Lt")
_CATEGORY: Final = re.compile("L[ulmto]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|C[cfson]?")
_CATEGORY_KEY: Final = re.compile("(?:Is|gc=|general_category=)?(.*)")
_PROPERTY_KEY: Final = re.compile("(?:Is|java)(.*)")
_BASIC_LATIN: Final = re.compile("(?:In|block=|blk=)BASIC_?LATIN", re.IGNORECASE)


def _named_class(name: str, *, any_case: bool) -> _Set | None:
    """Return the members of a class with a name in Java. None: not supported."""
    members = _POSIX.get(name)
    if members is None and _BASIC_LATIN.fullmatch(name):
        members = _POSIX["ASCII"]
    if members is None and (category := _category(name)):
        category = _CATEGORIES["lc"] if any_case and category in _CASES else category
        expression = re.compile(f"(?:{category})")
        members = _of(lambda char: expression.match(unicodedata.category(char)) is not None, _OTHER)
    if members is None:
        return None
    return _in_any_case(members) if any_case else members


def _category(name: str) -> str | None:
    if (found := _CATEGORY_KEY.fullmatch(name)) and _CATEGORY.fullmatch(found[1]):
        return found[1]
    if name in ("LC", "LD"):
        return _CATEGORIES[name.lower()]
    found = _PROPERTY_KEY.fullmatch(name)
    return None if found is None else _CATEGORIES.get(found[1].lower().replace("_", ""))
