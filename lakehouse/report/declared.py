"""What this package has as data: csv.yaml and page.yaml, read when they are first asked for."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@lru_cache
def declared(file: str) -> Mapping[str, Any]:
    """The content of a YAML file of this package."""
    text = resources.files("lakehouse.report").joinpath(file).read_text("utf-8")
    found: Mapping[str, Any] = yaml.load(text, _LOADER)  # noqa: S506  safe, and in C where it can be
    return found
