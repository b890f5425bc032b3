"""Calls over RMI: to an MBean server, to a registry and to a login.

The agent does not use Java's JMX client. ``RMIConnector`` would unmarshal every query again, and
its notifications need a thread that waits for them. Here a query is marshalled once, and one short
call returns which MBeans were registered or removed.

Java's stubs return an answer only after two steps: the one filter of the JVM has accepted the
classes, and the host of a stub in it has been called. ``called`` reads each answer with a filter of
its own, and checks it before it calls a host.
"""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any, Final, Literal, NamedTuple

import jpype

from collector.errors import IdentityError
from collector.sources.java import serial_filter
from collector.sources.java.jvm import java


class Method(NamedTuple):
    """A method of a remote interface: its number and hash in a call, and the kind of its answer."""

    number: int
    hash: int
    answer: serial_filter.Answer


LOOKUP: Final = Method(2, 4905912898345647071, serial_filter.STUB)
"""Remote Registry.lookup(String). The registry uses numbers, newer interfaces use hashes."""
NEW_CLIENT: Final = Method(-1, -1089742558549201240, serial_filter.STUB)
"""RMIConnection RMIServer.newClient(Object)."""
QUERY_NAMES: Final = Method(-1, 9152567528369059802, serial_filter.NAMES)
"""Set RMIConnection.queryNames(ObjectName, MarshalledObject, Subject)."""


class Endpoint(NamedTuple):
    """Address of a stub's object.

    Attributes:
        host: Host, according to the stub.
        port: TCP port.
        tls: Whether the calls use TLS.
    """

    host: str
    port: int
    tls: bool


def called(
    stub: Any, method: Method, *arguments: Any, check: Callable[[Any], None] | None = None
) -> Any:
    """Call a method of a remote object. It can raise exceptions of Java.

    Args:
        stub: java.rmi.server.RemoteObject.
        method: Method.
        arguments: Java objects, or None.
        check: Raises an error if the answer must not be used. It runs before the agent calls a host
            that the answer names.
    """
    ref = stub.getRef()
    call = ref.newCall(stub, None, method.number, method.hash)
    stream = call.getOutputStream()
    for argument in arguments:
        stream.writeObject(argument)
    ref.invoke(call)
    answer = call.getInputStream()
    answer.setObjectInputFilter(_filter(method.answer))
    try:
        read = answer.readObject()
        if check is not None:
            check(read)
    except BaseException:
        call.getConnection().close()  # drops the rest of the answer and its hosts
        raise
    ref.done(call)
    return read


def stub_of(content: Any) -> Any:
    """Return the stub in serialized bytes of Java."""
    stream = java("java.io.ObjectInputStream")(java("java.io.ByteArrayInputStream")(content))
    stream.setObjectInputFilter(_filter(serial_filter.STUB))
    return stream.readObject()


def endpoint_of(stub: Any, where: str) -> Endpoint:
    """Return the address of a stub.

    It is read from the stub's serialized form, because its text can differ from that.

    Raises:
        IdentityError: The object is not a stub, or is not of a kind that JMX servers use.
    """
    ref: Any = stub.getRef() if isinstance(stub, java("java.rmi.server.RemoteStub")) else None
    kind = str(ref.getRefClass(None)) if ref else ""
    if kind not in ("UnicastRef", "UnicastRef2"):
        why = "the response is not a stub"
        raise IdentityError(f"{where}: {why}; check that the port is the JMX port")
    content = java("java.io.ByteArrayOutputStream")()
    written = java("java.io.ObjectOutputStream")(content)
    ref.writeExternal(written)
    written.flush()
    read = java("java.io.ObjectInputStream")(
        java("java.io.ByteArrayInputStream")(content.toByteArray())
    )
    tls = kind == "UnicastRef2" and int(read.readByte()) == 1
    return Endpoint(str(read.readUTF()), int(read.readInt()), tls)


@cache
def _filter(answer: serial_filter.Answer) -> Any:
    return serial_filter.filter_of(answer, java)


class Comparison(NamedTuple):
    """Comparison of an attribute with a number. It is false for a missing attribute and NaN."""

    operator: Literal["gt", "eq"]
    number: int


ABOVE_ZERO: Final = Comparison("gt", 0)
_DELEGATE: Final = "JMImplementation:type=MBeanServerDelegate"
_MOST_CHANGES: Final = 500
Kind = tuple[str, str]
"""Domain of an MBean, and its key ``type``."""


class MBeanServer:
    """A connection to an MBean server. Every method can raise exceptions of Java.

    Args:
        connection: javax.management.remote.rmi.RMIConnection.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._next: int | None = None

    def names(self, pattern: str, attribute: str = "", comparison: Comparison | None = None) -> Any:
        """Return a java.util.Set of the names that match a pattern and a comparison."""
        query = _query(attribute, comparison) if comparison else None
        return called(self._connection, QUERY_NAMES, _name(pattern), query, None)

    def value(self, name: Any, attribute: str) -> Any:
        """Return the value of one attribute; ``name`` is text or an ObjectName."""
        return self._connection.getAttribute(_name(name), attribute, None)

    def values(self, name: Any, attributes: Sequence[str]) -> dict[str, Any]:
        """Return the values of the attributes that the MBean has and can read."""
        strings = jpype.JArray(java("java.lang.String"))(list(attributes))
        found = self._connection.getAttributes(_name(name), strings, None)
        return {str(one.getName()): one.getValue() for one in found}

    def watch(self) -> None:
        """Subscribe to registrations and removals of MBeans. The read-only role permits it."""
        self._connection.addNotificationListeners(
            jpype.JArray(java("javax.management.ObjectName"))([_name(_DELEGATE)]),
            jpype.JArray(java("java.rmi.MarshalledObject"))([None]),
            jpype.JArray(java("javax.security.auth.Subject"))([None]),
        )
        self._next = self._newest()

    def changed(self) -> frozenset[Kind] | None:
        """Return the kinds of MBeans that were registered or removed since the last call.

        None: there were too many, or the agent is not subscribed.
        """
        if self._next is None:
            return None
        result = self._connection.fetchNotifications(self._next, jpype.JInt(_MOST_CHANGES), 0)
        notices = result.getTargetedNotifications()
        if result.getEarliestSequenceNumber() > self._next or len(notices) >= _MOST_CHANGES:
            self._next = self._newest()
            return None
        self._next = result.getNextSequenceNumber()
        beans = (notice.getNotification().getMBeanName() for notice in notices)
        return frozenset((str(b.getDomain()), str(b.getKeyProperty("type"))) for b in beans)

    def _newest(self) -> Any:
        return self._connection.fetchNotifications(-1, jpype.JInt(0), 0).getNextSequenceNumber()


def _name(name: Any) -> Any:
    return _object_name(name) if isinstance(name, str) else name


@lru_cache(maxsize=1024)  # patterns, and the few MBeans that every scrape reads
def _object_name(text: str) -> Any:
    return java("javax.management.ObjectName")(text)


@cache
def _query(attribute: str, comparison: Comparison) -> Any:
    """Return a marshalled query. Marshalling it for every scrape would cost more than the query."""
    query = java("javax.management.Query")
    number = query.value(jpype.JLong(comparison.number))
    expression = getattr(query, comparison.operator)(query.attr(attribute), number)
    return java("java.rmi.MarshalledObject")(expression)
