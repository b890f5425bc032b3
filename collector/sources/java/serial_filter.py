"""Which of Java's classes the agent makes into objects, by the kind of answer that it waits for.

Java asks a filter before it makes an object of what it received. There are three:

- ``VALUES``: attributes, notifications and exceptions. It is the filter of the whole JVM.
- ``NAMES``: a set of object names. Java hashes what a set holds, so nothing is accepted in it whose
  hash is made of other objects' hashes: to read sets within sets takes years.
- ``STUB``: the answer of a registry or a login. Java calls the host that a stub names, so only the
  answer itself may be a stub.

The agent ships no classes of its own. Method handles join Java's own filters, so that Java does not
call Python for each object that it reads.
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
# What an exception's list of suppressed ones is, in Java 8 and in later versions.
_SUPPRESSED: Final = (
    *("EmptyList", "UnmodifiableCollection", "UnmodifiableList", "UnmodifiableRandomAccessList"),
)
_OPEN: Final = ("CompositeDataSupport", "CompositeType", "OpenType", "SimpleType")
VALUES: Final = (
    "java.lang.*",  # of it, not of what is below it: numbers, texts and exceptions
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
    # How a JVM agrees to keep what the agent has a stub of.
    *("java.rmi.dgc.Lease", "java.rmi.dgc.VMID", "java.rmi.server.UID"),
)
"""Classes of attributes, notifications and exceptions, as ``jdk.serialFilter`` has them."""


class Answer(NamedTuple):
    """The classes of a kind of answer that holds more than values.

    Java asks about a class once for each stream, at the first object of it; then about an array
    that an object needs, and about each reference back to what the stream had before.

    Attributes:
        outermost: Classes of the answer itself, and of nothing in it.
        within: Classes of what it holds.
        repeats: Whether it may hold several objects of one class, by such references.
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
    (  # the latter two are what the stubs extend, and abstract
        "javax.rmi.ssl.SslRMIClientSocketFactory",
        "java.rmi.server.RemoteStub",
        "java.rmi.server.RemoteObject",
    ),
    repeats=False,
)
EVERY: Final = (*VALUES, *NAMES.outermost, *STUB.outermost, *STUB.within)
"""The classes of all answers, for a JVM that can have one filter only."""


def pattern(classes: tuple[str, ...]) -> str:
    """A value of ``jdk.serialFilter`` that accepts these classes only, within bounds."""
    return ";".join((_BOUNDS, *classes, "!*"))


def install(java: Callable[[str], Any]) -> None:
    """Make ``VALUES`` the filter of the JVM, which has just started.

    Raises:
        SettingError: An option of Java sets a filter, too.
    """
    handles = _Handles(java)
    check = handles.checked_by(pattern(VALUES))
    try:
        java(f"{_FILTER}$Config").setSerialFilter(handles.naming_what_is_refused(check))
    except java("java.lang.IllegalStateException"):
        raise SettingError("java.options", "an option sets jdk.serialFilter. Remove it.") from None


def filter_of(answer: Answer, java: Callable[[str], Any]) -> Any:
    """The java.io.ObjectInputFilter of a stream that brings this answer."""
    handles = _Handles(java)
    within = [*map(handles.type, answer.within), *([None] if answer.repeats else [])]
    check = handles.choice(
        handles.is_one_of(within),
        handles.checked_by(f"{pattern(answer.within)};maxdepth={_DEEPEST}"),
        handles.checked_by(f"{pattern(answer.outermost)};maxdepth=1"),
    )
    return handles.naming_what_is_refused(check)


_FILTER: Final = "java.io.ObjectInputFilter"
_DEEPEST: Final = 3  # a set, a name, its text; or what a stub's class extends
_INFO: Final = f"{_FILTER}$FilterInfo"
_STATUS: Final = f"{_FILTER}$Status"
_OBJECT: Final = "java.lang.Object"
_OBJECTS: Final = "java.util.Objects"
_REASON: Final = "java.lang.IllegalArgumentException"


class _Handles:
    """Method handles that take a FilterInfo, and the filters that they make."""

    def __init__(self, java: Callable[[str], Any]) -> None:
        self._java = java
        self._join = java("java.lang.invoke.MethodHandles")
        self._public = self._join.publicLookup()
        self.choice = self._join.guardWithTest
        self._class = self._method(_INFO, "serialClass", "java.lang.Class").asType(
            self._signature(_OBJECT, _INFO)
        )

    def type(self, name: str) -> Any:
        """The java.lang.Class of a name."""
        return self._java("java.lang.Class").forName(name)

    def checked_by(self, classes: str) -> Any:
        """The status that a filter of patterns gives."""
        made = self._java(f"{_FILTER}$Config").createFilter(classes)
        return self._method(_FILTER, "checkInput", _STATUS, _INFO).bindTo(made)

    def is_one_of(self, classes: list[Any]) -> Any:
        """Whether it asks about one of these classes; null stands for a reference."""
        known = self._java("java.util.HashSet")(classes)
        contains = self._method("java.util.Set", "contains", "boolean", _OBJECT).bindTo(known)
        return self._join.filterArguments(contains, 0, self._class)

    def naming_what_is_refused(self, check: Any) -> Any:
        """A filter whose refusal is an exception with the name of the class."""
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
        classes = (boolean if one == "boolean" else self.type(one) for one in types)
        return self._java("java.lang.invoke.MethodType").methodType(*classes)
