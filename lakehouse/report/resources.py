"""Files of this package: what YAML declares, templates, and sentences of page.yaml."""

from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Any, Final

import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined

from lakehouse.core import display

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def asset(*path: str) -> str:
    """The text of a file of this package."""
    return resources.files("lakehouse.report").joinpath(*path).read_text("utf-8")


@lru_cache
def declared(file: str) -> Mapping[str, Any]:
    """The content of a file of YAML."""
    content: Mapping[str, Any] = yaml.load(asset(file), _LOADER)  # noqa: S506  a safe loader, in C
    return content


@lru_cache
def templates(package: str) -> Environment:
    """The templates of a package, with autoescape for all but plain text."""
    environment = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
    )
    environment.globals["words"] = display
    environment.filters["tied"] = display.tied
    return environment


def sentence(name: str, **values: Any) -> str:
    """A sentence of the report.

    Args:
        name: Its key in page.yaml.
        values: Values by the names in its braces.
    """
    return str(declared("page.yaml")["sentences"][name].format(**values))
