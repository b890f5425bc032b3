"""What an exception means, told from its class, what that extends, its causes and its words."""

from __future__ import annotations

import socket
import ssl

import httpx
import pytest

from collector.errors import (
    CredentialsError,
    SourceDataError,
    SourceError,
    SourceRefusedError,
    SourceTimeoutError,
)
from collector.sources.base.error_mapping import source_error

KAFKA = "org.apache.kafka.common.errors"


def fake(*names: str, text: str = "", cause: BaseException | None = None) -> BaseException:
    """Stands for an exception of Java: JPype names its classes in full."""
    kind: type[BaseException] = Exception
    for name in reversed(names):
        kind = type(name, (kind,), {})
    error = kind(text)
    error.__cause__ = cause
    return error


def refused_by_tls(text: str) -> BaseException:
    return fake("javax.net.ssl.SSLHandshakeException", "javax.net.ssl.SSLException", text=text)


def over_http(cause: BaseException) -> httpx.ConnectError:
    error = httpx.ConnectError(str(cause))
    error.__context__ = cause  # httpcore raises from None
    return error


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (fake("java.rmi.ConnectIOException", cause=fake("java.net.SocketTimeoutException")),
         SourceTimeoutError, "no answer in time"),
        (fake(f"{KAFKA}.TimeoutException"), SourceTimeoutError, "check admin.bootstrap"),
        (fake(f"{KAFKA}.DisconnectException"), SourceTimeoutError, "no answer in time"),
        (fake("java.rmi.ConnectException", cause=fake("java.net.ConnectException")),
         SourceRefusedError, "nothing listens there"),
        (fake("java.lang.SecurityException"), CredentialsError, "password was refused"),
        (fake(f"{KAFKA}.SaslAuthenticationException", f"{KAFKA}.AuthenticationException"),
         CredentialsError, "credentials of the client properties"),
        (fake(f"{KAFKA}.SslAuthenticationException", f"{KAFKA}.AuthenticationException"),
         SourceRefusedError, "correct the ssl. lines"),
        (fake(f"{KAFKA}.UnsupportedVersionException", text="no DESCRIBE_CLIENT_QUOTAS here"),
         SourceRefusedError, r"does not support this request.*no DESCRIBE_CLIENT_QUOTAS here"),
        (fake(f"{KAFKA}.ClusterAuthorizationException", f"{KAFKA}.AuthorizationException"),
         SourceRefusedError, "grant it Describe"),
        (fake("java.rmi.ConnectIOException", cause=refused_by_tls("No name matching b1 found")),
         SourceRefusedError, "is for another name"),
        (refused_by_tls("Received fatal alert: unknown_ca"),
         SourceRefusedError, "requires a client certificate"),
        (refused_by_tls("odd"), SourceRefusedError, "the TLS handshake failed"),
        (fake("java.rmi.ConnectIOException", cause=fake("java.net.SocketException")),
         SourceRefusedError, "the server closed the connection"),
        (fake("java.rmi.ConnectIOException"), SourceRefusedError, "does not use plain RMI"),
        (TypeError("Class com.sun.tools.attach.VirtualMachine is not found"),
         SourceRefusedError, "lacks module jdk.attach"),
        (over_http(socket.gaierror(-2, "no")), SourceRefusedError, "cannot be resolved"),
        (over_http(ConnectionRefusedError()), SourceRefusedError, "nothing listens there"),
        (over_http(ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong")),
         SourceRefusedError, "check whether the URL must start with http://"),
        (over_http(ssl.SSLCertVerificationError(1, "verify failed: {self-signed}")),
         SourceRefusedError, r"handshake failed \(.*\{self-signed\}\); check ca_file"),
        (httpx.ReadTimeout(""), SourceTimeoutError, "no answer in time"),
        (httpx.RemoteProtocolError("odd"), SourceError, r"not use HTTP \(odd\)"),
        (fake("java.net.SocketException", text="Connection reset\n\tat x"),
         SourceError, "^here: Connection reset$"),
        (fake("java.lang.Exception"), SourceError, "^here: java.lang.Exception$"),
    ],
)  # fmt: skip
def test_each_fault_is_told_apart_in_one_line(
    error: BaseException, kind: type[SourceError], text: str
) -> None:
    found = source_error("here", error)
    assert type(found) is kind
    with pytest.raises(SourceError, match=text):
        raise found
    assert str(found).startswith("here: ")


def test_an_error_of_ours_stays_as_it_is() -> None:
    error = SourceDataError("there: it is no number")
    assert source_error("here", error) is error
