"""Errors of delta-rs in one line: what is wrong, and what to do.

Its errors are texts: patterns recognise the codes of the store or of the operating system in them.
An unknown text is passed on, short and without secrets. The same fault always gives the same line,
so that the log has it once.
"""

import re
from collections.abc import Sequence
from typing import Final

from lakehouse.tables import delta_log, error_text

# The first match holds: the store's own codes before the more general status. Errors with the same
# fix have one line; the store's code or the system's own words follow it.
_KNOWN: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), text)
    for pattern, text in (
        ("NoSuchBucket|ContainerNotFound|specified bucket does not exist",
         "there is no such bucket or container; create it, or correct lake.path"),
        ("RequestTimeTooSkewed",
         "this host's clock differs too much from the store's; set it by NTP"),
        ("ExpiredToken|TokenRefreshRequired|token has expired|TokenExpired|InvalidAccessKeyId"
         "|InvalidToken|SignatureDoesNotMatch|InvalidAuthenticationInfo|AuthenticationFailed"
         "|invalid_grant|401 Unauthorized|lacked valid authentication|loading credentials"
         "|performing token request|CredentialsNotLoaded|load IMDS",
         "the store does not accept the credentials: they are wrong, have expired or were not"
         " found; check those in lake.options_file, the environment or the role"),
        ("incorrectly configured region|PermanentRedirect|AuthorizationHeaderMalformed"
         "|IllegalLocationConstraint",
         "the bucket is in another region; set AWS_REGION in lake.options_file"),
        ("AccessDenied|403 Forbidden|AuthorizationPermissionMismatch|necessary privileges",
         "access is forbidden; agents need to list, get and put below lake.path"),
        ("SlowDown|429 Too Many|ServerBusy|50[0-9] [A-Z][a-z]+",
         "the store asks for fewer requests or has a fault of its own (5xx)"),
        ("certificate|InvalidCertificate|UnknownIssuer",
         "the endpoint's certificate is not trusted; check the endpoint and this host's CAs"),
        ("URL scheme is not allowed",
         "the endpoint speaks plain HTTP, which needs AWS_ALLOW_HTTP: 'true'"),
        ("timed out|deadline has elapsed|TimedOut", "the store did not answer in time"),
        (r"dns error|failed to lookup|Connection (?:refused|reset|closed)|broken pipe"
         r"|client error \(Connect\)|error sending request|IncompleteMessage",
         "the store cannot be reached; check the endpoint's name and port, network and proxy"),
        ("Unknown scheme|Account must be specified",
         "delta-rs does not know such a URL; lake.path is a folder, s3://, gs:// or"
         " abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH"),
        ("(No space left on device|Read-only file system|Permission ?denied)",
         r"the lake's folder cannot be written: \1; make room, or correct its owner or"
         " ReadWritePaths= of the unit"),
        ("NotADirectory|Not a directory|Path does not exist|Could not create local directory",
         "it is no folder, or lies in none; check lake.path"),
        ("Invalid table version|No files in log segment|NoSuchKey|BlobNotFound"
         "|(?:File not found|Object at location).{1,300}_delta_log"
         "|(?:Metadata|Protocol) ?changed",
         "its log is gone or its metadata changed: another tool removed, replaced or changed it; it"
         " is read again"),
        (r"Failed to commit transaction: \d+",
         "too many agents commit at once; raise lake.commit_interval, or give each Kafka cluster"
         " its own lake"),
        ("Concurrent transaction",
         "a commit of this very agent came in between; it is looked up"),
    )
)  # fmt: skip
_CODE: Final = re.compile(r"<Code>(\w{1,60})</Code>")  # the store's own, for who looks it up
_CHANGING: Final = (
    (re.compile(r" in [\d.]+(?:ns|\u00b5s|us|ms|s)\b"), ""),
    (re.compile(r",? after \d+ retries, max_retries[: ]+\d+, retry_timeout[: ]+\S+"), ""),
    (re.compile(r"<(RequestId|HostId|x-ms-request-id)>[^<]*</\1>", re.IGNORECASE), ""),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "..."),
    (re.compile(r"\b\d{20}\b"), "..."),  # a version's file in the log
)
_LONGEST: Final = 300


def explain(error: BaseException, secrets: Sequence[str], table: str | None = None) -> str:
    """One line for an error of delta-rs.

    Args:
        error: What it raised.
        secrets: Texts to hide, the longest first.
        table: Path or URL of the table, whose log may be why.
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
        return f"delta-rs has a fault of its own: {unknown}; it is tried again"
    return f"{unknown}; check lake.path and its credentials"


def scrubbed(text: str, secrets: Sequence[str]) -> str:
    """Return a text as one line, without secrets, backtraces and parts that change each time."""
    line = error_text.one_line(text, secrets)
    for pattern, instead in _CHANGING:
        line = pattern.sub(instead, line)
    return " ".join(line.split())
