"""Calls of RMI whose answer holds more than values, each read by a filter of its own.

Java's stubs give an answer away only when all of it is done: the classes in it were accepted by the
one filter of the JVM, and the host that a stub in it names has been called. Here both come later.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

from collector.errors import IdentityError
from collector.sources.java import serial_filter
from collector.sources.java.jvm import java
from collector.sources.java.serial_filter import NAMES, STUB, Answer


class Method(NamedTuple):
    """A method of a remote interface, as it is called: its number and hash, and what it answers."""

    number: int
    hash: int
    answer: Answer


LOOKUP: Final = Method(2, 4905912898345647071, STUB)
"""Remote Registry.lookup(String); its registry goes by numbers, newer interfaces by hashes."""
NEW_CLIENT: Final = Method(-1, -1089742558549201240, STUB)
"""RMIConnection RMIServer.newClient(Object)."""
QUERY_NAMES: Final = Method(-1, 9152567528369059802, NAMES)
"""Set RMIConnection.queryNames(ObjectName, MarshalledObject, Subject)."""


class Endpoint(NamedTuple):
    """Where the object of a stub is called.

    Attributes:
        host: Its host, as the stub says.
        port: Its TCP port.
        tls: Whether it is called over TLS.
    """

    host: str
    port: int
    tls: bool


def called(
    stub: Any, method: Method, *arguments: Any, check: Callable[[Any], None] | None = None
) -> Any:
    """Call a method of a remote object; may raise what Java raises.

    Args:
        stub: The java.rmi.server.RemoteObject.
        method: Its method.
        arguments: Of Java, or None.
        check: Raises where the answer must not be used. Until it returns, no host of the answer
            was called.
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
        call.getConnection().close()  # with the rest of the answer, and without its hosts
        raise
    ref.done(call)
    return read


def stub_of(content: Any) -> Any:
    """The stub that these bytes of Java hold."""
    stream = java("java.io.ObjectInputStream")(java("java.io.ByteArrayInputStream")(content))
    stream.setObjectInputFilter(_filter(STUB))
    return stream.readObject()


def endpoint_of(stub: Any, where: str) -> Endpoint:
    """Where a stub leads, as it is written to others: its text could say anything.

    Raises:
        IdentityError: It is not a stub, or of another kind than those of JMX servers.
    """
    ref: Any = stub.getRef() if isinstance(stub, java("java.rmi.server.RemoteStub")) else None
    kind = str(ref.getRefClass(None)) if ref else ""
    if kind not in ("UnicastRef", "UnicastRef2"):
        raise IdentityError(f"{where}: it answers without a stub; is it the JMX port?")
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
def _filter(answer: Answer) -> Any:
    return serial_filter.filter_of(answer, java)
