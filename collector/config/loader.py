"""The agent's configuration: one YAML file, every key known, every duration with its unit.

Settings from the environment go before those of the file: ``JMXLAKE_AGENT__SOURCE__JMX__PORT=9999``
is ``source.jmx.port: 9999``. Every variable that begins with ``JMXLAKE_AGENT__`` is a setting, and
one that means no key is refused; no other variable is looked at, so that ``JMXLAKE_SPARK`` or what
Kubernetes sets for a service of our name does no harm.
"""

import difflib
import hashlib
import os
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from collector.config import checks, secrets, strict_yaml
from collector.config.schema import Config, Section
from collector.config.units import Quantity
from collector.errors import ConfigError, SettingError

PREFIX: Final = "JMXLAKE_AGENT__"


def load(path: Path, environ: Mapping[str, str] | None = None) -> Config:
    """Read and validate a configuration file, with the environment's settings over it.

    Args:
        path: The file.
        environ: The environment; None: this process's.

    Raises:
        ConfigError: One line: which file or variable, which key, what is wrong with it.
    """
    try:
        raw = strict_yaml.load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; give --config a readable file") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    return parse(raw, str(path), os.environ if environ is None else environ)


def parse(raw: Any, where: str, environ: Mapping[str, str] | None = None) -> Config:
    """Validate a configuration that was read already; ``where`` begins the error's line."""
    merged = _overlay(raw, environ or {})[0]
    listed = merged.get("sources") if isinstance(merged, dict) else None
    first = {"source": listed[0]} if isinstance(listed, list) and listed else {}
    try:
        config = msgspec.convert({**merged, **first} if first else merged, Config, dec_hook=_hook)
        checks.check(config)
        if first and "source" in merged:
            raise SettingError("sources", "give source or sources, not both", ("source",))  # noqa: TRY301
        secrets.refuse_exposed(config)
    except (SettingError, msgspec.ValidationError) as error:
        known = error if isinstance(error, SettingError) else _explained(str(error))
        raise located(known, where, environ or {}) from error
    return config


def fingerprint(config: Config) -> str:
    """Hash of all that is configured, as the event ``agent_start`` has it."""
    content = msgspec.json.encode(config, enc_hook=repr, order="sorted")
    return hashlib.sha256(content).hexdigest()[:16]


def located(
    error: SettingError, where: str, environ: Mapping[str, str] | None = None
) -> ConfigError:
    """The error with the variable that its key came from, else the file and what is below it.

    Args:
        error: What is wrong with a configuration that was loaded.
        where: The file it was loaded from.
        environ: The environment at that time; None: this process's.
    """
    _, origins = _overlay({}, os.environ if environ is None else environ)
    for full, name in origins.items():
        if fnmatchcase(full, error.key):
            return ConfigError(f"{name}: {str(error).replace(error.key, full, 1)}")
    below = tuple(f"{key}." for key in error.involved)
    names = [name for full, name in origins.items() if f"{full}.".startswith(below)]
    return ConfigError(f"{', '.join([where, *names])}: {error}")


def _overlay(raw: Any, environ: Mapping[str, str]) -> tuple[Any, dict[str, str]]:
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
        keys = name.removeprefix(PREFIX).lower().split("__")
        if not all(keys):
            raise ConfigError(f"environment: {name} names no key: write {PREFIX}SECTION__KEY")
        clash = origins.setdefault(".".join(keys), name)
        if clash != name:
            raise ConfigError(f"environment: {clash} and {name} mean the same key")
        _put(merged, keys, _scalar(name, environ[name]))
    return merged, origins


def _put(mapping: dict[str, Any], keys: list[str], value: Any) -> None:
    for key in keys[:-1]:
        below = mapping.get(key)
        mapping[key] = dict(below) if isinstance(below, dict) else {}
        mapping = mapping[key]
    mapping[keys[-1]] = value


def _scalar(name: str, text: str) -> Any:
    # The text is not in the error: it may be a password.
    try:
        value = strict_yaml.load(text)
    except yaml.YAMLError:
        raise ConfigError(f"environment: {name} is not a YAML value: quote it") from None
    if isinstance(value, (dict, list)):
        raise ConfigError(f"environment: {name} must be a single value: one variable for each key")
    return value


def _hook(type_: type, value: Any) -> Any:
    if isinstance(value, str):
        return type_(value)  # a quantity or a path
    expected = type_.expected if issubclass(type_, Quantity) else "a path"
    raise ValueError(f"expected {expected}, got {value!r}")


def _explained(message: str) -> SettingError:
    """The message of msgspec with the key spelled as in the file, and the nearest known name."""
    text, _, place = message.partition(" - at ")
    key = place.strip("`").removeprefix("$").strip(".").replace("[...]", ".*")
    unknown = re.search(r"unknown field `(.+)`", text)
    if unknown is None:
        return SettingError(key or "top level", text)
    known = _keys_below(Section)
    near = difflib.get_close_matches(unknown[1], sorted(known), n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    if unknown[1] in known:
        hint = " here: it belongs to another section"
    return SettingError(f"{key}.{unknown[1]}".lstrip("."), f"unknown key{hint}")


def _keys_below(section: type[Section]) -> set[str]:
    """All keys of a kind of section and of those made from it."""
    return set(section.__struct_fields__).union(*map(_keys_below, section.__subclasses__()))
