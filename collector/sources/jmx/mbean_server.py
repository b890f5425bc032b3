"""An MBean server over RMI, called without the layers of the JMX client.

``RMIConnector`` would unwrap every query again, and its notifications need a thread that waits for
them. Here a query is marshalled once, and what was registered since the last look is asked for in
one short call.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, Final, Literal, NamedTuple

import jpype

from collector.sources.java.jvm import java
from collector.sources.jmx.remote_call import QUERY_NAMES, called


class Comparison(NamedTuple):
    """Of an attribute with a number; false where it is missing or NaN."""

    operator: Literal["gt", "eq"]
    number: int


ABOVE_ZERO: Final = Comparison("gt", 0)
_DELEGATE: Final = "JMImplementation:type=MBeanServerDelegate"
_MOST_CHANGES: Final = 500
Kind = tuple[str, str]
"""Domain of a bean, and its key ``type``."""


class MBeanServer:
    """A connection to an MBean server; every method may raise what Java raises.

    Args:
        connection: A javax.management.remote.rmi.RMIConnection.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._next: int | None = None

    def names(self, pattern: str, attribute: str = "", comparison: Comparison | None = None) -> Any:
        """The java.util.Set of the names that match, and whose attribute compares so."""
        query = _query(attribute, comparison) if comparison else None
        return called(self._connection, QUERY_NAMES, _name(pattern), query, None)

    def value(self, name: Any, attribute: str) -> Any:
        """The value of one attribute; ``name`` as text or as ObjectName."""
        return self._connection.getAttribute(_name(name), attribute, None)

    def values(self, name: Any, attributes: Sequence[str]) -> dict[str, Any]:
        """The values of those of the attributes that the bean has and can tell."""
        strings = jpype.JArray(java("java.lang.String"))(list(attributes))
        found = self._connection.getAttributes(_name(name), strings, None)
        return {str(one.getName()): one.getValue() for one in found}

    def watch(self) -> None:
        """Begin to take note of beans that come and go; the read-only role may do that."""
        self._connection.addNotificationListeners(
            jpype.JArray(java("javax.management.ObjectName"))([_name(_DELEGATE)]),
            jpype.JArray(java("java.rmi.MarshalledObject"))([None]),
            jpype.JArray(java("javax.security.auth.Subject"))([None]),
        )
        self._next = self._newest()

    def changed(self) -> frozenset[Kind] | None:
        """Kinds of beans that came or went since the last call; None: too many to tell."""
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


@lru_cache(maxsize=1024)  # patterns, and the few beans that are asked again and again
def _object_name(text: str) -> Any:
    return java("javax.management.ObjectName")(text)


@cache
def _query(attribute: str, comparison: Comparison) -> Any:
    """As it is sent: to marshal it again would cost more than the question."""
    query = java("javax.management.Query")
    number = query.value(jpype.JLong(comparison.number))
    expression = getattr(query, comparison.operator)(query.attr(attribute), number)
    return java("java.rmi.MarshalledObject")(expression)
