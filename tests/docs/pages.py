"""The commands of a page: what stands in its blocks of ``sh`` and ``console``."""

from __future__ import annotations

import re
from typing import Final

_BLOCK: Final = re.compile(r"(?ms)^```(sh|console)\n(.*?)^```$")
NOT_HERE: Final = {
    "apt-get": "it would change the machine that the tests run on",
}
"""Programs that cannot be run here, and why; nothing else is left out."""


def blocks(markdown: str) -> list[str]:
    """Each block as a script; of a console only what is typed."""
    found = []
    for kind, text in _BLOCK.findall(markdown):
        typed = "".join(line[2:] + "\n" for line in text.splitlines() if line.startswith("$ "))
        found.append(text if kind == "sh" else typed)
    return found


def runnable(script: str) -> tuple[str, set[str]]:
    """A block without what cannot be run here, and the names of the programs left out."""
    kept, left_out = [], set()
    for line in script.splitlines(keepends=True):
        program = (line.split() or [""])[0]
        if program not in NOT_HERE:
            kept.append(line)
            continue
        assert not line.rstrip().endswith("\\"), f"a command over several lines: {line}"
        left_out.add(program)
    return "".join(kept), left_out


def under(markdown: str, kind: str) -> dict[str, list[str]]:
    """The blocks of one kind by the heading that they stand under."""
    _, *parts = re.split(r"(?m)^## (.+)$", markdown)
    return {
        head: found
        for head, text in zip(parts[::2], parts[1::2], strict=True)
        if (found := re.findall(rf"(?ms)^```{kind}\n(.*?)^```$", text))
    }
