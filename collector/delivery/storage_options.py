"""Storage options of a lake: the user's options, and time limits for requests to a store."""

import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final
from urllib.parse import quote

from collector.config.schema import Lake
from collector.errors import ConfigError
from lakehouse.tables import strict_yaml, typed_settings
from lakehouse.tables.strict_files import UnreadableFileError
from lakehouse.tables.typed_settings import WrongSettingError

# The delivery's worker does the long waits: it has jitter and stops at once with the agent. A call
# into delta-rs cannot be interrupted, and object_store 0.13 would retry for three minutes (10
# retries, retry_timeout 180s). With these limits an attempt takes 20 s at most. A running attempt
# and the last delivery then fit into TimeoutStopSec.
_BOUNDS: Final = {
    "connect_timeout": "5s",
    "timeout": "20s",  # A whole request, such as the upload of a data file (usually 500 KB).
    "max_retries": "2",  # After a broken connection, or a response with status 429 or 5xx.
    "retry_timeout": "15s",  # Less than timeout, so that no request times out twice.
}
_PREFIXES: Final = ("aws_", "azure_", "google_")
_SHORTEST_SECRET: Final = 4
_SECRET: Final = re.compile(
    r"(key|secret|token|password|credentials?|sas)(?!.*_(file|path|uri|url|endpoint|enabled)$)",
    re.IGNORECASE,
)
# Options of delta-rs that affect commits, with the values that keep commits conditional puts.
_SAFE: Final = {
    "s3_locking_provider": (),
    "s3_allow_unsafe_rename": ("false",),
    "copy_if_not_exists": (),
    "conditional_put": ("etag",),
}
_PATH: Final = "google_application_credentials"


def from_file(lake: Lake) -> dict[str, str]:
    """Return the storage options of delta-rs from ``lake.options_file``.

    They have a separate file, because they can contain secrets and a configuration must not.

    Raises:
        ConfigError: The file cannot be read or is not a mapping of names to text.
    """
    if lake.options_file is None:
        return {}
    try:
        return typed_settings.convert(strict_yaml.load_file(lake.options_file), dict[str, str])
    except UnreadableFileError as error:
        raise ConfigError(f"lake.options_file {error}") from None
    except WrongSettingError:
        why = "not a mapping of names to text; quote numbers and dates"
        raise ConfigError(f"lake.options_file {lake.options_file}: {why}") from None


def of_lake(lake: Lake) -> Callable[[], dict[str, str]]:
    """Return a function that returns a lake's current storage options, from file and catalog.

    The function raises ConfigError if the file cannot be read, and LakeError if the catalog does
    not vend credentials.

    Raises:
        ConfigError: The file of options or the environment is invalid now.
    """
    bounded(lake.path, from_file(lake))
    if lake.unity_catalog is None:
        return partial(from_file, lake)
    from collector.delivery.vended_credentials import VendedCredentials  # noqa: PLC0415 - loads httpx

    vended = VendedCredentials(lake.unity_catalog, lake.path)
    return lambda: {**from_file(lake), **vended()}


def bounded(
    lake: str, options: Mapping[str, str], environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the user's options, with time limits as defaults if the lake is in a store.

    Args:
        lake: Root of the lake: a folder or a URL.
        options: Storage options of delta-rs.
        environ: Environment, which delta-rs also reads for options.

    Raises:
        ConfigError: An option lets commits overwrite each other.
    """
    if "://" not in lake or lake.startswith("file://"):
        return dict(options)
    if lake.startswith("s3"):
        _refuse_unsafe("lake.options_file", options)
        _refuse_unsafe("the environment", environ)
    given = {_plain(name) for name in options}
    return {**{key: value for key, value in _BOUNDS.items() if key not in given}, **options}


def secrets(options: Mapping[str, str], environ: Mapping[str, str]) -> list[str]:
    """Return the secret values and their URL encodings, the longest first.

    An option's name decides whether its value is secret. Hiding values such as "true" or a region
    would remove half of an error's text.

    Args:
        options: Storage options of delta-rs.
        environ: Environment, which delta-rs also reads for credentials.
    """
    clouds = [(key, value) for key, value in environ.items() if key.lower().startswith(_PREFIXES)]
    found = {
        value
        for name, value in (*options.items(), *clouds)
        if len(value) >= _SHORTEST_SECRET and _SECRET.search(name) and name.lower() != _PATH
    }
    return sorted(found | {quote(value, safe="") for value in found}, key=len, reverse=True)


def _refuse_unsafe(where: str, options: Mapping[str, str]) -> None:
    for name, value in options.items():
        if value.lower() not in _SAFE.get(_plain(name), (value.lower(),)):
            why = f"{name} lets agents overwrite each other's commits"
            advice = "remove it and use a store with conditional puts"
            raise ConfigError(f"{where}: {why}; {advice}")


def _plain(name: str) -> str:
    """Return the name of an option in lower case, without the prefix of its cloud."""
    lower = name.lower()
    return next((lower.removeprefix(one) for one in _PREFIXES if lower.startswith(one)), lower)
