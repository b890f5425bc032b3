"""What a Java exception means for us, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collector.errors import SourceError, SourceRefusedError, SourceTimeoutError

if TYPE_CHECKING:
    from collections.abc import Iterator

_TIMEOUT: Final = (
    "java.net.SocketTimeoutException",
    "org.apache.kafka.common.errors.TimeoutException",
    "org.apache.kafka.common.errors.DisconnectException",
)
_REFUSED: Final = {
    "java.net.ConnectException": "nobody listens there; is it up, and is its port right?",
    "java.net.NoRouteToHostException": "there is no way to that host; is the address right?",
    "java.net.UnknownHostException": "the host name cannot be resolved; is it spelt right?",
    "java.rmi.NotBoundException": "that RMI registry holds no JMX; is it the JMX port?",
    "java.rmi.ConnectIOException": "it does not speak RMI as we do; is TLS on at one side only?",
    "java.lang.SecurityException": "it refused the user or the password; mend user and"
    " password_file",
    "javax.net.ssl.SSLException": "the TLS handshake failed; do the trust store and key fit?",
    "org.apache.kafka.common.errors.AuthenticationException": "it refused the credentials of the"
    " client properties file",
    "org.apache.kafka.common.errors.AuthorizationException": "our principal may not do this; grant"
    " it Describe on cluster, topics and groups and DescribeConfigs",
    "com.sun.tools.attach.AttachNotSupportedException": "that process does not let us attach; is"
    " it a JVM, of the same user as we are?",
}


def source_error(where: str, error: BaseException) -> SourceError:
    """The error to raise for what Java threw; its text names the place and never a credential."""
    if isinstance(error, SourceError):
        return error
    causes = list(_causes(error))
    for cause in causes:  # first of all: RMI wraps a timeout in exceptions that mean something else
        if not _lineage(cause).isdisjoint(_TIMEOUT):
            return SourceTimeoutError(f"{where}: no answer in time ({_short(cause)})")
    for cause in causes:
        for name, meaning in _REFUSED.items():
            if name in _lineage(cause):
                return SourceRefusedError(f"{where}: {meaning}")
    return SourceError(f"{where}: {_short(causes[-1])}")


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
    text = str(error).splitlines() or [type(error).__name__]
    return text[0][:200]
