"""Strict YAML reader for every settings file of agents and the lakehouse.

It refuses duplicate keys, deep nesting, alias bombs, self references, tags, and invalid numbers and
dates. Its errors name file, line and column and quote only keys, because a file can contain
secrets.
"""

import re
from collections.abc import Iterable, Iterator
from math import isfinite
from pathlib import Path
from typing import Any, Final, Literal, cast

import yaml

from lakehouse.tables.strict_files import (
    DEEPEST,
    GREATEST,
    UnreadableFileError,
    read_text,
    shown_key,
)

Duplicates = Literal["refuse", "last"]
"""Treatment of duplicate keys in a mapping: an error, or the last key counts."""

MOST_NODES: Final = 50_000
"""Maximum number of values; the values of an alias count at each use."""

_TAG: Final = "tag:yaml.org,2002:"
_TAGS: Final = {f"{_TAG}{kind}" for kind in ("str", "int", "float", "bool", "null", "map", "seq")}
# PyYAML quotes anchors and tags, which can be passwords.
_QUOTED: Final = re.compile(r"""'[^']*'|"[^"]*\"""")


def load_file(path: Path) -> Any:
    """Return the content of a file with one YAML or JSON document without duplicate keys.

    Raises:
        UnreadableFileError: It cannot be read, or is not YAML within the limits.
    """
    return load(read_text(path), str(path))


def load(text: str, where: str = "", duplicates: Duplicates = "refuse") -> Any:
    """Return the content of one YAML document; None if it is empty.

    Args:
        text: The YAML.
        where: Its name in errors.
        duplicates: Treatment of duplicate keys.

    Raises:
        UnreadableFileError: It is not YAML within the limits, or has several documents.
    """
    loader = _Loader(text, where, duplicates)
    roots = loader.roots()
    if len(roots) > 1:
        raise _refused(where, roots[1].start_mark, "a second document; expected one")
    return next(loader.contents(roots), None)


def load_all(text: str, where: str = "") -> list[Any]:
    """Return the content of each document of a YAML text; of duplicate keys the last counts.

    Args:
        text: The YAML.
        where: Its name in errors.

    Raises:
        UnreadableFileError: It is not YAML within the limits.
    """
    loader = _Loader(text, where, "last")
    return list(loader.contents(loader.roots()))


def compose(text: str, where: str = "") -> list[yaml.Node]:
    """Return the root of each document, with positions and without values.

    The nodes have all duplicate keys.

    Args:
        text: The YAML.
        where: Its name in errors.

    Raises:
        UnreadableFileError: It is not YAML within the limits.
    """
    return _Loader(text, where, "last").roots()


