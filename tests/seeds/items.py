"""The 31 items of the five KIPs: metrics, properties, methods, behaviours, and their tests.

items.yaml declares them. docs/seeds.md is the output of ``.venv/bin/python -m tests.seeds.items``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT: Final = Path(__file__).parents[2]
PAGE: Final = _ROOT / "docs" / "seeds.md"


class Item(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A metric, property, method or behaviour of a KIP.

    Attributes:
        line: Line of the KIP's text that names it.
        asks: Request of the KIP.
        has: Answer of jmxlake.
        page: Link to a page with more.
        tests: Node ids of tests that fail without it.
        state: ``elsewhere``: only Kafka itself can have it.
    """

    line: int
    asks: str
    has: str
    page: str
    tests: tuple[str, ...]
    state: Literal["full", "part", "elsewhere"] = "full"


class Kip(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A KIP and its items."""

    title: str
    items: tuple[Item, ...]


KIPS: Final = msgspec.yaml.decode(
    (_ROOT / "tests/seeds/items.yaml").read_bytes(), type=dict[int, Kip]
)
"""KIPs by their numbers."""

ITEMS: Final = {
    f"KIP-{kip}, line {one.line}: {one.asks}": one
    for kip, found in KIPS.items()
    for one in found.items
}
"""All items by their names."""


def page() -> Iterator[str]:
    """Yield the lines of docs/seeds.md."""
    yield from ("# Five KIPs", "")
    yield (
        "jmxlake answers the questions of five Kafka improvement proposals (KIPs). Kafka released "
        "some of them, changed others, and did not accept the rest. This page lists each metric, "
        "property, method and behaviour that their texts name, and what jmxlake has for it. "
        "`make test-seeds` runs the tests of each item, and compares figures with known truth on "
        "real brokers."
    )
    for number, kip in KIPS.items():
        yield from ("", f"## KIP-{number}: {kip.title}", "")
        yield from ("| The KIP asks for | jmxlake has | More |", "|---|---|---|")
        for one in kip.items:
            yield f"| {one.asks} | {one.has} | {one.page} |"


if __name__ == "__main__":
    PAGE.write_text("\n".join(page()) + "\n")
