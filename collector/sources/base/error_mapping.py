"""Mapping of exceptions of Java and HTTP, and of jmxquery's failures, to one-line SourceErrors."""

import re
from collections.abc import Iterator
from typing import Final

from collector.errors import CredentialsError, SourceError, SourceRefusedError, SourceTimeoutError

_KAFKA: Final = "org.apache.kafka.common.errors"
NOTHING_LISTENS: Final = "nothing listens there"
"""Start of the error text for a closed port. Reports recognize it in a lake, and also the start of
``_LATE``'s texts."""

NOT_ACCEPTED: Final = "which the agent does not accept"
"""End of the error text for a class in a JVM's answer."""

_TLS: Final = "javax.net.ssl.SSLException.*"
_NO_LOGIN: Final = f"{_KAFKA}.AuthenticationException"
NO_PERMISSION: Final = "permission denied; allow the agent's user to read the folder"
_LATE: Final = {  # Kafka's own texts name nodes and calls, not causes
    f"{_KAFKA}.TimeoutException": "no answer in time; check admin.bootstrap and that the broker is"
    " running",
    f"TimeoutException|{_KAFKA}.DisconnectException": "no answer in time",
}
_REFUSED: Final = {
    "java.net.NoRouteToHostException": "no route to the host; check the address",
    "java.nio.file.AccessDeniedException": NO_PERMISSION,
    "java.net.UnknownHostException|gaierror": "the host name cannot be resolved; check the"
    " spelling",
    "java.rmi.NotBoundException|javax.naming.NameNotFoundException": "the RMI registry has no JMX"
    " server; check that the port is the JMX port",
    f"{_KAFKA}.SslAuthenticationException": "the TLS handshake failed; correct the ssl. lines of"
    " the client properties file",
    f"{_KAFKA}.UnsupportedVersionException": "the cluster does not support this request of the"
    " client ({reason}); disable the family, or use admin.libs of another version",
    f"{_KAFKA}.AuthorizationException": "the agent's principal is not authorized; grant it Describe"
    " on cluster, topics and groups, and DescribeConfigs",
    "com.sun.tools.attach.AttachNotSupportedException": "the process does not accept attaching;"
    " check that it is a JVM of the agent's user without -XX:+DisableAttachMechanism",
    "Class com.sun.tools.attach": "the agent's Java lacks module jdk.attach; install a JDK instead"
    " of a JRE",
    f"{_TLS}CertificateExpiredException": "the server's certificate has expired; renew it",
    f"{_TLS}CertificateNotYetValidException": "the server's certificate is not valid yet; check"
    " the clocks of both hosts",
    f"{_TLS}(No subject alternative|No name matching)": "the server's certificate is for another"
    " name; configure that name as host, or replace the certificate",
    f"{_TLS}(CertPathBuilderException|CertPathValidatorException|trustAnchors)": "the server's"
    " certificate is not signed by a trusted CA; add its CA to tls.trust_store",
    f"{_TLS}alert: (bad_certificate|certificate_|unknown_ca|access_)": "the server requires a"
    " client certificate of a CA that it trusts; correct tls.key_store",
    f"{_TLS}(terminated the handshake|unrecognized SSL message)": "the port does not use TLS;"
    " remove tls from the configuration, or set tls.registry to false if only the registry does not"
    " use TLS",
    f"{_TLS}(protocol_version|handshake_failure|No appropriate protocol)": "the server uses another"
    " version of TLS, or other ciphers; update Java on both sides",
    _TLS: "the TLS handshake failed; check tls.trust_store and tls.key_store",
    # OpenSSL's codes, by version, for a response that is not TLS.
    "WRONG_VERSION_NUMBER|HTTP_REQUEST|RECORD_LAYER_FAILURE|PACKET_LENGTH_TOO_LONG": "the port does"
    " not use TLS; check whether the URL must start with http://",
    "SSLError": "the TLS handshake failed ({reason}); check ca_file and the host name",
    r"java.net.ConnectException|\bConnectError": f"{NOTHING_LISTENS}; check that the process is"
    " running and the port is right",
    # With TLS 1.3 the connection can close before the agent reads the reason.
    "java.rmi.ConnectIOException.*java.net.SocketException": "the server closed the connection;"
    " with TLS, check whether it requires a client certificate (tls.key_store)",
    "java.rmi.ConnectIOException": "the port does not use plain RMI; check whether it requires TLS,"
    " and that it is the JMX port",
}
_NO_CREDENTIALS: Final = {
    "java.lang.SecurityException": "the user or the password was refused; correct user and"
    " password_file",
    _NO_LOGIN: "the credentials of the client properties file were refused; correct them",
}
_BROKEN: Final = {
    "HTTPError": "the connection broke, or the port does not use HTTP ({reason}); check whether"
    " the URL must start with https://"
}
_MEANINGS: Final[tuple[tuple[type[SourceError], dict[str, str]], ...]] = (
    (SourceTimeoutError, _LATE),  # first, because RMI wraps a timeout in other exceptions
    (SourceRefusedError, _REFUSED),
    (CredentialsError, _NO_CREDENTIALS),
    (SourceError, _BROKEN),
)
"""Texts by patterns in the classes and texts of an exception and its causes, by kind of error."""