class _Loader(yaml.SafeLoader):
    """The safe loader of PyYAML with limits, which are checked before a value is made."""

    def __init__(self, text: str, where: str, duplicates: Duplicates) -> None:
        self._where, self._duplicates = where, duplicates
        self._nodes = 0
        self._heights = [0]  # of the open nodes: that of the highest child so far
        self._open: list[str] = []  # their anchors
        self._anchored: dict[str, tuple[int, int]] = {}  # size and height by anchor
        try:
            super().__init__(text)
        except yaml.reader.ReaderError as error:
            raise _special_character(where, text, error) from None

    def roots(self) -> list[yaml.Node]:
        """Return the root of each document.

        Raises:
            UnreadableFileError: The text is not YAML within the limits.
        """
        found: list[yaml.Node] = []
        try:
            while self.check_node():
                self._anchored.clear()
                found.append(cast("yaml.Node", self.get_node()))
        except yaml.MarkedYAMLError as error:
            raise _not_yaml(self._where, error) from None
        return found

    def contents(self, roots: Iterable[yaml.Node]) -> Iterator[Any]:
        """Yield the content of each document.

        Args:
            roots: Their roots.

        Raises:
            UnreadableFileError: One has a value that cannot exist.
        """
        try:
            yield from map(self.construct_document, roots)
        except yaml.MarkedYAMLError as error:
            raise _not_yaml(self._where, error) from None

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose a node, if it is within the limits."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            self._count_alias(event)
            return super().compose_node(parent, index)
        self._refuse_tag(event)
        before, anchor = self._nodes, event.anchor
        self._count(event, 1, 1)
        self._heights.append(0)
        if anchor is not None:
            if anchor in self._anchored or anchor in self._open:
                raise _refused(self._where, event.start_mark, "an anchor that another value has")
            self._open.append(anchor)
        node = super().compose_node(parent, index)
        height = self._heights.pop() + 1
        self._heights[-1] = max(self._heights[-1], height)
        if anchor is not None:
            self._open.remove(anchor)
            self._anchored[anchor] = self._nodes - before, height
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Compose a mapping; its merge keys are not resolved yet, so overriding them is fine."""
        node = super().compose_mapping_node(anchor)
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value if self._duplicates == "refuse" else ():
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    why = f"duplicate key {shown_key(key.value)}"
                    raise _refused(self._where, key.start_mark, why)
                seen.add((key.tag, key.value))
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 - PyYAML's
        """Make the value of a node; a date or number that cannot exist is an error of YAML."""
        try:
            value = super().construct_object(node, deep=deep)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            kind = str(node.tag).removeprefix(_TAG)
            raise _refused(self._where, node.start_mark, f"not a valid {kind}: quote it") from None
        if isinstance(value, int) and abs(value) > GREATEST:
            raise _refused(self._where, node.start_mark, "an integer beyond 64 bits")
        if isinstance(value, float) and not isfinite(value):
            raise _refused(self._where, node.start_mark, "a number that is not finite")
        return value

    def _count_alias(self, event: yaml.AliasEvent) -> None:
        if event.anchor in self._open:
            raise _refused(self._where, event.start_mark, "an alias within its own anchor")
        if event.anchor not in self._anchored:
            why = "an alias without its anchor. Quote a text that starts with *"
            raise _refused(self._where, event.start_mark, why)
        size, height = self._anchored[event.anchor]
        self._count(event, size, height)
        self._heights[-1] = max(self._heights[-1], height)

    def _count(self, event: yaml.Event, size: int, height: int) -> None:
        self._nodes += size
        if self._nodes > MOST_NODES:
            why = f"more than {MOST_NODES:,} values, counted with aliases"
            raise _refused(self._where, event.start_mark, why)
        if len(self._heights) + height > DEEPEST + 1:
            raise _refused(self._where, event.start_mark, "nested too deeply")

    def _refuse_tag(self, event: Any) -> None:
        if event.tag not in {None, "!", *_TAGS}:
            why = "a tag. Quote a text that starts with !"
            raise _refused(self._where, event.start_mark, why)


def _refused(where: str, mark: Any, problem: str) -> UnreadableFileError:
    return UnreadableFileError(where, problem, mark.line + 1, mark.column + 1)


def _not_yaml(where: str, error: yaml.MarkedYAMLError) -> UnreadableFileError:
    mark = error.problem_mark or error.context_mark
    said = " ".join(_QUOTED.sub(_shortened, str(error.problem or error.context)).split())
    place = (mark.line + 1, mark.column + 1) if mark else ()
    return UnreadableFileError(where, f"not YAML: {said}", *place)


def _shortened(quoted: re.Match[str]) -> str:
    """Return a quoted character or token of YAML as it is, and anything longer without its text."""
    is_token = quoted[0][1:-1].startswith("<")
    return quoted[0] if is_token or len(quoted[0]) <= len("'\\t'") else "a text"


def _special_character(
    where: str, text: str, error: yaml.reader.ReaderError
) -> UnreadableFileError:
    before = text[: error.position]
    place = before.count("\n") + 1, error.position - before.rfind("\n")
    problem = f"not YAML: special character U+{error.character:04X}"
    return UnreadableFileError(where, problem, *place)
