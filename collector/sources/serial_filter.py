"""What this process deserialises: the filter against a server that sends something else.

A broker's answers hold names, numbers, RMI's own records and the exceptions of JMX; anything else
is refused before it becomes an object.
"""

from __future__ import annotations

from typing import Final

_LANG: Final = (
    *("Object", "String", "Number", "Boolean", "Byte", "Short", "Integer", "Long"),
    *("Float", "Double", "Enum", "StackTraceElement", "Throwable", "Exception", "Error"),
    *("LinkageError", "NoClassDefFoundError", "ReflectiveOperationException"),
    *("ClassNotFoundException", "RuntimeException", "SecurityException"),
    *("IllegalArgumentException", "IllegalStateException", "NullPointerException"),
    *("ClassCastException", "ArithmeticException", "UnsupportedOperationException"),
)
_MANAGEMENT: Final = (
    *(
        "ObjectName",
        "Attribute",
        "AttributeList",
        "OperationsException",
        "JMException",
        "JMRuntimeException",
    ),
    *("InstanceNotFoundException", "AttributeNotFoundException", "MBeanException"),
    *("ReflectionException", "RuntimeMBeanException", "RuntimeErrorException"),
    "RuntimeOperationsException",
)
_LIMITS: Final = ("maxdepth=30", "maxarray=2000000", "maxrefs=20000000", "maxbytes=536870912")
_ACCEPTED: Final = (
    *(f"java.lang.{name}" for name in _LANG),
    *(f"javax.management.{name}" for name in _MANAGEMENT),
    # What comes and goes is told as notifications.
    *("javax.management.remote.NotificationResult", "javax.management.remote.TargetedNotification"),
    *("javax.management.Notification", "javax.management.MBeanServerNotification"),
    "java.util.EventObject",
    *("javax.management.remote.rmi.*", "javax.rmi.ssl.SslRMIClientSocketFactory"),
    *("java.rmi.**", "sun.rmi.**", "javax.security.auth.login.*"),
    *("java.security.GeneralSecurityException", "java.net.SocketException"),
    *("java.net.ConnectException", "java.net.InetAddress", "java.net.Inet4Address"),
    *("java.io.IOException", "java.io.ObjectStreamException", "java.io.InvalidClassException"),
    *("java.util.HashSet", "java.util.Map$Entry", "java.util.ArrayList", "java.util.Collections$*"),
)

SERIAL_FILTER: Final = ";".join((*_LIMITS, *_ACCEPTED, "!*"))
"""The value of ``jdk.serialFilter``: an allow-list."""
