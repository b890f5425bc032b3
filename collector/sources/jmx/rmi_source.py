"""A JVM that is read over one RMI connection, which stays open between reads.

``JmxSource`` opens it at a JMX port, without JNDI; ``attach.py`` in a JVM of this host without one.
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
from collector.sources.jmx import tls
from collector.sources.jmx.mbean_server import MBeanServer
from collector.sources.jmx.reader import MBeanReader
from collector.sources.jmx.remote_call import (
    LOOKUP,
    NEW_CLIENT,
    Endpoint,
    called,
    endpoint_of,
)
from collector.sources.jmx import Jmx

_IDLE_SECONDS: Final = 100.0
"""A JVM gives up a connection that was not used for two minutes: by then we have made a new one."""


class RmiSource(MBeanSource):
    """A JVM behind an RMI connection; how that is made is the subclass's part."""

    _used_at = 0.0

    @abstractmethod
    def _connect(self) -> Any:
        """Open a javax.management.remote.rmi.RMIConnection; may raise what Java raises."""

    def close(self) -> None:
        """Give up the connection; the source may be used again."""
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
            with suppress(java("java.lang.SecurityException")):  # then all is asked at every scrape
                server.watch()
        except BaseException:
            _close(connection)
            raise
        reader = MBeanReader(server, self._where, identity.kafka_version)
        return Session(identity, reader.read, connection)


class JmxSource(RmiSource):
    """A broker, controller or client JVM that is read over RMI.

    Only an RMI registry at host and port is asked, never a URL: a JNDI look-up could be led to
    load code from elsewhere. The JVM must have been started (collector.sources.java.jvm.start).

    Args:
        expected: Who should answer.
        jmx: How to reach it. The password is read again at every connect.

    Raises:
        ConfigError: A store of ``jmx.tls`` cannot be read, or holds nothing of use.
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
        stub = called(registry, LOOKUP, text("jmxrmi"), check=self._check_server)
        login = None
        user = self._jmx.user
        if user is not None:
            secret = Secret(self._jmx.password_file, self._jmx.password_env)
            login = jpype.JArray(text)([user, secret.read(self._where, user)])
        return called(stub, NEW_CLIENT, login, check=self._check_connection)

    def _check_server(self, stub: Any) -> None:
        """Note where the registry sends us; with a password only to the configured host, or by TLS.

        The registry gives the address of JMX, and any process may be the registry while the broker
        is down.
        """
        found = endpoint_of(stub, self._where)
        ours = self._jmx.tls is not None and self._jmx.tls.trust_store is not None
        guarded = self._jmx.user is None or (found.tls and ours)
        if not guarded and not is_same_host(found.host, self._jmx.host):
            raise IdentityError(
                f"{self._where}: its registry sends us, and our password, to {_shown(found.host)}:"
                f" set -Djava.rmi.server.hostname={self._jmx.host} there, or use TLS with a"
                " trust_store"
            )
        self._server = found
        self._where += _redirection(found, self._jmx)

    def _check_connection(self, stub: Any) -> None:
        """Follow a login to the host that the registry named, or to the configured one."""
        host = endpoint_of(stub, self._where).host
        if not any(is_same_host(host, known) for known in (self._server.host, self._jmx.host)):
            raise IdentityError(
                f"{self._where}: its login sends us to another host, {_shown(host)}; set"
                f" -Djava.rmi.server.hostname={self._jmx.host} there"
            )


def _redirection(found: Endpoint, jmx: Jmx) -> str:
    """Where a registry sends us, if that is not where it is itself; for messages."""
    if found.host.casefold() != jmx.host.casefold():
        there, setting = f"{_shown(found.host)}:{found.port}", "java.rmi.server.hostname"
    elif found.port != jmx.port:
        there, setting = f"port {found.port}", "com.sun.management.jmxremote.rmi.port"
    else:
        return ""
    return f" (the registry there sends us to {there}: {setting})"


def _shown(host: str) -> str:
    """The name of a host as others wrote it."""
    return "".join(one if one.isprintable() else "?" for one in host[:100])


def is_same_host(one: str, other: str) -> bool:
    """Whether two names or addresses mean one host; asks the resolver where they differ."""
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
    # Closing is a call to the other side, which may be dead: so another thread makes it. A live
    # broker needs the call, or it keeps a thread for every connection we ever had.
    def close() -> None:
        with suppress(Exception):  # the connection is not used any more
            connection.close()
        detach()

    threading.Thread(target=close, name="close", daemon=True).start()


def _addresses(host: str) -> set[str]:
    try:
        return {str(found[4][0]) for found in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        return set()
