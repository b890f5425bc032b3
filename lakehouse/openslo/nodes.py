"""A YAML text as a tree in which every value knows its line and column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import yaml

from lakehouse.openslo.findings import Finding

if TYPE_CHECKING:
    from lakehouse.openslo.findings import Kind

_MOST_CHARACTERS: Final = 1_000_000
_MOST_NODES: Final = 50_000
_DEEPEST: Final = 40
_TAG: Final = "tag:yaml.org,2002:"


@dataclass(frozen=True, slots=True)
class Node:
    """A value and where it stands.

    Attributes:
        tag: ``map``, ``seq``, or what YAML 1.1 takes a scalar for: str, int, float, bool, null.
        text: A scalar as it is written.
        entries: Of a map, by key; of two values of one key, the last.
        keys: Where each key of a map stands.
        items: Of a sequence.
    """

    file: str
    path: str
    line: int
    column: int
    tag: str
    text: str = ""
    entries: Mapping[str, Node] = field(default_factory=dict)
    keys: Mapping[str, Node] = field(default_factory=dict)
    items: tuple[Node, ...] = ()

    def says(self, kind: Kind, message: str) -> Finding:
        """A finding at this place."""
        return Finding(kind, self.file, self.line, self.column, self.path, message)

    @property
    def is_null(self) -> bool:
        """Whether nothing is written there."""
        return self.tag == "null"


class MalformedError(Exception):
    """A text that is no YAML, or more of it than anybody writes; holds the finding."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding


def documents(text: str, file: str) -> list[tuple[Node, list[Finding]]]:
    """The objects of a text, each with what is wrong with its keys.

    A text has several YAML documents, and each is an object or a list of objects.

    Args:
        text: The YAML.
        file: What findings call it.

    Raises:
        MalformedError: It is no YAML, or too large, or nested too deeply.
    """
    if len(text) > _MOST_CHARACTERS:
        raise _malformed(file, None, f"more than {_MOST_CHARACTERS:,} characters: split it")
    try:
        roots = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _malformed(file, mark, f"no YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise _malformed(file, None, f"no YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise _malformed(file, None, "nested too deeply") from error
    objects = []
    for root in roots:
        several = isinstance(root, yaml.SequenceNode)
        for place, one in enumerate(root.value if several else [root]):
            tree = _Tree(file)
            node = tree.node(one, f"[{place}]" if several else "", 0)
            if not node.is_null:
                objects.append((node, tree.found))
    return objects


def plain(node: Node) -> Any:
    """The value as Python has it; numbers as float, dates as text."""
    if node.tag == "map":
        return {key: plain(one) for key, one in node.entries.items()}
    if node.tag == "seq":
        return [plain(one) for one in node.items]
    if node.tag in {"int", "float"}:
        return number(node)
    if node.tag == "bool":
        return truth(node)
    return None if node.is_null else node.text


def number(node: Node) -> float | None:
    """A number, or None where it is none: neither is ``12:30``, nor infinity."""
    if node.tag not in {"int", "float"}:
        return None
    try:
        value = float(node.text.replace("_", ""))
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None


def truth(node: Node) -> bool | None:
    """A truth value, or None."""
    return node.text.lower() in {"true", "yes", "on", "y"} if node.tag == "bool" else None


@dataclass(slots=True)
class _Tree:
    """Makes nodes of what PyYAML composed; an alias is the same node again, wherever it stands."""

    file: str
    found: list[Finding] = field(default_factory=list)
    made: int = 0

    def node(self, one: yaml.Node, path: str, depth: int) -> Node:
        self.made += 1
        if depth > _DEEPEST or self.made > _MOST_NODES:
            raise _malformed(self.file, one.start_mark, "nested too deeply, or too many aliases")
        at = (self.file, path, one.start_mark.line + 1, one.start_mark.column + 1)
        if isinstance(one, yaml.MappingNode):
            keys, entries = {}, {}
            for key, node, value in self._pairs(one, path, depth):
                if key in keys:
                    self.found.append(node.says("invalid", "the key is there twice"))
                keys[key], entries[key] = node, value
            return Node(*at, "map", entries=entries, keys=keys)
        if isinstance(one, yaml.SequenceNode):
            items = (
                self.node(item, f"{path}[{number_}]", depth + 1)
                for number_, item in enumerate(one.value)
            )
            return Node(*at, "seq", items=tuple(items))
        return Node(*at, str(one.tag).removeprefix(_TAG), text=str(one.value))

    def _pairs(
        self, one: yaml.MappingNode, path: str, depth: int
    ) -> Iterator[tuple[str, Node, Node]]:
        for key, value in one.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else "?"
            below = f"{path}.{name}" if path else name
            mark = key.start_mark
            node = Node(self.file, below, mark.line + 1, mark.column + 1, "str", text=name)
            yield name, node, self.node(value, below, depth + 1)


def _malformed(file: str, mark: yaml.Mark | None, message: str) -> MalformedError:
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    return MalformedError(Finding("invalid", file, line, column, "", message))
