"""What delta-rs says when something is wrong with a lake, as one line: what, and what to do.

Its errors are texts: they are told apart by the parts of them that are the store's own codes or
the operating system's. What is not known is passed on, short and without secrets. The same trouble
gives the same line however often it is met, so that the log says it once.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_CREDENTIALS: Final = "check the credentials in lake.options_file, the environment or the role"
# The first that is found holds: the store's own codes before the more general status.
_KNOWN: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), text)
    for pattern, text in (
        ("NoSuchBucket|ContainerNotFound|specified bucket does not exist",
         "there is no such bucket or container; make it, or mend lake.path"),
        ("ExpiredToken|TokenRefreshRequired|token has expired|TokenExpired",
         "the credentials have expired; renew them, or let the agent use a role"),
        ("RequestTimeTooSkewed",
         "this host's clock differs too much from the store's; set it by NTP"),
        ("InvalidAccessKeyId|InvalidToken|SignatureDoesNotMatch|InvalidAuthenticationInfo"
         "|AuthenticationFailed|invalid_grant",
         f"the store does not accept the credentials; {_CREDENTIALS}"),
        ("loading credentials|performing token request|CredentialsNotLoaded|load IMDS",
         "no credentials were found: none in lake.options_file or the environment, and the"
         " instance gives no role"),
        ("incorrectly configured region|PermanentRedirect|AuthorizationHeaderMalformed"
         "|IllegalLocationConstraint",
         "the bucket is in another region; set AWS_REGION in lake.options_file"),
        ("401 Unauthorized|lacked valid authentication",
         f"the store does not accept the credentials; {_CREDENTIALS}"),
        ("AccessDenied|403 Forbidden|AuthorizationPermissionMismatch|necessary privileges",
         "access is forbidden; agents need to list, get and put below lake.path"),
        ("SlowDown|429 Too Many|ServerBusy|503 Service Unavailable",
         "the store asks for fewer requests or is down for a while (503)"),
        ("50[0-9] [A-Z][a-z]+", "the store has a fault of its own (5xx)"),
        ("dns error|failed to lookup", "the store's host name is not known; check the endpoint"),
        ("Connection refused", "nobody listens at the endpoint; check its address and port"),
        ("certificate|InvalidCertificate|UnknownIssuer",
         "the endpoint's certificate is not trusted; check the endpoint and this host's CAs"),
        ("URL scheme is not allowed",
         "the endpoint speaks plain HTTP, which needs AWS_ALLOW_HTTP: 'true'"),
        ("timed out|deadline has elapsed|TimedOut", "the store did not answer in time"),
        (r"client error \(Connect\)|Connection reset|Connection closed|broken pipe"
         "|error sending request|IncompleteMessage",
         "the connection to the store failed; check endpoint, network and proxy"),
        ("Unknown scheme",
         "delta-rs does not know such a URL; lake.path is a folder, s3://, abfss:// or gs://"),
        ("Account must be specified",
         "no storage account: write abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH"),
        ("No space left on device|StorageFull|os error 28",
         "the disk of the lake is full: No space left on device; make room"),
        ("Read-only file system|os error 30", "the lake's file system is read-only"),
        (r"PermissionDenied|Permission denied|os error 13\b",
         "the lake's folder is not writable for this user; mend its owner, or"
         " ReadWritePaths= of the unit"),
        ("NotADirectory|Not a directory|Path does not exist",
         "it is no folder, or lies in none; check lake.path"),
        ("Could not create local directory", "the folder cannot be made"),
        ("Unsupported table features|is not supported|Invalid protocol|ReaderFeatures|"
         "WriterFeatures|Unsupported reader|Unsupported writer",
         "its Delta protocol asks for features that agents cannot write, which another tool has"
         " turned on; drop them, or give the agent another lake.path"),
        ("Json error|Invalid JSON|InvalidJsonLog|not valid JSON",
         "its log is damaged or no Delta log; restore it, or give the agent another lake.path"),
        ("Invalid table version|No files in log segment|NoSuchKey|BlobNotFound"
         "|(File not found|Object at location).{1,300}_delta_log",
         "its log is gone: the table was removed or made anew; it is looked at again"),
        ("Metadata changed|Protocol changed|MetadataChanged|ProtocolChanged",
         "its metadata changed meanwhile; it is looked at again"),
        (r"Failed to commit transaction: \d+",
         "too many agents commit at once; raise lake.commit_interval, or give each Kafka cluster"
         " its own lake"),
        ("Concurrent transaction",
         "a commit of this very agent came in between; it is looked up"),
    )
)  # fmt: skip
_CODE: Final = re.compile(r"<Code>(\w{1,60})</Code>")  # the store's own, for who looks it up
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m|\u21b3")  # it writes some errors for terminals
_FRAMES: Final = re.compile(r"\s+\d+: <?\w[\w:<>]*>?(?=\s|$).*", re.DOTALL)  # a backtrace
_CHANGING: Final = (
    (re.compile(r" in [\d.]+(?:ns|\u00b5s|us|ms|s)\b"), ""),
    (re.compile(r",? after \d+ retries, max_retries[: ]+\d+, retry_timeout[: ]+\S+"), ""),
    (re.compile(r"<(RequestId|HostId|x-ms-request-id)>[^<]*</\1>", re.IGNORECASE), ""),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "..."),
    (re.compile(r"\b\d{20}\b"), "..."),  # a version's file in the log
)
_QUERIES: Final = re.compile(r"(?<=\w)\?[^\s<>'\"]*=[^\s<>'\"]*")  # of a URL: it may be signed
_TOKENS: Final = re.compile(
    r"((?:sig|token|secret|key|password|credential|signature)[\w-]*\s*[=:]\s*|Bearer\s+|"
    r"(?<=://)[^/\s:@]+:)[^\s&;,<>'\"@]+",
    re.IGNORECASE,
)
_HIDDEN: Final = "***"
_LONGEST: Final = 300


def is_fault(error: BaseException) -> bool:
    """Whether something went wrong, and nobody ended us; a panic of Rust is no Exception."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def explain(error: BaseException, secrets: Sequence[str]) -> str:
    """One line for an error of delta-rs.

    Args:
        error: What it raised.
        secrets: What must not be seen, the longest first.
    """
    text = str(error)
    code = _CODE.search(text)
    for pattern, known in _KNOWN:
        if pattern.search(text):
            return f"{known} ({code[1]})" if code else known
    unknown = scrubbed(text, secrets)[:_LONGEST] or type(error).__name__
    if not isinstance(error, Exception):
        return f"delta-rs has a fault of its own: {unknown}; it is tried again"
    return f"{unknown}; check lake.path and its credentials"


def scrubbed(text: str, secrets: Sequence[str]) -> str:
    """A text as one line, without secrets, queries of URLs, tokens, or what changes each time."""
    line = _FRAMES.sub("", _COLOURS.sub("", text))
    for secret in secrets:
        line = line.replace(secret, _HIDDEN)
    line = _TOKENS.sub(rf"\1{_HIDDEN}", _QUERIES.sub("", line))
    for pattern, instead in _CHANGING:
        line = pattern.sub(instead, line)
    return " ".join(line.split())
