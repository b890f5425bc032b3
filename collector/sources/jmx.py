"""A JVM with a JMX port: one RMI connection that stays open, found without JNDI."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import jpype

from collector.errors import IdentityError
from collector.secret import Secret
from collector.sources import jvm
from collector.sources.hosts import is_same_host
from collector.sources.names import text_of
from collector.sources.session import MBeanSource

if TYPE_CHECKING:
    from collector.sections import Tls
    from collector.sources.expected import Expected


_ENDPOINT: Final = re.compile(r"endpoint:\[(?P<host>[\w.:%-]+):\d+(?P<factory>,[^\]]*)?\]")
"""In a stub's text; a false registry may write what it likes, but then it is no host either."""
_TLS: Final = ",javax.rmi.ssl.SslRMIClientSocketFactory"


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
        tls: How it speaks TLS, if it does; tls.install made it that of the JVM.
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
        tls: Tls | None = None,
        timeout_seconds: float = 5,
    ) -> None:
        super().__init__(f"JMX of {host}:{port}", expected, timeout_seconds, secret.file)
        self._host = host
        self._port = port
        self._user = user
        self._secret = secret
        self._tls = tls

    def _connect(self) -> Any:
        locate = jvm.java("java.rmi.registry.LocateRegistry")
        if self._tls is not None and self._tls.registry:
            factory = jvm.java("javax.rmi.ssl.SslRMIClientSocketFactory")()
            registry = locate.getRegistry(self._host, self._port, factory)
        else:
            registry = locate.getRegistry(self._host, self._port)
        stub = registry.lookup("jmxrmi")
        if self._user is None:
            return stub.newClient(None)
        self._check_endpoint(stub)
        strings = jpype.JArray(jvm.java("java.lang.String"))
        password = self._secret.read(self._where, self._user)
        return stub.newClient(strings([self._user, password]))

    def _check_endpoint(self, stub: Any) -> None:
        """Make sure that the password goes to the host that is configured, or over TLS.

        The registry tells where its JMX is, and anybody may be the registry while the broker is
        down.
        """
        found = _ENDPOINT.search(text_of(stub))
        host = found["host"] if found else "an address that cannot be told"
        by_tls = found is not None and _TLS in (found["factory"] or "")
        ours = self._tls is not None and self._tls.trust_store is not None
        if not (by_tls and ours) and not is_same_host(host, self._host):
            raise IdentityError(
                f"{self._where}: its registry sends us, and our password, to {host:.100}: set"
                f" -Djava.rmi.server.hostname={self._host} there, or use TLS with a trust_store"
            )
