"""The agent's configuration: one YAML file, every key known, every duration with its unit.

Settings from the environment go before those of the file: ``JMXLAKE_AGENT__SOURCE__JMX__PORT=9999``
is ``source.jmx.port: 9999``. Every variable that begins with ``JMXLAKE_AGENT__`` is a setting, and
one that means no key is refused; no other variable is looked at, so that ``JMXLAKE_SPARK`` or what
Kubernetes sets for a service of our name does no harm.
"""

import hashlib
import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import msgspec

from collector.config import checks, secrets
from collector.config.schema import Config
from collector.errors import ConfigError, SettingError
from collector.settings import Quantity
from lakehouse.tables import strict_yaml, typed_settings
from lakehouse.tables.strict_files import UnreadableFileError
from lakehouse.tables.typed_settings import WrongSettingError

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
        raw = strict_yaml.load_file(path)
    except UnreadableFileError as error:
        raise ConfigError(error.advised("give --config a readable file")) from None
    return parse(raw, str(path), os.environ if environ is None else environ)


def parse(raw: Any, where: str, environ: Mapping[str, str] | None = None) -> Config:
    """Validate a configuration that was read already; ``where`` begins the error's line."""
    merged = _overlay(raw, environ or {})[0]
    listed = merged.get("sources") if isinstance(merged, dict) else None
    first = {"source": listed[0]} if isinstance(listed, list) and listed else {}
    try:
        whole = {**merged, **first} if first else merged
        config = typed_settings.convert(whole, Config, _hook)
        checks.check(config)
        if first and "source" in merged:
            raise SettingError("sources", "give source or sources, not both", ("source",))  # noqa: TRY301
        secrets.refuse_exposed(config)
    except WrongSettingError as error:
        wrong = SettingError(error.key or "top level", error.problem)
        raise located(wrong, where, environ or {}) from error
    except SettingError as error:
        raise located(error, where, environ or {}) from error
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
    except UnreadableFileError:
        raise ConfigError(f"environment: {name} is not a YAML value: quote it") from None
    if isinstance(value, (dict, list)):
        raise ConfigError(f"environment: {name} must be a single value: one variable for each key")
    return value


def _hook(type_: type, value: Any) -> Any:
    if isinstance(value, str):
        return type_(value)  # a quantity or a path
    expected = type_.expected if issubclass(type_, Quantity) else "a path"
    raise ValueError(f"expected {expected}, got {value!r}")
