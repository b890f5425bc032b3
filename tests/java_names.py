"""Java names that the sources use, and the names that a release of Kafka has.

Python's names come from its syntax trees, Java's from the constant pools of the compiled classes
(Java Virtual Machine Specification, chapter 4).
"""

from __future__ import annotations

import ast
import re
import struct
import subprocess
import zipfile
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from demo.java import jdk_program

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_CLASS: Final = re.compile(
    r"(?<![\w.])(?:org\.apache\.kafka|kafka)(?:\.[a-z][a-z0-9]*)*\.[A-Z]\w*(?:\$\w+)*"
)
_MEMBER: Final = re.compile(r"[a-z][a-z0-9]*[A-Z][A-Za-z0-9]*|[A-Z][A-Z0-9]*_[A-Z0-9_]+")
_SIZES: Final = {  # bytes after the tag, by tag of a constant
    3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4,
    19: 2, 20: 2,
}  # fmt: skip
_TEXT: Final = 1
_WIDE: Final = (5, 6)
_CLASS_TAG: Final = 7
_REFERENCES: Final = (9, 10, 11)


class Member(NamedTuple):
    """A field or method, and its type as a descriptor."""

    name: str
    descriptor: str


class ClassFile(NamedTuple):
    """A compiled class.

    Attributes:
        parents: Its superclass and interfaces, with dots.
        members: Its own fields and methods.
        classes: All classes that it names, with dots.
        uses: Members that it uses, by class.
    """

    parents: tuple[str, ...]
    members: frozenset[Member]
    classes: frozenset[str]
    uses: frozenset[tuple[str, Member]]


class PythonNames(NamedTuple):
    """Names in a Python file.

    Attributes:
        classes: Classes of Kafka, by their full names.
        members: Attributes whose names are like Java's fields and methods.
        optional: Names that the file looks up with hasattr and getattr.
        computed: Arguments of ``java(...)`` that the file computes, as source text.
        arguments: Constant first arguments, by the name of the called function.
    """

    classes: frozenset[str]
    members: frozenset[str]
    optional: frozenset[str]
    computed: frozenset[str]
    arguments: Mapping[str, frozenset[str]]


class Release:
    """Classes of Kafka in a folder of jars, read when they are needed."""

    def __init__(self, libs: Path) -> None:
        jars = [zipfile.ZipFile(jar) for jar in sorted(libs.glob("kafka*.jar"))]
        self._jar_of = {name: jar for jar in jars for name in jar.namelist()}
        self._read: dict[str, ClassFile] = {}

    def has(self, name: str) -> bool:
        """Return True if a class with this name exists."""
        return _file(name) in self._jar_of

    def has_member(self, owner: str, member: Member) -> bool:
        """Return True if a class or its parents have a member."""
        if not self.has(owner):
            return f" {member.name}(" in _java_class(owner)
        found = self._class(owner)
        return member in found.members or any(
            self.has_member(parent, member) for parent in found.parents
        )

    def member_names(self, packages: re.Pattern[str]) -> set[str]:
        """Return the names of all members of classes whose files match."""
        names = (name for name in self._jar_of if packages.match(name))
        classes = (self._class(name) for name in names if name.endswith(".class"))
        return {member.name for found in classes for member in found.members}

    def _class(self, name: str) -> ClassFile:
        file = name if name.endswith(".class") else _file(name)
        if file not in self._read:
            self._read[file] = parsed(self._jar_of[file].read(file))
        return self._read[file]


@cache
def _java_class(name: str) -> str:
    """Return the members of a class of Java as text. Empty: Java does not have it."""
    ran = subprocess.run([jdk_program("javap"), name], capture_output=True, text=True, check=False)
    return ran.stdout if ran.returncode == 0 else ""


def _file(name: str) -> str:
    return f"{name.replace('.', '/')}.class"


def classes_of(jar: Path) -> dict[str, ClassFile]:
    """Return the classes of a jar by name."""
    with zipfile.ZipFile(jar) as opened:
        return {
            name.removesuffix(".class").replace("/", "."): parsed(opened.read(name))
            for name in opened.namelist()
            if name.endswith(".class")
        }


