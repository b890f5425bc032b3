"""Exceptions of Java and of HTTP, and failures of jmxquery, as a SourceError of one line."""

import re
from collections.abc import Iterator
from typing import Final

from collector.errors import CredentialsError, SourceError, SourceRefusedError, SourceTimeoutError

_KAFKA: Final = "org.apache.kafka.common.errors"
NOTHING_LISTENS: Final = "nothing listens there"
"""What the error says where a connection was refused by the host: its port is closed."""

NOT_ACCEPTED: Final = "which the agent does not accept"
"""What the error says of a class that a JVM answered with."""

_TLS: Final = "javax.net.ssl.SSLException.*"
_NO_LOGIN: Final = f"{_KAFKA}.AuthenticationException"
NO_PERMISSION: Final = "no permission: let the agent's user read the folder"
_LATE: Final = {  # of Kafka's timeouts Java's words are of nodes and calls, and not of causes
    f"{_KAFKA}.TimeoutException": "no answer in time: is admin.bootstrap right, and is the broker"
    " up?",
    f"TimeoutException|{_KAFKA}.DisconnectException": "no answer in time",
}
_REFUSED: Final = {
    "java.net.NoRouteToHostException": "there is no way to that host; is the address right?",
    "java.nio.file.AccessDeniedException": NO_PERMISSION,
    "java.net.UnknownHostException|gaierror": "the host name cannot be resolved; is it spelt"
    " right?",
    "java.rmi.NotBoundException|javax.naming.NameNotFoundException": "that RMI registry holds no"
    " JMX; is it the JMX port?",
    f"{_KAFKA}.SslAuthenticationException": "the TLS handshake failed; correct the ssl. lines of"
    " the client properties file",
    f"{_KAFKA}.UnsupportedVersionException": "this cluster has no such request, or not as this"
    " client asks it ({said}); turn the family off, or take another version's admin.libs",
    f"{_KAFKA}.AuthorizationException": "our principal may not do this; grant it Describe on"
    " cluster, topics and groups and DescribeConfigs",
    "com.sun.tools.attach.AttachNotSupportedException": "that process does not let us attach; is"
    " it a JVM, of the same user as we are, and not started with -XX:+DisableAttachMechanism?",
    "Class com.sun.tools.attach": "our Java has no module jdk.attach; install a JDK, not only a"
    " JRE",
    f"{_TLS}CertificateExpiredException": "its certificate has expired; renew it there",
    f"{_TLS}CertificateNotYetValidException": "its certificate is not valid yet; are both clocks"
    " right?",
    f"{_TLS}(No subject alternative|No name matching)": "its certificate is for another name; call"
    " it by that name, or replace the certificate",
    f"{_TLS}(CertPathBuilderException|CertPathValidatorException|trustAnchors)": "its certificate"
    " is not signed by a CA that we trust; put its CA into tls.trust_store",
    f"{_TLS}alert: (bad_certificate|certificate_|unknown_ca|access_)": "it wants a client's"
    " certificate, of a CA that it trusts; correct tls.key_store",
    f"{_TLS}(terminated the handshake|unrecognized SSL message)": "it does not speak TLS there;"
    " take tls out of the configuration, or set tls.registry to false if only its registry does"
    " not",
    f"{_TLS}(protocol_version|handshake_failure|No appropriate protocol)": "it speaks another"
    " version of TLS, or other ciphers; bring both sides' Java up to date",
    _TLS: "the TLS handshake failed; do tls.trust_store and tls.key_store fit?",
    # How OpenSSL, by its version, says that an answer does not begin as TLS does.
    "WRONG_VERSION_NUMBER|HTTP_REQUEST|RECORD_LAYER_FAILURE|PACKET_LENGTH_TOO_LONG": "it does not"
    " speak TLS there; is its URL an http:// one?",
    "SSLError": "the TLS handshake failed ({said}); does ca_file fit, and the name?",
    r"java.net.ConnectException|\bConnectError": f"{NOTHING_LISTENS}; is it up, and is its port"
    " right?",
    # Since TLS 1.3 maybe before we could read why.
    "java.rmi.ConnectIOException.*java.net.SocketException": "it hung up; with TLS, does it want a"
    " client's certificate (tls.key_store)?",
    "java.rmi.ConnectIOException": "it does not speak RMI as we do; does it want TLS, or is it no"
    " JMX port?",
}
_NO_CREDENTIALS: Final = {
    "java.lang.SecurityException": "it refused the user or the password; correct user and"
    " password_file",
    _NO_LOGIN: "it refused the credentials of the client properties file",
}
_BROKEN: Final = {
    "HTTPError": "the connection broke, or it does not speak HTTP (does it want https://?) ({said})"
}
_MEANINGS: Final[tuple[tuple[type[SourceError], dict[str, str]], ...]] = (
    (SourceTimeoutError, _LATE),  # RMI wraps one in exceptions that mean something else
    (SourceRefusedError, _REFUSED),
    (CredentialsError, _NO_CREDENTIALS),
    (SourceError, _BROKEN),
)
"""By kind of error: patterns in the classes and texts of an exception and its causes."""


def source_error(where: str, error: BaseException) -> SourceError:
    """The error to raise for what was thrown; its text names the place and never a credential."""
    if isinstance(error, SourceError):
        return error
    refused = refused_class(error)
    if refused is not None:
        return SourceError(f"{where}: its answer holds {refused}, {NOT_ACCEPTED}")
    causes = list(_causes(error))
    thrown = "\n".join(f"{' '.join(_lineage(cause))}: {_text(cause)}" for cause in causes)
    return _meant(where, thrown, _text(causes[-1]) or type(causes[-1]).__name__)


def printed_error(where: str, printed: str) -> SourceError:
    """The error to raise for what another JVM printed before it failed."""
    reason = " ".join(printed.strip().partition("\n")[0].split())
    return _meant(where, printed, f"jmxquery failed: {reason or 'it said nothing'}")


def refused_class(error: BaseException) -> str | None:
    """What of Java's answer was not made into an object; None: that was not the problem.

    It is a class that a filter of ours refuses (collector.sources.java.serial_filter), or that this
    process has no code of: mostly an exception of the broker's own.
    """
    causes = list(_causes(error))
    for cause, reason in zip(causes, [*causes[1:], None], strict=True):
        name = type(cause).__name__
        if name == "java.lang.ClassNotFoundException":
            return f"{_text(cause).removeprefix(f'{name}: ').partition(' ')[0]:.200}"
        if name == "java.io.InvalidClassException" and reason is not None:
            found = _text(reason).rpartition(" ")[2]
            return "too much" if found == "null" else f"{found:.200}"
    return None


def is_answer(error: BaseException) -> bool:
    """Whether a Kafka broker answered with this error, so that the connection to it works."""
    lineages = map(_lineage, _causes(error))
    return any(f"{_KAFKA}.ApiException" in one and _NO_LOGIN not in one for one in lineages)


def _meant(where: str, thrown: str, said: str) -> SourceError:
    for kind, meanings in _MEANINGS:
        for sign, meaning in meanings.items():
            if re.search(sign, thrown, re.DOTALL):
                return kind(f"{where}: {meaning.format(said=said[:200])}")
    return SourceError(f"{where}: {said[:200]}")


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
    except UnicodeDecodeError:  # half a surrogate pair in it, at which JPype fails
        return ""
