"""A JVM that is read over one RMI connection, which stays open between reads."""

import threading
import time
from abc import abstractmethod
from contextlib import suppress
from typing import Any, Final

from collector.sources.connection.identity import Expected
from collector.sources.java.jvm import java
from collector.sources.jmx.bean_questions import Answers
from collector.sources.jmx.mbean_server import MBeanServer
from collector.sources.jmx.object_names import text_of
from collector.sources.jmx.reader import MBeanReader
from collector.sources.mbean_source import MBeanSource, Session

_IDLE_SECONDS: Final = 100.0
"""A JVM gives up a connection that was not used for two minutes: by then we have made a new one."""


class RmiSource(MBeanSource):
    """A JVM behind an RMI connection; how that is made is the subclass's part."""

    _used_at = 0.0

    @abstractmethod
    def _connect(self) -> Any:
        """Open a javax.management.remote.rmi.RMIConnection; may raise what Java raises."""

    def close(self) -> None:
        """Give up the connection; the source may be used again."""
        session = self._session
        super().close()
        if session is not None:
            _close(session.connection)

    def _opened(self) -> Session:
        now = time.monotonic()
        if now - self._used_at > _IDLE_SECONDS:
            self.close()
        self._used_at = now
        return super()._opened()

    def _open(self) -> Session:
        connection = self._connect()
        try:
            server = MBeanServer(connection)
            identity = self._expected.identity(self._where, _answers(server, self._expected))
            with suppress(java("java.lang.SecurityException")):  # then all is asked at every scrape
                server.watch()
        except BaseException:
            _close(connection)
            raise
        reader = MBeanReader(server, self._where, identity.kafka_version)
        return Session(identity, reader.read, connection)


def _answers(server: MBeanServer, expected: Expected) -> Answers:
    return {
        one: {
            text_of(name): _plain(server.value(name, one.attribute))
            for name in server.names(one.pattern)
        }
        for one in expected.questions
    }


def _plain(value: Any) -> object:
    return value if isinstance(value, int) else text_of(value)


def _close(connection: Any) -> None:
    # Closing is a call to the other side, which may be dead: so another thread makes it. A live
    # broker needs the call, or it keeps a thread for every connection we ever had.
    def close() -> None:
        with suppress(Exception):  # the connection is not used any more
            connection.close()
        java("java.lang.Thread").detach()

    threading.Thread(target=close, name="close", daemon=True).start()
