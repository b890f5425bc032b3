"""A JVM with a JMX port: one RMI connection that stays open, found without JNDI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jpype

from collector.errors import SourceRefusedError
from collector.sources import jvm
from collector.sources.cap import DEFAULT_CAP
from collector.sources.session import Expected, MBeanSource

if TYPE_CHECKING:
    from pathlib import Path


class JmxSource(MBeanSource):
    """A broker, controller or client JVM that is read over RMI.

    Only an RMI registry at host and port is asked, never a URL: a JNDI look-up could be led to
    load code from elsewhere. The JVM must have been started (collector.sources.jvm.start).

    Args:
        expected: Who should answer.
        host: Host of the JMX port.
        port: The port, ``com.sun.management.jmxremote.port``.
        user: User of JMX, if it asks for one; the read-only role is enough.
        password_file: File whose first line is the password, or with a line ``user password``;
            read anew at every connect. Not the JVM's own file: since Java 9 the JVM replaces the
            passwords in it by hashes at the first login (``jmxremote.password.toHashes``).
        tls: Whether the RMI registry speaks TLS (``jmxremote.registry.ssl``).
        timeout_seconds: How long connecting, and how long one read, may take.
        cap: Most series per family.
    """

    def __init__(  # noqa: PLR0913 - each is a key of the configuration
        self,
        expected: Expected,
        host: str,
        port: int,
        *,
        user: str | None = None,
        password_file: Path | None = None,
        tls: bool = False,
        timeout_seconds: float = 5,
        cap: int = DEFAULT_CAP,
    ) -> None:
        super().__init__(f"JMX of {host}:{port}", expected, timeout_seconds, cap)
        self._host = host
        self._port = port
        self._user = user
        self._password_file = password_file
        self._tls = tls

    def _connect(self) -> Any:
        environment = jvm.java("java.util.HashMap")()
        environment.put("jmx.remote.x.client.connection.check.period", jpype.JLong(0))
        if self._user is not None:
            strings = jpype.JArray(jvm.java("java.lang.String"))
            environment.put("jmx.remote.credentials", strings([self._user, self._password()]))
        locate = jvm.java("java.rmi.registry.LocateRegistry")
        if self._tls:
            factory = jvm.java("javax.rmi.ssl.SslRMIClientSocketFactory")()
            registry = locate.getRegistry(self._host, self._port, factory)
        else:
            registry = locate.getRegistry(self._host, self._port)
        connector = jvm.java("javax.management.remote.rmi.RMIConnector")(
            registry.lookup("jmxrmi"), environment
        )
        connector.connect()
        return connector

    def _password(self) -> str:
        if self._password_file is None:
            return ""
        try:
            lines = self._password_file.read_text("utf-8").splitlines()
        except OSError as error:
            raise SourceRefusedError(
                f"{self._where}: cannot read the password file {self._password_file}:"
                f" {error.strerror}"
            ) from None
        for line in lines:
            name, *rest = line.split()[:4] or [""]
            if name == self._user and len(rest) == 1:
                return rest[0]
            if name == self._user and len(rest) > 1:
                raise SourceRefusedError(
                    f"{self._where}: {self._password_file} holds a hash, as JVMs make of their own"
                    " password file: give us another file, with the password"
                )
        return lines[0].strip() if lines else ""
