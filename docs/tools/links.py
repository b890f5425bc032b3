"""Links of pages that exist in the repository and on the site."""

from __future__ import annotations

import posixpath
import re
from typing import Final

_LINK: Final = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<target>[^)\s]+)\)")
_ABSOLUTE: Final = re.compile(r"[a-z]+:|#")
_OF_ROOT: Final = {"ARCHITECTURE.md": "architecture.md", "CHANGELOG.md": "changelog.md"}
"""Pages of the repository's root by their names on the site."""


def rewritten(markdown: str, folder: str) -> str:
    """Return a page with links that work on the site.

    A link to a file that is not on the site becomes plain text, because the repository has no
    public address.

    Args:
        markdown: The page.
        folder: Folder of the page in the repository: ``docs``, or empty for the root.
    """

    def rewrite(match: re.Match[str]) -> str:
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

    return _LINK.sub(rewrite, markdown)
