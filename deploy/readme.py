"""Hatchling hook: README.md with absolute links, for package indexes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from hatchling.metadata.plugin.interface import MetadataHookInterface

_PAGE: Final = re.compile(r"(?<!!)(\[[^\[\]]*\]\()(?!#|https?:)")
_PICTURE: Final = re.compile(r'(!\[[^\[\]]*\]\(|\bsrc="|\bsrcset=")(?!https?:)')


def absolute(markdown: str, repository: str, tag: str) -> str:
    """Return Markdown whose links refer to the files of a tag of a repository on GitHub."""
    pictures = repository.replace("//github.com/", "//raw.githubusercontent.com/")
    markdown = _PAGE.sub(rf"\g<1>{repository}/blob/{tag}/", markdown)
    return _PICTURE.sub(rf"\g<1>{pictures}/{tag}/", markdown)


class Readme(MetadataHookInterface):
    """Sets the readme of the package."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the readme to the metadata."""
        markdown = (Path(self.root) / "README.md").read_text("utf-8")
        text = absolute(markdown, metadata["urls"]["Source"], f"v{metadata['version']}")
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
