"""Files of this package: YAML content, templates, and sentences of page.yaml."""

from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Any, Final

import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined

from lakehouse.core import display

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def asset(*path: str) -> str:
    """Return the text of a file of this package."""
    return resources.files("lakehouse.report").joinpath(*path).read_text("utf-8")


@lru_cache
def declared(file: str) -> Mapping[str, Any]:
    """Return the content of a YAML file."""
    content: Mapping[str, Any] = yaml.load(asset(file), _LOADER)  # noqa: S506  a safe loader, in C
    return content


@lru_cache
def templates(package: str) -> Environment:
    """Return the templates of a package, with autoescape."""
    environment = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
    )
    environment.globals["words"] = display
    environment.filters["tied"] = display.tied
    return environment


def sentence(name: str, **values: Any) -> str:
    """Return a sentence of the report.

    Args:
        name: Its key in page.yaml.
        values: Values by the names in its braces.
    """
    return str(declared("page.yaml")["sentences"][name].format(**values))
