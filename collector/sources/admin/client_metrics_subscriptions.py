"""Subscriptions that make clients push their metrics to brokers (KIP-714).

The agent's sources only read. Only the command ``jmxlake-agent client-metrics`` uses this module.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from collector.errors import JmxlakeError, SourceRefusedError
from collector.model import Identity
from collector.sources.admin.admin_connection import java_admin
from collector.sources.base.error_mapping import source_error
from collector.sources.base.identity import Expected
from collector.sources.java.jvm import java
from collector.sources.transports import Admin

NAME: Final = "jmxlake-throttle-time"
"""Name of the subscription that the command sets."""

_PREFIXES: Final = {
    "produce": ("org.apache.kafka.producer.produce.throttle.time.",),
    "fetch": (
        "org.apache.kafka.consumer.fetch.manager.fetch.throttle.time.",
        "org.apache.kafka.consumer.share.fetch.manager.fetch.throttle.time.",
    ),
}
"""Prefixes of the names of throttle times, by kind of request."""
_ALL: Final = "*"
_DEFAULT_INTERVAL_MS: Final = 300_000
_ADMIN: Final = "org.apache.kafka.clients.admin"
_RESOURCE: Final = "org.apache.kafka.common.config.ConfigResource"
_NOT_ALLOWED: Final = "permission denied; grant the agent's principal AlterConfigs on the cluster"
_TOO_OLD: Final = "client metrics require Kafka 3.7 or later; set admin.libs to newer jars"


class Subscription(NamedTuple):
    """A subscription of client metrics.

    Attributes:
        name: Its name.
        metrics: Prefixes of metric names; ``*`` is all metrics.
        interval_ms: Push interval of its clients, milliseconds.
        match: Selectors of clients, such as ``client_id=billing.*``; empty: all clients.
    """

    name: str
    metrics: tuple[str, ...]
    interval_ms: int
    match: tuple[str, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of request whose throttle times it requests: produce, fetch."""
        return tuple(
            kind
            for kind, prefixes in _PREFIXES.items()
            if any(_overlaps(prefix, one) for prefix in prefixes for one in self.metrics)
        )


class Subscriptions:
    """The subscriptions of a cluster. Every method sends requests.

    Args:
        admin: Java Admin client.
        where: The cluster, for error texts.
    """

    def __init__(self, admin: Any, where: str) -> None:
        self._admin, self._where = admin, where

    def identity(self) -> Identity:
        """Return the identity of the cluster."""
        return Identity(str(self._admin.describeCluster().clusterId().get()), "all", None, 0)

    def all(self) -> list[Subscription]:
        """Return all subscriptions, by name."""
        kind = self._kind()
        if hasattr(self._admin, "listConfigResources"):
            options = java(f"{_ADMIN}.ListConfigResourcesOptions")()
            listed = self._admin.listConfigResources(java("java.util.Set").of(kind), options)
        else:
            listed = self._admin.listClientMetricsResources()
        return [self._read(name) for name in sorted(str(one.name()) for one in listed.all().get())]

    def set(self, interval_ms: int, match: tuple[str, ...]) -> Subscription:
        """Set the subscription of throttle times and return it."""
        metrics = tuple(prefix for prefixes in _PREFIXES.values() for prefix in prefixes)
        self._alter(
            {
                "metrics": ",".join(metrics),
                "interval.ms": str(interval_ms),
                "match": ",".join(match) or None,
            }
        )
        return Subscription(NAME, metrics, interval_ms, match)

    def remove(self) -> bool:
        """Remove the subscription. False: it does not exist."""
        if all(one.name != NAME for one in self.all()):
            return False
        self._alter({"metrics": None, "interval.ms": None, "match": None})
        return True

    def _kind(self) -> Any:
        kind = getattr(java(f"{_RESOURCE}$Type"), "CLIENT_METRICS", None)
        if kind is None:
            raise SourceRefusedError(f"{self._where}: {_TOO_OLD}")
        return kind

    def _read(self, name: str) -> Subscription:
        resource = java(_RESOURCE)(self._kind(), name)
        config = self._admin.describeConfigs([resource]).values().get(resource).get()
        texts = {str(one.name()): str(one.value() or "") for one in config.entries()}
        interval_ms = int(texts.get("interval.ms") or _DEFAULT_INTERVAL_MS)
        metrics, match = (_parts(texts.get(key, "")) for key in ("metrics", "match"))
        return Subscription(name, metrics, interval_ms, match)

    def _alter(self, settings: Mapping[str, str | None]) -> None:
        """Set settings of the subscription; None removes a setting."""
        entry, operation = java(f"{_ADMIN}.ConfigEntry"), java(f"{_ADMIN}.AlterConfigOp")
        kinds = java(f"{_ADMIN}.AlterConfigOp$OpType")
        operations = java("java.util.ArrayList")()
        for key, value in settings.items():
            operations.add(
                operation(entry(key, value), kinds.DELETE if value is None else kinds.SET)
            )
        wanted = java("java.util.HashMap")()
        wanted.put(java(_RESOURCE)(self._kind(), NAME), operations)
        try:
            self._admin.incrementalAlterConfigs(wanted).all().get()
        except java("java.util.concurrent.ExecutionException") as error:
            if not str(error.getCause().getClass().getName()).endswith("AuthorizationException"):
                raise
            raise SourceRefusedError(f"{self._where}: {_NOT_ALLOWED}") from None


@contextmanager
def connected(settings: Admin, cluster: str | None) -> Iterator[Subscriptions]:
    """Yield the subscriptions of a cluster. The JVM must have been started.

    Args:
        settings: Settings of the Admin API.
        cluster: Expected cluster ID. None: any.

    Raises:
        SourceError: The cluster cannot be reached, refused a request, or is another cluster.
    """
    where = f"Admin of {settings.bootstrap}"
    admin = None
    try:
        admin = java_admin(settings.bootstrap, settings.properties_file, settings.timeout.seconds)
        found = Subscriptions(admin, where)
        Expected("cluster", cluster=cluster).check(where, found.identity())
        yield found
    except JmxlakeError:
        raise
    except Exception as error:  # noqa: BLE001 - source_error maps Java's
        raise source_error(where, error) from None
    finally:
        if admin is not None:
            admin.close(java("java.time.Duration").ofSeconds(1))


def _overlaps(prefix: str, metrics: str) -> bool:
    return metrics == _ALL or prefix.startswith(metrics) or metrics.startswith(prefix)


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
