"""Storage options of a lake: the user's from their file, and limits of how long an agent waits."""

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

# Long waits belong to the delivery's worker, which has jitter and ends at once when the agent
# stops. A call into delta-rs cannot be interrupted, and object_store 0.13 would go on for three
# minutes (10 retries, retry_timeout 180s). With these limits an attempt takes 20 s at most: one in
# flight when the agent is stopped, and the last delivery, fit into TimeoutStopSec.
_BOUNDS: Final = {
    "connect_timeout": "5s",
    "timeout": "20s",  # a whole request, also the upload of a data file: half a megabyte as a rule
    "max_retries": "2",  # of a request: of a connection that broke, or of an answer 429 or 5xx
    "retry_timeout": "15s",  # less than timeout, so that no request times out twice
}
_PREFIXES: Final = ("aws_", "azure_", "google_")
_SHORTEST_SECRET: Final = 4
_SECRET: Final = re.compile(
    r"(key|secret|token|password|credentials?|sas)(?!.*_(file|path|uri|url|endpoint|enabled)$)",
    re.IGNORECASE,
)
# What delta-rs takes, and with which values commits remain conditional puts.
_SAFE: Final = {
    "s3_locking_provider": (),
    "s3_allow_unsafe_rename": ("false",),
    "copy_if_not_exists": (),
    "conditional_put": ("etag",),
}
_PATH: Final = "google_application_credentials"


def from_file(lake: Lake) -> dict[str, str]:
    """The storage options of delta-rs from their own file, so that no secret is in the config.

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
        why = "not a mapping of names to text: quote numbers and dates"
        raise ConfigError(f"lake.options_file {lake.options_file}: {why}") from None


def of_lake(lake: Lake) -> Callable[[], dict[str, str]]:
    """Gives a lake's storage options anew at each call: those of its file, and vended credentials.

    It raises ConfigError where the file cannot be read, and LakeError where nothing is vended.

    Raises:
        ConfigError: The file of options or the environment is wrong, as they are now.
    """
    bounded(lake.path, from_file(lake))
    if lake.unity_catalog is None:
        return partial(from_file, lake)
    from collector.delivery.vended_credentials import VendedCredentials  # noqa: PLC0415 - an HTTP client

    vended = VendedCredentials(lake.unity_catalog, lake.path)
    return lambda: {**from_file(lake), **vended()}


def bounded(
    lake: str, options: Mapping[str, str], environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The user's options, with bounds to what they leave open; a folder needs none.

    Args:
        lake: Root of the lake: a folder or a URL.
        options: Storage options of delta-rs.
        environ: The environment, where it looks for options too.

    Raises:
        ConfigError: One of them makes commits overwrite one another.
    """
    if "://" not in lake or lake.startswith("file://"):
        return dict(options)
    if lake.startswith("s3"):
        _refuse_unsafe("lake.options_file", options)
        _refuse_unsafe("the environment", environ)
    given = {_plain(name) for name in options}
    return {**{key: value for key, value in _BOUNDS.items() if key not in given}, **options}


def secrets(options: Mapping[str, str], environ: Mapping[str, str]) -> list[str]:
    """Secret values, also in their URL encoding; the longest first.

    The names of options decide: hiding "true", or a region, would hide half of an error's text.

    Args:
        options: Storage options of delta-rs.
        environ: The environment, where it looks for credentials too.
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
            why = f"{name} lets agents overwrite one another's commits"
            advice = "remove it, and use a store that has conditional puts"
            raise ConfigError(f"{where}: {why}; {advice}")


def _plain(name: str) -> str:
    """The name of an option as object_store takes it: in any case, with or without its cloud."""
    lower = name.lower()
    return next((lower.removeprefix(one) for one in _PREFIXES if lower.startswith(one)), lower)
