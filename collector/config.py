"""The agent's configuration: one YAML file, every key known, every duration with its unit."""

from __future__ import annotations

import difflib
import hashlib
import os
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import yaml

from collector import limits, secret_files, strict_yaml
from collector.environment import overlay
from collector.errors import ConfigError, SettingError
from collector.quantities import Quantity
from collector.sections import Config, Lake, Section

if TYPE_CHECKING:
    from collections.abc import Mapping


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
    merged, origins = overlay(raw, environ or {})
    try:
        config = msgspec.convert(merged, Config, dec_hook=_hook)
        limits.check(config)
        secret_files.refuse_exposed(config)
    except SettingError as error:
        raise _located(error, where, origins) from error
    except msgspec.ValidationError as error:
        raise _located(_explained(str(error)), where, origins) from error
    return config


def fingerprint(config: Config) -> str:
    """Hash of all that is configured, as the event ``agent_start`` has it."""
    content = msgspec.json.encode(config, enc_hook=repr, order="sorted")
    return hashlib.sha256(content).hexdigest()[:16]


def located(
    error: SettingError, where: str, environ: Mapping[str, str] | None = None
) -> ConfigError:
    """The error with the file, or the variable, that the setting came from.

    Args:
        error: What is wrong with a configuration that was loaded.
        where: The file it was loaded from.
        environ: The environment at that time; None: this process's.
    """
    _, origins = overlay({}, os.environ if environ is None else environ)
    return _located(error, where, origins)


def _located(error: SettingError, where: str, origins: Mapping[str, str]) -> ConfigError:
    """The error with the variable that its key came from, else the file and what is below it."""
    for full, name in origins.items():
        if fnmatchcase(full, error.key):
            return ConfigError(f"{name}: {str(error).replace(error.key, full, 1)}")
    below = tuple(f"{key}." for key in error.involved)
    names = [name for full, name in origins.items() if f"{full}.".startswith(below)]
    return ConfigError(f"{', '.join([where, *names])}: {error}")


def storage_options(lake: Lake) -> dict[str, str]:
    """The storage options of delta-rs from their own file, so that no secret is in the config.

    Raises:
        ConfigError: The file cannot be read or is not a mapping of names to text.
    """
    if lake.options_file is None:
        return {}
    try:
        raw = strict_yaml.load(lake.options_file.read_text(encoding="utf-8"))
        return msgspec.convert(raw, dict[str, str])
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError) as error:
        # Not the error's own text: it may quote the file, and the file holds secrets.
        raise ConfigError(
            f"lake.options_file {lake.options_file}: not a readable mapping of names to text"
        ) from error


def _hook(type_: type, value: Any) -> Any:
    if issubclass(type_, Quantity):
        if isinstance(value, str):
            return type_(value)
        raise ValueError(f"expected {type_.expected}, got {value!r}")
    if issubclass(type_, Path) and isinstance(value, str):
        return Path(value)
    raise ValueError(f"expected a path, got {value!r}")


def _explained(message: str) -> SettingError:
    """The message of msgspec with the key spelled as in the file, and the nearest known name."""
    text, _, place = message.partition(" - at ")
    key = place.strip("`").removeprefix("$").strip(".").replace("[...]", ".*")
    unknown = re.search(r"unknown field `(.+)`", text)
    if unknown is None:
        return SettingError(key or "top level", text)
    near = difflib.get_close_matches(unknown[1], known_keys(), n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return SettingError(f"{key}.{unknown[1]}".lstrip("."), f"unknown key{hint}")


def known_keys() -> list[str]:
    """Every key of every section."""
    return sorted(
        {name for section in Section.__subclasses__() for name in section.__struct_fields__}
    )
