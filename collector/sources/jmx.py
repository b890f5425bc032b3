"""A JVM with a JMX port: one RMI connection that stays open, found without JNDI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jpype

from collector.secret import Secret
from collector.sources import jvm
from collector.sources.session import MBeanSource

if TYPE_CHECKING:
    from collector.sources.expected import Expected


class JmxSource(MBeanSource):
    """A broker, controller or client JVM that is read over RMI.

    Only an RMI registry at host and port is asked, never a URL: a JNDI look-up could be led to
    load code from elsewhere. The JVM must have been started (collector.sources.jvm.start).

    Args:
        expected: Who should answer.
        host: Host of the JMX port.
        port: The port, ``com.sun.management.jmxremote.port``.
        user: User of JMX, if it asks for one; the read-only role is enough.
        secret: Its password, read anew at every connect.
        tls: Whether the RMI registry speaks TLS (``jmxremote.registry.ssl``).
        timeout_seconds: How long connecting, and how long one read, may take.
    """

    def __init__(
        self,
        expected: Expected,
        host: str,
        port: int,
        *,
        user: str | None = None,
        secret: Secret = Secret(),  # noqa: B008 - frozen
        tls: bool = False,
        timeout_seconds: float = 5,
    ) -> None:
        super().__init__(f"JMX of {host}:{port}", expected, timeout_seconds, secret.file)
        self._host = host
        self._port = port
        self._user = user
        self._secret = secret
        self._tls = tls

    def _connect(self) -> Any:
        credentials = None
        if self._user is not None:
            strings = jpype.JArray(jvm.java("java.lang.String"))
            credentials = strings([self._user, self._secret.read(self._where, self._user)])
        locate = jvm.java("java.rmi.registry.LocateRegistry")
        if self._tls:
            factory = jvm.java("javax.rmi.ssl.SslRMIClientSocketFactory")()
            registry = locate.getRegistry(self._host, self._port, factory)
        else:
            registry = locate.getRegistry(self._host, self._port)
        return registry.lookup("jmxrmi").newClient(credentials)
