"""Packages with exactly one supported version; pyproject.toml pins the same versions."""

from importlib.metadata import version
from typing import Final

PINNED: Final = {"deltalake": "1.6.6", "jmxquery": "0.6.0"}


def wrong_version(package: str) -> str | None:
    """Return the problem if another version of a package is installed. None: no problem."""
    found, wanted = version(package), PINNED[package]
    return None if found == wanted else f"{package} {found} is installed; use {package}=={wanted}"