def source_error(where: str, error: BaseException) -> SourceError:
    """Return the SourceError for an exception. Its text names the source, never a credential."""
    if isinstance(error, SourceError):
        return error
    refused = refused_class(error)
    if refused is not None:
        return SourceError(f"{where}: the answer contains {refused}, {NOT_ACCEPTED}")
    causes = list(_causes(error))
    thrown = "\n".join(f"{' '.join(_lineage(cause))}: {_text(cause)}" for cause in causes)
    return _meant(where, thrown, _text(causes[-1]) or type(causes[-1]).__name__)


def printed_error(where: str, printed: str) -> SourceError:
    """Return the SourceError for the output of a failed jmxquery process."""
    reason = " ".join(printed.strip().partition("\n")[0].split())
    return _meant(where, printed, f"jmxquery failed: {reason or 'no output'}")


def refused_class(error: BaseException) -> str | None:
    """Return the class that prevented the deserialization of an answer. None: another problem.

    The agent's filter refuses the class (collector.sources.java.serial_filter), or this process
    does not have it. It is mostly an exception class of the broker.
    """
    causes = list(_causes(error))
    for cause, reason in zip(causes, [*causes[1:], None], strict=True):
        name = type(cause).__name__
        if name == "java.lang.ClassNotFoundException":
            return f"{_text(cause).removeprefix(f'{name}: ').partition(' ')[0]:.200}"
        if name == "java.io.InvalidClassException" and reason is not None:
            found = _text(reason).rpartition(" ")[2]
            return "too many objects" if found == "null" else f"{found:.200}"
    return None


def is_answer(error: BaseException) -> bool:
    """Return True if a Kafka broker returned this error, so that the connection works."""
    lineages = map(_lineage, _causes(error))
    return any(f"{_KAFKA}.ApiException" in one and _NO_LOGIN not in one for one in lineages)


def _meant(where: str, thrown: str, reason: str) -> SourceError:
    for kind, meanings in _MEANINGS:
        for sign, meaning in meanings.items():
            if re.search(sign, thrown, re.DOTALL):
                return kind(f"{where}: {meaning.format(reason=reason[:200])}")
    return SourceError(f"{where}: {reason[:200]}")


def _causes(error: BaseException) -> Iterator[BaseException]:
    current: BaseException | None = error
    for _ in range(20):
        if current is None:
            return
        yield current
        get_cause = getattr(current, "getCause", None)
        current = get_cause() if get_cause else current.__cause__ or current.__context__


def _lineage(error: BaseException) -> list[str]:
    return [kind.__name__ for kind in type(error).__mro__]


def _text(error: BaseException) -> str:
    try:
        return " ".join(str(error).partition("\n")[0].split())
    except UnicodeDecodeError:  # JPype cannot decode half a surrogate pair
        return ""
