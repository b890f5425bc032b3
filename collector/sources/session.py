"""A connection to an MBean server, opened when needed and given up on any error."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from collector.errors import IdentityError, SourceDataError
from collector.samples import Identity
from collector.sources.backoff import Backoff
from collector.sources.expected import BROKER_INFO, CLIENT_INFO, CLUSTER_ID, LATEST_MS, RUNTIME
from collector.sources.java_errors import source_error
from collector.sources.jvm import java
from collector.sources.mbean_server import MBeanServer
from collector.sources.mbeans import MBeanReader
from collector.sources.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from collector.catalogue import Family
    from collector.samples import Answer
    from collector.sources.expected import Expected

_Result = TypeVar("_Result")

_IDLE_SECONDS: Final = 100.0
"""A JVM gives up a connection that was not used for two minutes: by then we have made a new one."""


@dataclass(frozen=True, slots=True)
class _Session:
    connection: Any
    reader: MBeanReader
    identity: Identity


class MBeanSource(ABC):
    """A JVM that is read through its MBeans; how it is reached is the subclass's part.

    Args:
        where: What is read, for messages; never holds a credential.
        expected: Who should answer.
        timeout_seconds: How long connecting, and how long one read, may take.
        credentials: The file that holds them, if any does.
    """

    def __init__(
        self,
        where: str,
        expected: Expected,
        timeout_seconds: float,
        credentials: Path | None = None,
    ) -> None:
        self._where = where
        self._expected = expected
        self._timeout_seconds = timeout_seconds
        self._worker = Worker()
        self._backoff = Backoff(credentials)
        self._session: _Session | None = None
        self._used_at = time.monotonic()

    @abstractmethod
    def _connect(self) -> Any:
        """Open a javax.management.remote.rmi.RMIConnection; may raise what Java raises."""

    def identify(self) -> Identity:
        """Connect if needed and say who answers; costs nothing while connected.

        Raises:
            SourceError: It cannot be reached, refused us, or is another than expected.
        """
        return self._opened().identity

    def read(self, family: Family) -> Answer:
        """Read one family.

        Raises:
            SourceError: The answer did not come, or not in time; the connection is given up.
        """
        session = self._opened()
        return self._guarded(lambda: session.reader.read(family))

    def close(self) -> None:
        """Give up the connection; the source may be used again."""
        self._worker.close()
        session, self._session = self._session, None
        if session is not None:
            _close(session.connection)

    def _opened(self) -> _Session:
        now = time.monotonic()
        if now - self._used_at > _IDLE_SECONDS:
            self.close()
        self._used_at = now
        if self._session is None:
            self._session = self._backoff.attempt(lambda: self._guarded(self._open))
        return self._session

    def _guarded(self, call: Callable[[], _Result]) -> _Result:
        try:
            return self._worker.within(self._timeout_seconds, self._where, call)
        except SourceDataError:
            raise  # the connection works, and its census was dear
        except Exception as error:  # noqa: BLE001 - Java's are all told apart in source_error
            self.close()
            raise source_error(self._where, error) from None

    def _open(self) -> _Session:
        connection = self._connect()
        try:
            server = MBeanServer(connection)
            identity = self._identity(server)
            self._expected.check(self._where, identity)
            with suppress(java("java.lang.SecurityException")):  # then all is asked at every scrape
                server.watch()
        except BaseException:
            _close(connection)
            raise
        return _Session(
            connection, MBeanReader(server, self._where, identity.kafka_version), identity
        )

    def _identity(self, server: MBeanServer) -> Identity:
        expected = self._expected
        started_ms = int(server.value(RUNTIME, "StartTime"))
        if not 0 <= started_ms < LATEST_MS:
            raise IdentityError(f"{self._where}: it says that it started at {started_ms} ms")
        if expected.role == "client":
            names = list(server.names(CLIENT_INFO))  # one for each client: of the same jar
            if not names:
                raise IdentityError(f"{self._where}: this JVM has no Kafka client, or not yet")
            node = expected.node or self._where
        else:
            names = list(server.names(BROKER_INFO))
            if len(names) != 1:
                raise IdentityError(f"{self._where}: this JVM is no Kafka broker or controller")
            node = str(names[0].getKeyProperty("id"))
        version = str(server.value(names[0], "Version"))
        cluster = _cluster(server) or expected.cluster
        if cluster is None:
            raise IdentityError(f"{self._where}: it does not tell its cluster id: configure it")
        return Identity(cluster, node, version, started_ms * 1000)


def _cluster(server: MBeanServer) -> str | None:
    for name in CLUSTER_ID:
        if server.names(name):
            return str(server.value(name, "Value"))
    return None


def _close(connection: Any) -> None:
    # Closing asks the other side, who may be dead: nobody waits for that, yet a broker that lives
    # must be told, or it keeps a thread for every connection we ever had.
    def close() -> None:
        with suppress(Exception):  # whatever it is, nobody needs the connection any longer
            connection.close()
        java("java.lang.Thread").detach()

    threading.Thread(target=close, name="close", daemon=True).start()
