"""Shared connection to the Admin API: it creates, configures and replaces the Java client."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

from collector.errors import SourceRefusedError, SourceTimeoutError
from collector.sources.admin.client import KafkaAdmin
from collector.sources.base.calls import Backoff
from collector.sources.base.error_mapping import is_answer, source_error
from collector.sources.java.jvm import java
from lakehouse.tables.strict_files import UnreadableFileError, read_text

ONE_TRY: Final = 0.4
"""Share of a read's time for one call, so that a second call is possible."""
_PATIENCE_SECONDS: Final = 30.0
_MAKING_SECONDS: Final = 2.0
_NO_NODE: Final = "Timed out waiting for a node assignment"
"""Kafka's text if a call waits for a broker that left the cluster (KAFKA-20673)."""
_HANDLERS: Final = ("org.apache.kafka.", "software.amazon.msk.auth.iam.IAMClientCallbackHandler")
"""Callback handlers that a properties file may name: Kafka's own classes, and the login of MSK."""
_SETTINGS: Final = {
    "client.id": "jmxlake",
    "reconnect.backoff.max.ms": "1000",
    # Disabled, because they use memory: the client's MBeans, and its telemetry for the broker.
    "metric.reporters": "",
    "auto.include.jmx.reporter": "false",
    "enable.metrics.push": "false",
}


class AdminConnection:
    """Creates a client when it is needed, and replaces a client that no longer responds.

    An Admin client runs any number of calls in parallel, so a call that hangs does not delay
    others. The connection keeps the client after a timeout if other calls succeed, and after an
    error that the cluster returned, such as a missing permission. The backoff decides when it
    creates the next client.

    A client of Kafka 4.0 or later stores the leaders of partitions. It can wait for a leader that
    left the cluster until that broker returns, while other calls succeed. A new client asks again.

    Args:
        make: Creates a client.
        where: The cluster, for error texts.
        timeout_seconds: Time limit of connecting, and of one read.
        credentials: File with the credentials, if any.
        clock: Steady clock, in seconds.
    """

    def __init__(
        self,
        make: Callable[[], KafkaAdmin],
        where: str,
        timeout_seconds: float = 5,
        credentials: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.where, self.timeout_seconds = where, timeout_seconds
        self._make, self._clock = make, clock
        self._backoff = Backoff(credentials, clock)
        self._making = threading.Lock()
        self._current: KafkaAdmin | None = None
        self._created = self._answered = 0.0
        self._users = set[object]()

    def join(self, user: object) -> None:
        """Add a user of the connection."""
        self._users.add(user)

    def leave(self, user: object) -> None:
        """Remove a user. The last one closes the connection."""
        self._users.discard(user)
        if not self._users:
            self.close()

    @contextmanager
    def client(self) -> Iterator[KafkaAdmin]:
        """Yield a client for one call. An error of the call can replace the client.

        Raises:
            SourceError: The backoff does not allow a new client now. The text has the last error.
        """
        client = self._current or self._made()
        try:
            yield client
            self._answered = self._clock()
            self._backoff.succeeded()
        except BaseException as error:
            why = source_error(self.where, error)
            timed_out = isinstance(why, SourceTimeoutError)
            silent = self._clock() - self._answered > _PATIENCE_SECONDS
            waits_for_leader = _NO_NODE in str(error) and self._answered > self._created
            if is_answer(error) or (timed_out and not (silent or waits_for_leader)):
                raise
            if self._current is not client:  # several calls of a client that fail count once
                raise SourceTimeoutError(f"{self.where}: the client was closed") from None
            if not timed_out:  # a timeout was a wait already
                self._backoff.failed(why)
            self.close()
            raise

    def close(self) -> None:
        """Close the client without waiting for it. The connection can be used again."""
        client, self._current = self._current, None
        if client is not None:
            threading.Thread(target=client.close, name="close admin", daemon=True).start()

    def _made(self) -> KafkaAdmin:
        # DNS servers and logins can hang, so a thread waits only briefly for another's client.
        if not self._making.acquire(timeout=_MAKING_SECONDS):
            raise SourceTimeoutError(
                f"{self.where}: the client is not ready yet; check whether DNS or the login hangs"
            )
        try:
            return self._current or self._new()
        finally:
            self._making.release()

    def _new(self) -> KafkaAdmin:
        self._backoff.check()
        try:
            client = self._make()
        except Exception as error:
            self._backoff.failed(source_error(self.where, error))
            raise
        self._current = client
        self._created = self._answered = self._clock()
        return client


@cache
def connect(
    bootstrap: str, properties_file: Path | None = None, timeout_seconds: float = 5
) -> AdminConnection:
    """Return the connection of these arguments, which several sources share.

    The local JVM must have been started with the broker's jars (collector.sources.java.jvm.start).

    Args:
        bootstrap: Addresses, separated by commas.
        properties_file: Java properties of a Kafka client, such as security settings.
        timeout_seconds: Time limit of connecting, and of one read.
    """
    one_try = timeout_seconds * ONE_TRY

    def make() -> KafkaAdmin:
        return KafkaAdmin(java_admin(bootstrap, properties_file, one_try), one_try)

    return AdminConnection(make, f"Admin of {bootstrap}", timeout_seconds, properties_file)


def java_admin(bootstrap: str, properties_file: Path | None, timeout_seconds: float) -> Any:
    """Create a Java Admin client; see ``client_properties``."""
    properties = client_properties(bootstrap, properties_file, timeout_seconds)
    return java("org.apache.kafka.clients.admin.Admin").create(properties)


def client_properties(bootstrap: str, properties_file: Path | None, timeout_seconds: float) -> Any:
    """Return Java properties of a Kafka client; see ``connect`` for the arguments.

    Raises:
        SourceRefusedError: The file cannot be read, or names a callback handler that is not
            allowed.
    """
    properties = java("java.util.Properties")()
    try:
        text = read_text(properties_file) if properties_file else ""
    except UnreadableFileError as error:
        raise SourceRefusedError(f"Admin client: cannot read properties_file {error}") from None
    properties.load(java("java.io.StringReader")(text))
    for key in map(str, properties.stringPropertyNames()):
        name = str(properties.getProperty(key)).strip()
        if key.endswith("callback.handler.class") and not name.startswith(_HANDLERS):
            raise SourceRefusedError(
                f"Admin client: {key} in {properties_file}: only classes of Kafka and"
                f" {_HANDLERS[1]} are allowed; correct it"
            )
    properties.setProperty("bootstrap.servers", bootstrap)
    for key in ("default.api", "request", "socket.connection.setup"):
        properties.setProperty(f"{key}.timeout.ms", str(round(timeout_seconds * 1000)))
    for key, value in _SETTINGS.items():
        properties.setProperty(key, value)
    return properties
