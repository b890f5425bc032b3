"""Commands of a page, from its blocks of ``sh`` and ``console``."""

from __future__ import annotations

import re
from typing import Final

_BLOCK: Final = re.compile(r'(?ms)^```(sh|console)( title="[^"\n]*")?\n(.*?)^```$')
NOT_HERE: Final = {
    "apt-get": "it would change the test machine",
}
"""Skipped programs with the reason; all others run."""


def blocks(markdown: str, *, titled: bool = False) -> list[str]:
    """Return each block as a script; of a console block only the input.

    Args:
        markdown: The page.
        titled: Include blocks with a title, which names the machine that they need.
    """
    found = []
    for kind, title, text in _BLOCK.findall(markdown):
        if title and not titled:
            continue
        typed = "".join(line[2:] + "\n" for line in text.splitlines() if line.startswith("$ "))
        found.append(text if kind == "sh" else typed)
    return found


def runnable(script: str) -> tuple[str, set[str]]:
    """Return a block without skipped programs, and the names of these programs."""
    kept, skipped = [], set()
    for line in script.splitlines(keepends=True):
        program = (line.split() or [""])[0]
        if program not in NOT_HERE:
            kept.append(line)
            continue
        assert not line.rstrip().endswith("\\"), f"a command over several lines: {line}"
        skipped.add(program)
    return "".join(kept), skipped


def under(markdown: str, kind: str) -> dict[str, list[str]]:
    """Return the blocks of one kind by their heading."""
    _, *parts = re.split(r"(?m)^## (.+)$", markdown)
    return {
        head: found
        for head, text in zip(parts[::2], parts[1::2], strict=True)
        if (found := re.findall(rf"(?ms)^```{kind}\n(.*?)^```$", text))
    }
