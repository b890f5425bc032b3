"""A connection to an MBean server, opened when needed and given up on any error."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from collector.errors import IdentityError
from collector.samples import Identity
from collector.sources.cap import DEFAULT_CAP
from collector.sources.java_errors import source_error
from collector.sources.jvm import java, within
from collector.sources.mbeans import MBeanReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.catalogue import Family
    from collector.samples import Answer

_Result = TypeVar("_Result")

_BROKER_INFO: Final = "kafka.server:type=app-info,id=*"
_CLIENT_INFO: Final = "kafka.*:type=app-info,id=*"
_CLUSTER_ID: Final = (
    "kafka.server:type=KafkaServer,name=ClusterId",
    "kafka.server:type=ControllerServer,name=ClusterId",
)


@dataclass(frozen=True, slots=True)
class Expected:
    """Who should answer.

    Attributes:
        role: ``broker``, ``controller`` or ``client``.
        node: Node id, or the name given to a client JVM; None: whoever answers (not for clients).
        cluster: Cluster id; None: whoever answers. Needed where the JVM does not tell its own.
    """

    role: Literal["broker", "controller", "client"]
    node: str | None = None
    cluster: str | None = None


@dataclass(frozen=True, slots=True)
class _Session:
    connector: Any
    reader: MBeanReader
    identity: Identity


class MBeanSource(ABC):
    """A JVM that is read through its MBeans; how it is reached is the subclass's part.

    Args:
        where: What is read, for messages; never holds a credential.
        expected: Who should answer.
        timeout_seconds: How long connecting, and how long one read, may take.
        cap: Most series per family.
    """

    def __init__(
        self, where: str, expected: Expected, timeout_seconds: float, cap: int = DEFAULT_CAP
    ) -> None:
        self._where = where
        self._expected = expected
        self._timeout_seconds = timeout_seconds
        self._cap = cap
        self._session: _Session | None = None

    @abstractmethod
    def _connect(self) -> Any:
        """Open a javax.management.remote.JMXConnector; may raise what Java raises."""

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
        session, self._session = self._session, None
        if session is not None:
            _close(session.connector)

    def _opened(self) -> _Session:
        if self._session is None:
            self._session = self._guarded(self._open)
        return self._session

    def _guarded(self, call: Callable[[], _Result]) -> _Result:
        try:
            return within(self._timeout_seconds, self._where, call)
        except Exception as error:  # noqa: BLE001 - Java's are all told apart in source_error
            self.close()
            raise source_error(self._where, error) from None

    def _open(self) -> _Session:
        connector = self._connect()
        try:
            connection = connector.getMBeanServerConnection()
            identity = self._identity(connection)
            self._check(identity)
        except BaseException:
            _close(connector)
            raise
        reader = MBeanReader(connection, self._where, identity.kafka_version, self._cap)
        return _Session(connector, reader, identity)

    def _identity(self, connection: Any) -> Identity:
        expected = self._expected
        started_ms = int(_attribute(connection, "java.lang:type=Runtime", "StartTime"))
        if expected.role == "client":
            names = _names(connection, _CLIENT_INFO)
            node = expected.node or self._where
        else:
            names = _names(connection, _BROKER_INFO)
            if len(names) != 1:
                raise IdentityError(f"{self._where}: this JVM is no Kafka broker or controller")
            node = str(names[0].getKeyProperty("id"))
        version = str(connection.getAttribute(names[0], "Version")) if names else None
        cluster = self._cluster(connection) or expected.cluster
        if cluster is None:
            raise IdentityError(f"{self._where}: it does not tell its cluster id: configure it")
        return Identity(cluster, node, version, started_ms * 1000)

    def _cluster(self, connection: Any) -> str | None:
        for pattern in _CLUSTER_ID:
            if _names(connection, pattern):
                return str(_attribute(connection, pattern, "Value"))
        return None

    def _check(self, identity: Identity) -> None:
        expected = self._expected
        for what, wanted, found in (
            ("cluster", expected.cluster, identity.cluster),
            ("node", expected.node, identity.node),
        ):
            if wanted is not None and wanted != found:
                raise IdentityError(
                    f"{self._where}: {what} {found} answers, not {wanted}: mend the address"
                    f" or the {what} id in the configuration"
                )


def _names(connection: Any, pattern: str) -> list[Any]:
    return list(connection.queryNames(java("javax.management.ObjectName")(pattern), None))


def _attribute(connection: Any, name: str, attribute: str) -> Any:
    return connection.getAttribute(java("javax.management.ObjectName")(name), attribute)


def _close(connector: Any) -> None:
    # Closing asks the other side, who may be dead: nobody waits for that, yet a broker that lives
    # must be told, or it keeps a thread for every connection we ever had.
    def close() -> None:
        try:
            connector.close()
        except java("java.io.IOException"):
            return
        finally:
            java("java.lang.Thread").detach()

    threading.Thread(target=close, name="close", daemon=True).start()
