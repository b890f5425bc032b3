"""What a Java exception means for us, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collector.errors import (
    CredentialsError,
    SourceError,
    SourceRefusedError,
    SourceTimeoutError,
)
from collector.sources.tls_errors import tls_fault

if TYPE_CHECKING:
    from collections.abc import Iterator

_TIMEOUT: Final = (
    "java.net.SocketTimeoutException",
    "org.apache.kafka.common.errors.DisconnectException",
)
_ADMIN_TIMEOUT: Final = "org.apache.kafka.common.errors.TimeoutException"
_NO_LOGIN: Final = "org.apache.kafka.common.errors.AuthenticationException"
_KAFKA_SAYS: Final = "org.apache.kafka.common.errors.ApiException"
_REFUSED: Final = {
    "java.net.ConnectException": "nobody listens there; is it up, and is its port right?",
    "java.net.NoRouteToHostException": "there is no way to that host; is the address right?",
    "java.net.UnknownHostException": "the host name cannot be resolved; is it spelt right?",
    "java.rmi.NotBoundException": "that RMI registry holds no JMX; is it the JMX port?",
    "java.lang.SecurityException": "it refused the user or the password; mend user and"
    " password_file",
    "org.apache.kafka.common.errors.SslAuthenticationException": "the TLS handshake failed; mend"
    " the ssl. lines of the client properties file",
    _NO_LOGIN: "it refused the credentials of the client properties file",
    "org.apache.kafka.common.errors.AuthorizationException": "our principal may not do this; grant"
    " it Describe on cluster, topics and groups and DescribeConfigs",
    "com.sun.tools.attach.AttachNotSupportedException": "that process does not let us attach; is"
    " it a JVM, of the same user as we are, and not started with -XX:+DisableAttachMechanism?",
}
_CREDENTIALS: Final = ("java.lang.SecurityException", _NO_LOGIN)

_TLS: Final = "javax.net.ssl.SSLException"
_NO_RMI: Final = "java.rmi.ConnectIOException"
_HUNG_UP: Final = "java.net.SocketException"
_NO_ATTACH: Final = "Class com.sun.tools.attach"


def source_error(where: str, error: BaseException) -> SourceError:
    """The error to raise for what Java threw; its text names the place and never a credential."""
    if isinstance(error, SourceError):
        return error
    causes = list(_causes(error))
    for cause in causes:  # first of all: RMI wraps a timeout in exceptions that mean something else
        if _ADMIN_TIMEOUT in _lineage(cause):  # Java's words are of nodes and calls, not of causes
            return SourceTimeoutError(
                f"{where}: no answer in time: is admin.bootstrap right, and is the broker up?"
            )
        if not _lineage(cause).isdisjoint(_TIMEOUT):
            return SourceTimeoutError(f"{where}: no answer in time ({_short(cause)})")
    return _refused(where, causes) or SourceError(f"{where}: {_short(causes[-1])}")


def is_answer(error: BaseException) -> bool:
    """Whether a Kafka broker answered with this error, so that the connection to it works."""
    lineages = map(_lineage, _causes(error))
    return any(_KAFKA_SAYS in found and _NO_LOGIN not in found for found in lineages)


def _refused(where: str, causes: list[BaseException]) -> SourceRefusedError | None:
    for cause in causes:
        for name, meaning in _REFUSED.items():
            if name in _lineage(cause):
                kind = CredentialsError if name in _CREDENTIALS else SourceRefusedError
                return kind(f"{where}: {meaning}")
        if _TLS in _lineage(cause):
            return SourceRefusedError(f"{where}: {tls_fault(causes)}")
    unlike = _unlike(causes)
    return SourceRefusedError(f"{where}: {unlike}") if unlike else None


def _unlike(causes: list[BaseException]) -> str | None:
    """What it means that Java's words name no cause of their own."""
    if any(_NO_RMI in _lineage(cause) for cause in causes):
        if _HUNG_UP in _lineage(causes[-1]):  # since TLS 1.3 maybe before we could read why
            return "it hung up; with TLS, does it want a client's certificate (tls.key_store)?"
        return "it does not speak RMI as we do; does it want TLS, or is it no JMX port?"
    if str(causes[0]).startswith(_NO_ATTACH):
        return "our Java has no module jdk.attach; install a JDK, not only a JRE"
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen = 0
    current: BaseException | None = error
    while current is not None and seen < 20:
        yield current
        get_cause = getattr(current, "getCause", None)
        current = get_cause() if get_cause else current.__cause__
        seen += 1


def _lineage(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def _short(error: BaseException) -> str:
    try:
        text = str(error).splitlines()
    except UnicodeDecodeError:  # half a surrogate pair in it, at which JPype fails
        text = []
    return text[0][:200] if text else type(error).__name__
