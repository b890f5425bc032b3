"""Links of pages that are read in the repository as well as on the site."""

from __future__ import annotations

import posixpath
import re
from typing import Final

_LINK: Final = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<target>[^)\s]+)\)")
_ABSOLUTE: Final = re.compile(r"[a-z]+:|#")
_OF_ROOT: Final = {"ARCHITECTURE.md": "architecture.md", "CHANGELOG.md": "changelog.md"}
"""Pages of the repository's root that the site has, too, and how they are called there."""


def mended(markdown: str, folder: str) -> str:
    """A page as the site has it: what a link meant in the repository it means here.

    A link to a file that the site does not have becomes its text: the site is no browser of the
    repository, and knows of no address where one would be.

    Args:
        markdown: The page.
        folder: Where it lies in the repository: ``docs``, or empty for the root.
    """

    def mend(match: re.Match[str]) -> str:
        target = match["target"]
        if _ABSOLUTE.match(target):
            return match[0]
        path, mark, anchor = target.partition("#")
        at = posixpath.normpath(posixpath.join(folder, path))
        if at in _OF_ROOT:
            return f"[{match['text']}]({_OF_ROOT[at]}{mark}{anchor})"
        if at.startswith("docs/"):
            return f"[{match['text']}]({at.removeprefix('docs/')}{mark}{anchor})"
        return match["text"]

    return _LINK.sub(mend, markdown)