def parsed(content: bytes) -> ClassFile:
    """Return a class from the content of its file."""
    pool, at = _pool(content)
    _, _, parent, count = struct.unpack_from(">4H", content, at)
    interfaces = struct.unpack_from(f">{count}H", content, at + 8)
    own, at = _members(content, at + 8 + 2 * count, pool)
    methods, _ = _members(content, at, pool)
    return ClassFile(
        tuple(_class_name(pool, index) for index in (parent, *interfaces) if index),
        frozenset((*own, *methods)),
        frozenset(
            _class_name(pool, index) for index, (tag, _) in pool.items() if tag == _CLASS_TAG
        ),
        frozenset(_use(pool, data) for tag, data in pool.values() if tag in _REFERENCES),
    )


def _pool(content: bytes) -> tuple[dict[int, tuple[int, bytes]], int]:
    """Return the constants by index, with tag and bytes, and the position after them."""
    (count,) = struct.unpack_from(">H", content, 8)
    pool, at, index = {}, 10, 1
    while index < count:
        tag = content[at]
        start, size = at + 1, _SIZES.get(tag, 0)
        if tag == _TEXT:
            start, size = at + 3, int.from_bytes(content[at + 1 : at + 3], "big")
        pool[index] = tag, content[start : start + size]
        at = start + size
        index += 2 if tag in _WIDE else 1
    return pool, at


def _members(
    content: bytes, at: int, pool: dict[int, tuple[int, bytes]]
) -> tuple[list[Member], int]:
    (count,) = struct.unpack_from(">H", content, at)
    at += 2
    found = []
    for _ in range(count):
        _, name, descriptor, attributes = struct.unpack_from(">4H", content, at)
        found.append(Member(_text(pool, name), _text(pool, descriptor)))
        at += 8
        for _ in range(attributes):
            at += 6 + int.from_bytes(content[at + 2 : at + 6], "big")
    return found, at


def _text(pool: dict[int, tuple[int, bytes]], index: int) -> str:
    return pool[index][1].decode("utf-8", "replace")


def _class_name(pool: dict[int, tuple[int, bytes]], index: int) -> str:
    return _text(pool, int.from_bytes(pool[index][1], "big")).replace("/", ".")


def _use(pool: dict[int, tuple[int, bytes]], data: bytes) -> tuple[str, Member]:
    owner, pair = struct.unpack(">2H", data)
    name, descriptor = struct.unpack(">2H", pool[pair][1])
    return _class_name(pool, owner), Member(_text(pool, name), _text(pool, descriptor))


@cache
def python_names(file: Path) -> PythonNames:
    """Return the Java names in a Python file."""
    tree = ast.parse(file.read_text("utf-8"))
    constants = dict(_constants(tree))
    texts = [text for node in ast.walk(tree) if (text := _resolved(node, constants)) is not None]
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    arguments: dict[str, set[str]] = {}
    computed, optional = set(), set()
    for call in calls:
        function = call.func.attr if isinstance(call.func, ast.Attribute) else _name(call.func)
        text = _resolved(call.args[0], constants)
        if text is not None:
            arguments.setdefault(function, set()).add(text)
        elif function in {"java", "JClass"}:
            computed.add(ast.unparse(call.args[0]))
        if function in {"hasattr", "getattr"}:
            looked_up = call.args[1]
            optional |= {looked_up.value} if isinstance(looked_up, ast.Constant) else set()
    return PythonNames(
        frozenset(name for text in texts for name in _CLASS.findall(text)),
        frozenset(_attributes(tree)),
        frozenset(optional),
        frozenset(computed),
        {function: frozenset(found) for function, found in arguments.items()},
    )


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the names of the module that are constant texts."""
    for node in tree.body:
        target = node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(target, ast.Name) and isinstance(node, ast.AnnAssign):
            value = node.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield target.id, value.value


def _resolved(node: ast.AST, constants: Mapping[str, str]) -> str | None:
    """Return the text of a constant, or of an f-string of constants."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    if not isinstance(node, ast.JoinedStr):
        return None
    parts = [
        _resolved(part.value if isinstance(part, ast.FormattedValue) else part, constants)
        for part in node.values
    ]
    return None if None in parts else "".join(filter(None, parts))


def _attributes(tree: ast.Module) -> Iterable[str]:
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    return (node.attr for node in nodes if _MEMBER.fullmatch(node.attr))


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""
