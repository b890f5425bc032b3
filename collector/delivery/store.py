"""Store of a lake: its options for delta-rs, with time limits, and errors of delta-rs in one line.

delta-rs raises texts. Patterns find the codes of the store or of the operating system in them, and
the line has the problem and the fix. An unknown text is shortened and shown without secrets. The
same fault always produces the same line, so that the log contains it once.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final
from urllib.parse import quote

from collector.config.schema import Lake
from collector.errors import ConfigError, JmxlakeError, LakeError
from lakehouse.tables import delta_log, error_text, strict_yaml, typed_settings
from lakehouse.tables.strict_files import UnreadableFileError

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
# The first match applies: the store's codes come before the more general status. Errors with the
# same fix have one line, followed by the store's code or the system's message.
_KNOWN: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), text)
    for pattern, text in (
        ("NoSuchBucket|ContainerNotFound|specified bucket does not exist",
         "the bucket or container does not exist; create it or correct lake.path"),
        ("RequestTimeTooSkewed",
         "this host's clock differs too much from the store's; synchronize it with NTP"),
        ("ExpiredToken|TokenRefreshRequired|token has expired|TokenExpired|InvalidAccessKeyId"
         "|InvalidToken|SignatureDoesNotMatch|InvalidAuthenticationInfo|AuthenticationFailed"
         "|invalid_grant|401 Unauthorized|lacked valid authentication|loading credentials"
         "|performing token request|CredentialsNotLoaded|load IMDS",
         "the store rejected the credentials, because they are wrong, expired or missing; check"
         " lake.options_file, the environment or the role"),
        ("incorrectly configured region|PermanentRedirect|AuthorizationHeaderMalformed"
         "|IllegalLocationConstraint",
         "the bucket is in another region; set AWS_REGION in lake.options_file"),
        ("AccessDenied|403 Forbidden|AuthorizationPermissionMismatch|necessary privileges",
         "access is forbidden; grant the agent list, get and put below lake.path"),
        ("SlowDown|429 Too Many|ServerBusy|50[0-9] [A-Z][a-z]+",
         "the store limits requests or has an internal error (5xx)"),
        ("certificate|InvalidCertificate|UnknownIssuer",
         "the endpoint's certificate is not trusted; check the endpoint and this host's CAs"),
        ("URL scheme is not allowed",
         "the endpoint uses plain HTTP; set AWS_ALLOW_HTTP: 'true' to allow it"),
        ("timed out|deadline has elapsed|TimedOut", "the store did not respond in time"),
        (r"dns error|failed to lookup|Connection (?:refused|reset|closed)|broken pipe"
         r"|client error \(Connect\)|error sending request|IncompleteMessage",
         "the store cannot be reached; check the endpoint's name and port, network and proxy"),
        ("Unknown scheme|Account must be specified",
         "delta-rs does not support this URL; set lake.path to a folder, s3://, gs:// or"
         " abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH"),
        ("(No space left on device|Read-only file system|Permission ?denied)",
         r"the lake's folder cannot be written: \1; free disk space, or correct its owner or"
         " ReadWritePaths= of the unit"),
        ("NotADirectory|Not a directory|Path does not exist|Could not create local directory",
         "the path or its parent is not a folder; check lake.path"),
        ("Invalid table version|No files in log segment|NoSuchKey|BlobNotFound"
         "|(?:File not found|Object at location).{1,300}_delta_log"
         "|(?:Metadata|Protocol) ?changed",
         "maintenance or another tool removed, replaced or changed the table's log; the agent reads"
         " it again"),
        (r"Failed to commit transaction: \d+",
         "too many agents commit at once; raise lake.commit_interval, or use one lake per Kafka"
         " cluster"),
        ("Concurrent transaction",
         "an earlier commit of this agent succeeded meanwhile; the agent reads it"),
    )
)  # fmt: skip
_CODE: Final = re.compile(r"<Code>(\w{1,60})</Code>")  # the store's code, for a search
_CHANGING: Final = (
    (re.compile(r" in [\d.]+(?:ns|\u00b5s|us|ms|s)\b"), ""),
    (re.compile(r",? after \d+ retries, max_retries[: ]+\d+, retry_timeout[: ]+\S+"), ""),
    (re.compile(r"<(RequestId|HostId|x-ms-request-id)>[^<]*</\1>", re.IGNORECASE), ""),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "..."),
    (re.compile(r"\b\d{20}\b"), "..."),  # a version's file in the log
)
_LONGEST: Final = 300


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
    except typed_settings.WrongSettingError:
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


class StoredTable:
    """A table in the store: its options for delta-rs, and errors that name it.

    Args:
        url: Path or URL of the table.
        options: Returns the user's options for each call of ``options``.

    Attributes:
        url: Path or URL of the table.
        where: The table, as errors name it.
    """

    def __init__(self, url: str, options: Callable[[], Mapping[str, str]]) -> None:
        self.url, self.where = url, f"lake table {scrubbed(url, [])}"
        self._options, self._secrets = options, list[str]()

    def options(self) -> dict[str, str]:
        """Return the current options. Errors hide their secret values from now on."""
        found = bounded(self.url, self._options())
        self._secrets = secrets(found, os.environ)
        return found

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Raise errors of delta-rs as a LakeError of one line that names the table."""
        try:
            yield
        except JmxlakeError:
            raise
        except delta_log.DamagedLogError as error:
            raise LakeError(f"{self.where}: {error}") from None
        except BaseException as error:
            if not error_text.is_fault(error):  # delta-rs also raises OSError and plain Exception
                raise
            why = explain(error, self._secrets, self.url)
            raise LakeError(f"{self.where}: {why}") from None


def explain(error: BaseException, hidden: Sequence[str], table: str | None = None) -> str:
    """Return one line for an error of delta-rs.

    Args:
        error: The error.
        hidden: Texts to hide, the longest first.
        table: Path or URL of the table, whose log can be the cause.
    """
    text = str(error)
    if damage := delta_log.explain(table, text):
        return damage
    code = _CODE.search(text)
    for pattern, advice in _KNOWN:
        if found := pattern.search(text):
            known = found.expand(advice)
            return f"{known} ({code[1]})" if code else known
    unknown = scrubbed(text, hidden)[:_LONGEST] or type(error).__name__
    if not isinstance(error, Exception):
        return f"internal error of delta-rs: {unknown}; the agent tries again"
    return f"{unknown}; check lake.path and its credentials"


def scrubbed(text: str, hidden: Sequence[str]) -> str:
    """Return a text as one line, without secrets, backtraces and parts that change each time."""
    line = error_text.one_line(text, hidden)
    for pattern, instead in _CHANGING:
        line = pattern.sub(instead, line)
    return " ".join(line.split())
