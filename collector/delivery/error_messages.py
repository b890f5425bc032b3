"""Errors of delta-rs in one line: the problem and the fix.

delta-rs raises texts. Patterns find the codes of the store or of the operating system in them. An
unknown text is shortened and shown without secrets. The same fault always produces the same line,
so that the log contains it once.
"""

import re
from collections.abc import Sequence
from typing import Final

from lakehouse.tables import delta_log, error_text

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
         "another tool removed, replaced or changed the table's log; the agent reads it again"),
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


def explain(error: BaseException, secrets: Sequence[str], table: str | None = None) -> str:
    """Return one line for an error of delta-rs.

    Args:
        error: The error.
        secrets: Texts to hide, the longest first.
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
    unknown = scrubbed(text, secrets)[:_LONGEST] or type(error).__name__
    if not isinstance(error, Exception):
        return f"internal error of delta-rs: {unknown}; the agent tries again"
    return f"{unknown}; check lake.path and its credentials"


def scrubbed(text: str, secrets: Sequence[str]) -> str:
    """Return a text as one line, without secrets, backtraces and parts that change each time."""
    line = error_text.one_line(text, secrets)
    for pattern, instead in _CHANGING:
        line = pattern.sub(instead, line)
    return " ".join(line.split())
