"""The connection to Admin that sources share: its Java client is made, configured, replaced."""

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
"""Share of a read's time for one call, so that there is time for a second."""
_PATIENCE_SECONDS: Final = 30.0
_MAKING_SECONDS: Final = 2.0
_HANDLERS: Final = ("org.apache.kafka.", "software.amazon.msk.auth.iam.IAMClientCallbackHandler")
"""Classes that a properties file may name to answer for it: Kafka's own, and the login of MSK."""
_SETTINGS: Final = {
    "client.id": "jmxlake",
    "reconnect.backoff.max.ms": "1000",
    # Off: its own beans, which nothing reads, and telemetry for the broker. Both take memory.
    "metric.reporters": "",
    "auto.include.jmx.reporter": "false",
    "enable.metrics.push": "false",
}


class AdminConnection:
    """Makes a client when it is needed, and replaces one that does not answer any more.

    An Admin client answers any number of calls at once: one that hangs delays no other. So a call
    without an answer is no reason to close the client while others are answered; nor is an error
    that the cluster answered, such as a missing permission. The next client is made when the
    backoff allows it.

    Args:
        make: Makes a client.
        where: What it speaks to, for messages.
        timeout_seconds: How long connecting, and how long one read, may take.
        credentials: The file that holds them, if any does.
        clock: Seconds that never jump.
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
        self._answered = 0.0
        self._users = set[object]()

    def join(self, user: object) -> None:
        """One more uses it from now on."""
        self._users.add(user)

    def leave(self, user: object) -> None:
        """One needs it no more; the last of them closes it."""
        self._users.discard(user)
        if not self._users:
            self.close()

    @contextmanager
    def client(self) -> Iterator[KafkaAdmin]:
        """A client for one call; an error of the call decides whether the client is kept.

        Raises:
            SourceError: No client is made now: one was given up a moment ago, and why.
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
            if is_answer(error) or (timed_out and not silent):
                raise
            if self._current is not client:  # what fails for several at once failed once
                raise SourceTimeoutError(f"{self.where}: the client was given up") from None
            if not timed_out:  # who did not answer made us wait already
                self._backoff.failed(why)
            self.close()
            raise

    def close(self) -> None:
        """Give the client up, without waiting for it; the connection may be used again."""
        client, self._current = self._current, None
        if client is not None:
            threading.Thread(target=client.close, name="close admin", daemon=True).start()

    def _made(self) -> KafkaAdmin:
        # Name servers and logins may hang: a thread waits only briefly for another's new client.
        if not self._making.acquire(timeout=_MAKING_SECONDS):
            raise SourceTimeoutError(
                f"{self.where}: a client is still being made; does a name server or a login hang?"
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
        self._current, self._answered = client, self._clock()
        return client


@cache
def connect(
    bootstrap: str, properties_file: Path | None = None, timeout_seconds: float = 5
) -> AdminConnection:
    """A connection that several sources share: for the same arguments it is the same one.

    The JVM must have been started with the broker's jars (collector.sources.java.jvm.start).

    Args:
        bootstrap: Addresses, comma-separated.
        properties_file: Java properties of a Kafka client: security and the like.
        timeout_seconds: How long connecting, and how long one read, may take.
    """
    one_try = timeout_seconds * ONE_TRY

    def make() -> KafkaAdmin:
        return KafkaAdmin(java_admin(bootstrap, properties_file, one_try), one_try)

    return AdminConnection(make, f"Admin of {bootstrap}", timeout_seconds, properties_file)


def java_admin(bootstrap: str, properties_file: Path | None, timeout_seconds: float) -> Any:
    """A Java Admin client; see ``connect`` for the arguments.

    Raises:
        SourceRefusedError: The file cannot be read, or names a class that may not answer.
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
                f"Admin client: {key} in {properties_file}: only Kafka's own classes and"
                f" {_HANDLERS[1]} may be named"
            )
    properties.setProperty("bootstrap.servers", bootstrap)
    for key in ("default.api", "request", "socket.connection.setup"):
        properties.setProperty(f"{key}.timeout.ms", str(round(timeout_seconds * 1000)))
    for key, value in _SETTINGS.items():
        properties.setProperty(key, value)
    return java("org.apache.kafka.clients.admin.Admin").create(properties)
