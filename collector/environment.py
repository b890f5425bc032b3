"""Settings from the environment: they go before those of the file.

``JMXLAKE_AGENT__SOURCE__JMX__PORT=9999`` is ``source.jmx.port: 9999``. Every variable that begins
with ``JMXLAKE_AGENT__`` is a setting, and one that means no key is refused; no other variable is
looked at, so that ``JMXLAKE_SPARK`` or what Kubernetes sets for a service of our name does no harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import yaml

from collector import strict_yaml
from collector.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX: Final = "JMXLAKE_AGENT__"
_LEVEL: Final = "__"


def overlay(raw: Any, environ: Mapping[str, str]) -> tuple[Any, dict[str, str]]:
    """A configuration with the environment's settings over the file's.

    Args:
        raw: What the file holds.
        environ: The environment.

    Returns:
        What is to be validated, and which variable each overridden key came from.

    Raises:
        ConfigError: A variable holds no single value, or two speak of the same key.
    """
    named = sorted(name for name in environ if name.startswith(PREFIX))
    if not named or not (raw is None or isinstance(raw, dict)):
        return raw, {}
    merged = dict(raw or {})
    origins: dict[str, str] = {}
    for name in named:
        keys = name.removeprefix(PREFIX).lower().split(_LEVEL)
        if not all(keys):
            raise ConfigError(f"environment: {name} names no key: write {PREFIX}SECTION__KEY")
        clash = origins.setdefault(".".join(keys), name)
        if clash != name:
            raise ConfigError(f"environment: {clash} and {name} mean the same key")
        _put(merged, keys, _scalar(name, environ[name]))
    return merged, origins


def variable(key: str) -> str:
    """The variable that overrides a key, written as ``source.jmx.port``."""
    return PREFIX + key.replace(".", _LEVEL).upper()


def _put(mapping: dict[str, Any], keys: list[str], value: Any) -> None:
    for key in keys[:-1]:
        below = mapping.get(key)
        mapping[key] = dict(below) if isinstance(below, dict) else {}
        mapping = mapping[key]
    mapping[keys[-1]] = value


def _scalar(name: str, text: str) -> Any:
    # Not the text in an error: somebody may have put a password there.
    try:
        value = strict_yaml.load(text)
    except yaml.YAMLError:
        raise ConfigError(f"environment: {name} is not a YAML value: quote it") from None
    if isinstance(value, (dict, list)):
        raise ConfigError(f"environment: {name} must be a single value: one variable for each key")
    return value
