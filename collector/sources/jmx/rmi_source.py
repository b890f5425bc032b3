"""A JVM that is read over one RMI connection, which stays open between scrapes.

``JmxSource`` connects to a JMX port, without JNDI. ``attach.py`` connects to a JVM of this host
that has no JMX port.
"""

import socket
import threading
import time
from abc import abstractmethod
from contextlib import suppress
from typing import Any, Final

import jpype

from collector.errors import IdentityError
from collector.settings import Secret, is_loopback
from collector.sources.base.beans import Answers, text_of, value_text
from collector.sources.base.identity import Expected
from collector.sources.base.mbean_source import MBeanSource, Session
from collector.sources.java.jvm import detach, java
from collector.sources.jmx import rmi_calls, tls
from collector.sources.jmx.reader import MBeanReader
from collector.sources.jmx.rmi_calls import Endpoint, MBeanServer, called
from collector.sources.transports import Jmx

_IDLE_SECONDS: Final = 100.0
"""Age limit of an unused connection. A JVM closes it after two minutes."""


class RmiSource(MBeanSource):
    """A JVM behind an RMI connection. Subclasses open the connection."""

    _used_at = 0.0

    @abstractmethod
    def _connect(self) -> Any:
        """Open a javax.management.remote.rmi.RMIConnection. It can raise exceptions of Java."""

    def close(self) -> None:
        """Close the connection. The source can be used again."""
        session = self._session
        super().close()
        if session is not None:
            _close(session.connection)

    def _opened(self) -> Session:
        now = time.monotonic()
        if now - self._used_at > _IDLE_SECONDS:
            self.close()
        self._used_at = now
        return super()._opened()

    def _open(self) -> Session:
        connection = self._connect()
        try:
            server = MBeanServer(connection)
            identity = self._expected.identity(self._where, _answers(server, self._expected))
            with suppress(java("java.lang.SecurityException")):  # then every scrape reads all names
                server.watch()
        except BaseException:
            _close(connection)
            raise
        reader = MBeanReader(server, self._where, identity.kafka_version)
        return Session(identity, reader.read, connection)


class JmxSource(RmiSource):
    """A broker, controller or client JVM that is read through its JMX port.

    It uses an RMI registry at host and port, never a URL, because a JNDI look-up could load code
    from another host. The local JVM must run (collector.sources.java.jvm.start).

    Args:
        expected: Expected identity.
        jmx: Settings. The password is read again at every connect.

    Raises:
        ConfigError: A store of ``jmx.tls`` cannot be read, or has no usable certificate or key.
    """

    def __init__(self, expected: Expected, jmx: Jmx) -> None:
        self._configured = f"JMX of {jmx.host}:{jmx.port}"
        super().__init__(self._configured, expected, jmx.timeout.seconds, jmx.password_file)
        self._jmx = jmx
        if jmx.tls is not None:
            tls.install(jmx.tls)

    def _connect(self) -> Any:
        self._where = self._configured
        at: tuple[Any, ...] = (self._jmx.host, self._jmx.port)
        if self._jmx.tls is not None and self._jmx.tls.registry:
            at += (java("javax.rmi.ssl.SslRMIClientSocketFactory")(),)
        registry = java("java.rmi.registry.LocateRegistry").getRegistry(*at)
        text = java("java.lang.String")
        stub = called(registry, rmi_calls.LOOKUP, text("jmxrmi"), check=self._check_server)
        login = None
        user = self._jmx.user
        if user is not None:
            secret = Secret(self._jmx.password_file, self._jmx.password_env)
            login = jpype.JArray(text)([user, secret.read(self._where, user)])
        return called(stub, rmi_calls.NEW_CLIENT, login, check=self._check_connection)

    def _check_server(self, stub: Any) -> None:
        """Check the JMX server that the registry names, and keep its address.

        While the broker is down, any process can be the registry. So with a password, the server
        must be on the configured host or use TLS with a trust store.
        """
        found = rmi_calls.endpoint_of(stub, self._where)
        ours = self._jmx.tls is not None and self._jmx.tls.trust_store is not None
        guarded = self._jmx.user is None or (found.tls and ours)
        if not guarded and not is_same_host(found.host, self._jmx.host):
            raise IdentityError(
                f"{self._where}: the registry names another host, {_shown(found.host)}, which would"
                f" get the password; set -Djava.rmi.server.hostname={self._jmx.host} in that JVM,"
                " or use TLS with a trust_store"
            )
        self._server = found
        self._where += _redirection(found, self._jmx)

    def _check_connection(self, stub: Any) -> None:
        """Check that a login names the host of the registry or the configured host."""
        host = rmi_calls.endpoint_of(stub, self._where).host
        if not any(is_same_host(host, known) for known in (self._server.host, self._jmx.host)):
            raise IdentityError(
                f"{self._where}: the login names another host, {_shown(host)}; set"
                f" -Djava.rmi.server.hostname={self._jmx.host} in that JVM"
            )


def _redirection(found: Endpoint, jmx: Jmx) -> str:
    """Return the address that a registry names, for error texts. Empty: its own address."""
    if found.host.casefold() != jmx.host.casefold():
        there, setting = f"{_shown(found.host)}:{found.port}", "java.rmi.server.hostname"
    elif found.port != jmx.port:
        there, setting = f"port {found.port}", "com.sun.management.jmxremote.rmi.port"
    else:
        return ""
    return f" (its registry names {there}: {setting})"


def _shown(host: str) -> str:
    """Return an untrusted host name in printable characters."""
    return "".join(one if one.isprintable() else "?" for one in host[:100])


def is_same_host(one: str, other: str) -> bool:
    """Return True if two names or addresses are of one host. It queries the resolver if needed."""
    if one.casefold() == other.casefold() or (is_loopback(one) and is_loopback(other)):
        return True
    return not _addresses(one).isdisjoint(_addresses(other))


def _answers(server: MBeanServer, expected: Expected) -> Answers:
    return {
        one: {
            text_of(name): _plain(server.value(name, one.attribute))
            for name in server.names(one.pattern)
        }
        for one in expected.questions
    }


def _plain(value: Any) -> object:
    return value if isinstance(value, int) else value_text(value)


def _close(connection: Any) -> None:
    # Closing is a call to the other side, which can be dead, so it runs in another thread. A live
    # broker needs the call. Otherwise it keeps a thread for every connection.
    def close() -> None:
        with suppress(Exception):  # the agent no longer uses the connection
            connection.close()
        detach()

    threading.Thread(target=close, name="close", daemon=True).start()


def _addresses(host: str) -> set[str]:
    try:
        return {str(found[4][0]) for found in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        return set()
