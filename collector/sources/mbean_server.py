"""An MBean server over RMI, called without the layers of the JMX client.

``RMIConnector`` would unwrap every query anew, and its notifications need a thread that waits for
them. Here a query is marshalled once, and what was registered since the last look is asked for in
one short call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import jpype

from collector.sources.jvm import java

if TYPE_CHECKING:
    from collections.abc import Sequence


class Comparison(NamedTuple):
    """A condition on an attribute; of one that is not there none is true.

    Both are false of NaN.
    """

    operator: Literal["gt", "eq"]
    value: float


ABOVE_ZERO: Final = Comparison("gt", 0)
ZERO: Final = Comparison("eq", 0)
_DELEGATE: Final = "JMImplementation:type=MBeanServerDelegate"
_MOST_CHANGES: Final = 500
Kind = tuple[str, str]
"""What a bean is registered as: its domain and its key ``type``."""


class MBeanServer:
    """A connection to an MBean server; every method may raise what Java raises.

    Args:
        connection: A javax.management.remote.rmi.RMIConnection.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._patterns: dict[str, Any] = {}
        self._queries: dict[tuple[str, Comparison], Any] = {}
        self._next: int | None = None

    def names(self, pattern: str, attribute: str = "", comparison: Comparison | None = None) -> Any:
        """The java.util.Set of the names that match, and whose attribute compares so."""
        query = self._query(attribute, comparison) if comparison else None
        return self._connection.queryNames(self.name(pattern), query, None)

    def value(self, name: Any, attribute: str) -> Any:
        """The value of one attribute; ``name`` as text or as ObjectName."""
        return self._connection.getAttribute(self.name(name), attribute, None)

    def values(self, name: Any, attributes: Sequence[str]) -> dict[str, Any]:
        """The values of those of the attributes that the bean has and can tell."""
        strings = jpype.JArray(java("java.lang.String"))(list(attributes))
        found = self._connection.getAttributes(self.name(name), strings, None)
        return {str(one.getName()): one.getValue() for one in found}

    def watch(self) -> None:
        """Begin to take note of beans that come and go; the read-only role may do that."""
        self._connection.addNotificationListeners(
            jpype.JArray(java("javax.management.ObjectName"))([self.name(_DELEGATE)]),
            jpype.JArray(java("java.rmi.MarshalledObject"))([None]),
            jpype.JArray(java("javax.security.auth.Subject"))([None]),
        )
        self._next = self._newest()

    def changed(self) -> frozenset[Kind] | None:
        """Kinds of beans that came or went since the last call; None: too many to tell."""
        if self._next is None:
            return None
        told = self._connection.fetchNotifications(self._next, jpype.JInt(_MOST_CHANGES), 0)
        notices = told.getTargetedNotifications()
        if told.getEarliestSequenceNumber() > self._next or len(notices) >= _MOST_CHANGES:
            self._next = self._newest()
            return None
        self._next = told.getNextSequenceNumber()
        beans = (notice.getNotification().getMBeanName() for notice in notices)
        return frozenset((str(b.getDomain()), str(b.getKeyProperty("type"))) for b in beans)

    def name(self, text: Any) -> Any:
        """The ObjectName of a text; what is one already stays."""
        if not isinstance(text, str):
            return text
        known = self._patterns.get(text)
        if known is None:
            known = self._patterns[text] = java("javax.management.ObjectName")(text)
        return known

    def _newest(self) -> Any:
        return self._connection.fetchNotifications(-1, jpype.JInt(0), 0).getNextSequenceNumber()

    def _query(self, attribute: str, comparison: Comparison) -> Any:
        known = self._queries.get((attribute, comparison))
        if known is None:
            query = java("javax.management.Query")
            compare = query.gt if comparison.operator == "gt" else query.eq
            whole = comparison.value == int(comparison.value)
            value = jpype.JLong(int(comparison.value)) if whole else jpype.JDouble(comparison.value)
            expression = compare(query.attr(attribute), query.value(value))
            known = java("java.rmi.MarshalledObject")(expression)
            self._queries[attribute, comparison] = known
        return known
