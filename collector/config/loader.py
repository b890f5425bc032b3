"""Configuration loader: one YAML file, overridden by environment variables.

The variable ``JMXLAKE_AGENT__SOURCE__JMX__PORT=9999`` is ``source.jmx.port: 9999``. The loader
reads every variable with the prefix ``JMXLAKE_AGENT__`` and refuses one that does not match a key.
It ignores all others, such as ``JMXLAKE_SPARK``, or ``JMXLAKE_AGENT_PORT``, which Kubernetes sets
for a service.
"""

import hashlib
import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import msgspec

from collector.config import checks
from collector.config.schema import Config
from collector.errors import ConfigError, SettingError
from collector.settings import Quantity
from lakehouse.tables import strict_yaml, typed_settings
from lakehouse.tables.strict_files import UnreadableFileError
from lakehouse.tables.typed_settings import WrongSettingError

PREFIX: Final = "JMXLAKE_AGENT__"


def load(path: Path, environ: Mapping[str, str] | None = None) -> Config:
    """Read and validate a configuration file and the environment.

    Args:
        path: File.
        environ: Environment. None: this process's.

    Raises:
        ConfigError: The configuration is invalid. The text names the file or variable, the key and
            the problem.
    """
    try:
        raw = strict_yaml.load_file(path)
    except UnreadableFileError as error:
        raise ConfigError(error.advised("set --config to a readable file")) from None
    return parse(raw, str(path), os.environ if environ is None else environ)


def parse(raw: Any, where: str, environ: Mapping[str, str] | None = None) -> Config:
    """Validate the parsed content of a configuration file; ``where`` starts the error line."""
    merged = _overlay(raw, environ or {})[0]
    listed = merged.get("sources") if isinstance(merged, dict) else None
    first = {"source": listed[0]} if isinstance(listed, list) and listed else {}
    try:
        whole = {**merged, **first} if first else merged
        config = typed_settings.convert(whole, Config, _hook)
        checks.check(config)
        if first and "source" in merged:
            raise SettingError("sources", "set either source or sources", ("source",))  # noqa: TRY301
        checks.refuse_exposed(config)
    except WrongSettingError as error:
        wrong = SettingError(error.key or "top level", error.problem)
        raise located(wrong, where, environ or {}) from error
    except SettingError as error:
        raise located(error, where, environ or {}) from error
    return config


def fingerprint(config: Config) -> str:
    """Return the hash of a configuration for the event ``agent_start``."""
    content = msgspec.json.encode(config, enc_hook=repr, order="sorted")
    return hashlib.sha256(content).hexdigest()[:16]


def located(
    error: SettingError, where: str, environ: Mapping[str, str] | None = None
) -> ConfigError:
    """Return an error that names the source of the wrong value.

    This is the variable that set the key. Otherwise it is the file, and the variables that set keys
    below this key.

    Args:
        error: Problem of a loaded configuration.
        where: File of the configuration.
        environ: Environment at load time. None: this process's.
    """
    _, origins = _overlay({}, os.environ if environ is None else environ)
    for full, name in origins.items():
        if fnmatchcase(full, error.key):
            return ConfigError(f"{name}: {str(error).replace(error.key, full, 1)}")
    below = tuple(f"{key}." for key in error.involved)
    names = [name for full, name in origins.items() if f"{full}.".startswith(below)]
    return ConfigError(f"{', '.join([where, *names])}: {error}")


def _overlay(raw: Any, environ: Mapping[str, str]) -> tuple[Any, dict[str, str]]:
    """Merge the environment's settings into a file's content.

    Args:
        raw: Content of the file.
        environ: Environment.

    Returns:
        The merged content, and the variable of each overridden key.

    Raises:
        ConfigError: A variable is not a single value, or two variables set the same key.
    """
    named = sorted(name for name in environ if name.startswith(PREFIX))
    if not named or not (raw is None or isinstance(raw, dict)):
        return raw, {}
    merged = dict(raw or {})
    origins: dict[str, str] = {}
    for name in named:
        keys = name.removeprefix(PREFIX).lower().split("__")
        if not all(keys):
            raise ConfigError(
                f"environment: {name} does not match a key; the format is {PREFIX}SECTION__KEY"
            )
        clash = origins.setdefault(".".join(keys), name)
        if clash != name:
            raise ConfigError(f"environment: {clash} and {name} set the same key; remove one")
        _put(merged, keys, _scalar(name, environ[name]))
    return merged, origins


def _put(mapping: dict[str, Any], keys: list[str], value: Any) -> None:
    for key in keys[:-1]:
        below = mapping.get(key)
        mapping[key] = dict(below) if isinstance(below, dict) else {}
        mapping = mapping[key]
    mapping[keys[-1]] = value


def _scalar(name: str, text: str) -> Any:
    # The error does not contain the text, because it can be a password.
    try:
        value = strict_yaml.load(text)
    except UnreadableFileError:
        raise ConfigError(f"environment: {name} is not a YAML value; quote it") from None
    if isinstance(value, (dict, list)):
        raise ConfigError(f"environment: {name} must be a single value; use one variable per key")
    return value


def _hook(type_: type, value: Any) -> Any:
    if isinstance(value, str):
        return type_(value)  # a quantity or a path
    expected = type_.expected if issubclass(type_, Quantity) else "a path"
    raise ValueError(f"expected {expected}, got {value!r}")
