"""Reads a page as a browser would build it, as far as tests need it."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

VOID = {"meta", "link", "br", "img", "input", "hr"}


@dataclass
class Node:
    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Node | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text below, ties and line breaks as single spaces."""
        parts = (one if isinstance(one, str) else one.raw for one in self.children)
        return " ".join("".join(parts).split())

    @property
    def raw(self) -> str:
        return "".join(one if isinstance(one, str) else one.raw for one in self.children)

    def all(self, tag: str = "", **attributes: str) -> Iterator[Node]:
        """Every node below with this tag and these attributes; ``class_`` may be one of many."""
        for child in self.children:
            if isinstance(child, str):
                continue
            if child.is_a(tag, attributes):
                yield child
            yield from child.all(tag, **attributes)

    def one(self, tag: str = "", **attributes: str) -> Node:
        found = list(self.all(tag, **attributes))
        assert found, f"no {tag} {attributes}"
        return found[0]

    def is_a(self, tag: str, attributes: dict[str, str]) -> bool:
        wanted = dict(attributes)
        klass = wanted.pop("class_", None)
        return (
            (not tag or self.tag == tag)
            and (klass is None or klass in self.attributes.get("class", "").split())
            and all(self.attributes.get(key) == value for key, value in wanted.items())
        )


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("")
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(attrs) == len(dict(attrs)), f"an attribute is given twice: {tag} {attrs}"
        node = Node(tag, {key: value or "" for key, value in attrs})
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def read(html: str) -> Node:
    """The page as a tree.

    Raises:
        AssertionError: Tags do not nest, or an attribute is given twice.
    """
    builder = _Builder()
    builder.feed(html)
    builder.close()
    assert builder.open == [builder.root], "a tag is left open"
    return builder.root
