"""YAML as a tree of nodes with line and column, and findings about nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, Literal

import yaml

from lakehouse.tables import strict_yaml
from lakehouse.tables.strict_files import UnreadableFileError, read_text

Kind = Literal["invalid", "unsupported", "note"]
"""Worst first: not OpenSLO v1, not supported by jmxlake, without effect in jmxlake."""

EXIT_CODES: Final[dict[Kind, int]] = {"invalid": 1, "unsupported": 3, "note": 0}


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem at a place in a file.

    Attributes:
        kind: Severity.
        file: File as specified.
        line: Line, from 1.
        column: Column, from 1.
        path: Path in the document, such as ``spec.objectives[0].target``.
        message: Problem and fix.
    """

    kind: Kind
    file: str
    line: int
    column: int
    path: str
    message: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}"
        what = f"{self.path}: {self.message}" if self.path else self.message
        return f"{where}: {self.kind}: {what}"


@dataclass(frozen=True, slots=True)
class Node:
    """A value and its place in the file.

    Attributes:
        tag: ``map``, ``seq``, or the YAML 1.1 type of a scalar: str, int, float, bool, null.
        text: Text of a scalar.
        entries: Values of a map, by key. The last value of a duplicate key.
        keys: Position of each key of a map.
        items: Values of a sequence.
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
        """Return a finding at this position."""
        return Finding(kind, self.file, self.line, self.column, self.path, message)

    def get(self, key: str) -> Node | None:
        """Return the value of a key. None if the key is missing or its value is null."""
        value = self.entries.get(key)
        return None if value is None or value.is_null else value

    def present(self, *keys: str) -> list[str]:
        """Return the keys that have a value."""
        return [key for key in keys if self.get(key)]

    @property
    def is_null(self) -> bool:
        """True if the value is null."""
        return self.tag == "null"

    @property
    def is_nested(self) -> bool:
        """True for a map or a list."""
        return self.tag in {"map", "seq"}


class Findings(list[Finding]):
    """Findings about an object."""

    def invalid(self, node: Node, message: str) -> None:
        """Add a finding: not OpenSLO v1."""
        self.append(node.says("invalid", message))

    def unsupported(self, node: Node, message: str) -> None:
        """Add a finding: not supported by jmxlake."""
        self.append(node.says("unsupported", message))

    def note(self, node: Node, message: str) -> None:
        """Add a finding: without effect in jmxlake."""
        self.append(node.says("note", message))


class MalformedError(Exception):
    """A text is not YAML within the limits; has the finding."""

    def __init__(
        self, file: str, message: str, line: int | None = None, column: int | None = None
    ) -> None:
        self.finding = Finding("invalid", file, line or 1, column or 1, "", message)
        super().__init__(str(self.finding))


def worst(findings: Iterable[Finding]) -> Kind | None:
    """Return the worst kind among findings."""
    kinds = {finding.kind for finding in findings}
    return next((kind for kind in EXIT_CODES if kind in kinds), None)


def documents(text: str, file: str) -> list[tuple[Node, Findings]]:
    """Return the objects of a text, each with findings about its keys.

    A text has one or more YAML documents, and each is an object or a list of objects.

    Args:
        text: The YAML.
        file: Name of the file in findings.

    Raises:
        MalformedError: The text is not YAML within the limits of ``strict_yaml``.
    """
    try:
        roots = strict_yaml.compose(text, file)
    except UnreadableFileError as error:
        raise MalformedError(file, error.problem, error.line, error.column) from None
    objects = []
    for root in roots:
        several = isinstance(root, yaml.SequenceNode)
        for index, value in enumerate(root.value if several else [root]):
            tree = _Tree(file)
            node = tree.node(value, f"[{index}]" if several else "")
            if not node.is_null:
                objects.append((node, tree.findings))
    return objects


def read(path: Path, error: type[Exception], wanted: str) -> list[tuple[Node, Findings]]:
    """Return the objects of a file, each with findings about its keys.

    Args:
        path: The file.
        error: Class of the error for a file that cannot be read or is not YAML.
        wanted: Advice for a file that cannot be read.
    """
    try:
        return documents(read_text(path), str(path))
    except UnreadableFileError as caught:
        raise error(caught.advised(wanted)) from None
    except MalformedError as caught:
        raise error(str(caught.finding)) from caught


def number(node: Node) -> float | None:
    """Return the number of a node. None for other values, such as ``12:30`` and infinity."""
    if node.tag not in {"int", "float"}:
        return None
    try:
        value = float(node.text.replace("_", ""))
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None


def truth(node: Node) -> bool | None:
    """Return the truth value of a node, or None."""
    return node.text.lower() in {"true", "yes", "on", "y"} if node.tag == "bool" else None


@dataclass(slots=True)
class _Tree:
    """Converts PyYAML's nodes; an alias becomes a separate node."""

    file: str
    findings: Findings = field(default_factory=Findings)

    def node(self, value: yaml.Node, path: str) -> Node:
        mark = value.start_mark
        make = partial(Node, self.file, path, mark.line + 1, mark.column + 1)
        if isinstance(value, yaml.SequenceNode):
            items = (self.node(o, f"{path}[{n}]") for n, o in enumerate(value.value))
            return make("seq", items=tuple(items))
        if not isinstance(value, yaml.MappingNode):
            return make(str(value.tag).removeprefix("tag:yaml.org,2002:"), str(value.value))
        keys: dict[str, Node] = {}
        entries: dict[str, Node] = {}
        for key, entry in value.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else "?"
            below, mark = f"{path}.{name}" if path else name, key.start_mark
            at = Node(self.file, below, mark.line + 1, mark.column + 1, "str", name)
            keys[name], entries[name], again = at, self.node(entry, below), name in keys
            if again:
                self.findings.invalid(at, "duplicate key")
        return make("map", entries=entries, keys=keys)
