"""Filters of deserialization: the classes that a response may contain, by kind of response.

Java calls a filter before it creates an object from received bytes. There are three kinds:

- ``VALUES``: attributes, notifications and exceptions. It is the filter of the whole JVM.
- ``NAMES``: a set of object names. Java hashes the elements of a set, so a class whose hash depends
  on the hashes of other objects is refused: reading sets within sets takes years.
- ``STUB``: the response of a registry or a login. Java connects to the host that a stub names, so
  only the response itself may be a stub.

The agent has no Java classes. Method handles combine Java's own filters, so that Java does not call
Python for each object.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from collector.errors import SettingError

_BOUNDS: Final = "maxdepth=30;maxarray=2000000;maxrefs=20000000;maxbytes=536870912"
_JMX: Final = (
    *("JM", "JMRuntime", "Operations", "InstanceNotFound", "AttributeNotFound", "MBean"),
    *("Reflection", "RuntimeMBean", "RuntimeOperations", "ListenerNotFound"),
)
_RMI: Final = (
    *("Access", "Connect", "ConnectIO", "Marshal", "NoSuchObject", "NotBound", "Remote", "Server"),
    *("ServerRuntime", "StubNotFound", "Unexpected", "UnknownHost", "Unmarshal"),
)
_LOGIN: Final = (
    *("Account", "AccountExpired", "AccountLocked", "AccountNotFound", "Credential"),
    *("CredentialExpired", "CredentialNotFound", "FailedLogin", "Login"),
)
_OTHER: Final = (
    *("security.GeneralSecurity", "net.Socket", "net.Connect", "io.IO", "io.UncheckedIO"),
    *("io.ObjectStream", "io.InvalidClass", "io.NotSerializable", "util.NoSuchElement"),
    *("util.ConcurrentModification", "util.concurrent.Execution", "util.concurrent.Timeout"),
)
# Classes of an exception's list of suppressed exceptions, in Java 8 and later.
_SUPPRESSED: Final = (
    *("EmptyList", "UnmodifiableCollection", "UnmodifiableList", "UnmodifiableRandomAccessList"),
)
_OPEN: Final = ("CompositeDataSupport", "CompositeType", "OpenType", "SimpleType")
VALUES: Final = (
    "java.lang.*",  # the package without subpackages: numbers, texts and exceptions
    *(f"javax.management.{name}Exception" for name in _JMX),
    *(f"java.rmi.{name}Exception" for name in _RMI),
    *(f"javax.security.auth.login.{name}Exception" for name in _LOGIN),
    *(f"java.{name}Exception" for name in _OTHER),
    *("javax.management.RuntimeErrorException", "java.rmi.ServerError"),
    *("javax.management.Attribute", "javax.management.AttributeList", "java.util.ArrayList"),
    *(f"javax.management.openmbean.{name}" for name in _OPEN),
    *("java.util.TreeMap", *(f"java.util.Collections${name}" for name in _SUPPRESSED)),
    *("javax.management.Notification", "javax.management.MBeanServerNotification"),
    *("javax.management.remote.NotificationResult", "javax.management.ObjectName"),
    *("javax.management.remote.TargetedNotification", "java.util.EventObject"),
    # Leases of remote objects that the agent has a stub of.
    *("java.rmi.dgc.Lease", "java.rmi.dgc.VMID", "java.rmi.server.UID"),
)
"""Classes of attributes, notifications and exceptions, as ``jdk.serialFilter`` has them."""


class Answer(NamedTuple):
    """Classes of a kind of response with more than values.

    Java calls the filter for the first object of each class in a stream, for each array, and for
    each reference to an earlier object of the stream.

    Attributes:
        outermost: Classes of the response itself.
        within: Classes of its content.
        repeats: True if it can have several objects of one class through references.
    """

    outermost: tuple[str, ...]
    within: tuple[str, ...]
    repeats: bool


NAMES: Final = Answer(
    ("java.util.HashSet", "java.util.Map$Entry"), ("javax.management.ObjectName",), repeats=True
)
STUB: Final = Answer(
    (
        "javax.management.remote.rmi.RMIServerImpl_Stub",
        "javax.management.remote.rmi.RMIConnectionImpl_Stub",
    ),
    (  # the last two are the abstract base classes of stubs
        "javax.rmi.ssl.SslRMIClientSocketFactory",
        "java.rmi.server.RemoteStub",
        "java.rmi.server.RemoteObject",
    ),
    repeats=False,
)
EVERY: Final = (*VALUES, *NAMES.outermost, *STUB.outermost, *STUB.within)
"""Classes of all responses, for a JVM with one filter."""


def pattern(classes: tuple[str, ...]) -> str:
    """Return a value of ``jdk.serialFilter`` that accepts only these classes, within limits."""
    return ";".join((_BOUNDS, *classes, "!*"))


def install(java: Callable[[str], Any]) -> None:
    """Set ``VALUES`` as the filter of the JVM after its start.

    Raises:
        SettingError: An option of Java already sets a filter.
    """
    handles = _Handles(java)
    check = handles.checked_by(pattern(VALUES))
    try:
        java(f"{_FILTER}$Config").setSerialFilter(handles.naming_what_is_refused(check))
    except java("java.lang.IllegalStateException"):
        raise SettingError("java.options", "an option sets jdk.serialFilter. Remove it.") from None


def filter_of(answer: Answer, java: Callable[[str], Any]) -> Any:
    """Return the java.io.ObjectInputFilter of a stream with this response."""
    handles = _Handles(java)
    within = [*map(handles.type, answer.within), *([None] if answer.repeats else [])]
    check = handles.choice(
        handles.is_one_of(within),
        handles.checked_by(f"{pattern(answer.within)};maxdepth={_DEEPEST}"),
        handles.checked_by(f"{pattern(answer.outermost)};maxdepth=1"),
    )
    return handles.naming_what_is_refused(check)


_FILTER: Final = "java.io.ObjectInputFilter"
_DEEPEST: Final = 3  # a set, a name, its text; or the base classes of a stub
_INFO: Final = f"{_FILTER}$FilterInfo"
_STATUS: Final = f"{_FILTER}$Status"
_OBJECT: Final = "java.lang.Object"
_OBJECTS: Final = "java.util.Objects"
_REASON: Final = "java.lang.IllegalArgumentException"


class _Handles:
    """Method handles of a FilterInfo, and filters made of them."""

    def __init__(self, java: Callable[[str], Any]) -> None:
        self._java = java
        self._join = java("java.lang.invoke.MethodHandles")
        self._public = self._join.publicLookup()
        self.choice = self._join.guardWithTest
        self._class = self._method(_INFO, "serialClass", "java.lang.Class").asType(
            self._signature(_OBJECT, _INFO)
        )

    def type(self, name: str) -> Any:
        """Return the java.lang.Class of a name."""
        return self._java("java.lang.Class").forName(name)

    def checked_by(self, classes: str) -> Any:
        """Return a handle for the status of a filter of patterns."""
        made = self._java(f"{_FILTER}$Config").createFilter(classes)
        return self._method(_FILTER, "checkInput", _STATUS, _INFO).bindTo(made)

    def is_one_of(self, classes: list[Any]) -> Any:
        """Return a handle that tests for these classes. Null is a reference."""
        known = self._java("java.util.HashSet")(classes)
        contains = self._method("java.util.Set", "contains", "boolean", _OBJECT).bindTo(known)
        return self._join.filterArguments(contains, 0, self._class)

    def naming_what_is_refused(self, check: Any) -> Any:
        """Return a filter that refuses with an exception that names the class."""
        status, info = self.type(_STATUS), self.type(_INFO)
        equals = self._function(_OBJECTS, "equals", "boolean", _OBJECT, _OBJECT)
        is_refused = equals.bindTo(self._java(_STATUS).REJECTED)
        named = self.choice(
            is_refused.asType(self._signature("boolean", _STATUS)),
            self._join.dropArguments(self._refusal(), 0, status),
            self._join.dropArguments(self._join.identity(status), 1, info),
        )
        proxies = self._java("java.lang.invoke.MethodHandleProxies")
        combined = self._join.foldArguments(named, check)
        return proxies.asInterfaceInstance(self.type(_FILTER), combined)

    def _refusal(self) -> Any:
        thrown = self._join.throwException(self.type(_STATUS), self.type(_REASON))
        text = self._signature("java.lang.Void", "java.lang.String")
        void = text.changeReturnType(self._java("java.lang.Void").TYPE)
        reason = self._public.findConstructor(self.type(_REASON), void)
        as_text = self._function(_OBJECTS, "toString", "java.lang.String", _OBJECT)
        for step in (reason, as_text, self._class):
            thrown = self._join.filterArguments(thrown, 0, step)
        return thrown

    def _method(self, owner: str, name: str, *types: str) -> Any:
        return self._public.findVirtual(self.type(owner), name, self._signature(*types))

    def _function(self, owner: str, name: str, *types: str) -> Any:
        return self._public.findStatic(self.type(owner), name, self._signature(*types))

    def _signature(self, *types: str) -> Any:
        boolean = self._java("java.lang.Boolean").TYPE
        classes = (boolean if name == "boolean" else self.type(name) for name in types)
        return self._java("java.lang.invoke.MethodType").methodType(*classes)
