"""The cluster as Kafka's Admin API tells it, read by the agent of one broker."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, TypeVar

from collector.errors import ConfigError, IdentityError, SourceTimeoutError
from collector.samples import Answer, Identity
from collector.sources import admin_readings as readings
from collector.sources.admin_client import KafkaAdmin, create
from collector.sources.admin_connection import AdminConnection
from collector.sources.admin_offsets import OffsetReader
from collector.sources.cap import within_cap
from collector.sources.java_errors import source_error
from collector.sources.lags import UNTIERED, untiered
from collector.sources.unchanged import Unchanged
from collector.sources.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from collector.catalogue import Family
    from collector.samples import Notice, Offsets
    from collector.sources.admin_records import Cluster, Topics
    from collector.sources.values import Values

_Result = TypeVar("_Result")

_ONE_TRY: Final = 0.4  # of the whole time: there is time for a second


def connect(
    bootstrap: str, properties_file: Path | None, timeout_seconds: float, *, controllers: bool
) -> AdminConnection:
    """A connection that several sources may share; see AdminSource for its arguments."""
    one_try = timeout_seconds * _ONE_TRY
    return AdminConnection(
        lambda: create(bootstrap, properties_file, one_try, controllers=controllers),
        _where(bootstrap),
        properties_file,
    )


class AdminSource:
    """Leaders, offsets, quotas and topology, as far as they are one broker's to report.

    The JVM must have been started with the broker's jars (collector.sources.jvm.start).

    Args:
        node: Node id of the broker whose agent this is.
        bootstrap: Addresses, comma-separated.
        cluster: Cluster id that must answer; None: whoever answers.
        controllers: Whether the addresses are controllers' (``bootstrap.controllers``).
        properties_file: Java properties of a Kafka client: security and the like.
        timeout_seconds: How long connecting, and how long one read, may take.
        connection: The client to share with other sources of the same cluster; by default its own.
    """

    def __init__(
        self,
        node: int,
        bootstrap: str,
        *,
        cluster: str | None = None,
        controllers: bool = False,
        properties_file: Path | None = None,
        timeout_seconds: float = 5,
        connection: AdminConnection | None = None,
    ) -> None:
        self._node = node
        self._expected_cluster = cluster
        self._controllers = controllers
        self._timeout_seconds = timeout_seconds
        self._where = _where(bootstrap)
        self._connection = connection or connect(
            bootstrap, properties_file, timeout_seconds, controllers=controllers
        )
        self._worker = Worker()
        self._client: KafkaAdmin | None = None
        self._identity: Identity | None = None
        self._unchanged = Unchanged()
        self._topics: Topics | None = None
        self._limits: readings.Limits | None = None
        self._configs: readings.Configs = {}
        self._topic_ids: dict[str, str] = {}
        self._failed_groups: Mapping[str, str] = {}
        self._offset_reader = OffsetReader(node, lambda: time.time_ns() // 1_000_000)

    def identify(self) -> Identity:
        """Connect if needed and say who answers; costs nothing while connected.

        Admin does not tell a broker's start time or version: they are 0 and None.

        Raises:
            SourceError: It cannot be reached, refused us, or is of another cluster.
        """
        if self._identity is None:
            cluster = self._guarded(self._ask_cluster)
            self._identity = Identity(cluster, str(self._node), None, 0)
        return self._identity

    def is_broker(self) -> bool | None:
        """Whether the cluster knows this node; None: it does not say which brokers are fenced.

        Raises:
            SourceError: The answer did not come, or not in time.
        """
        cluster = self._guarded(lambda client: client.cluster())
        if self._node in (*cluster.live, *cluster.fenced):
            return True
        return False if cluster.with_fenced else None

    def read(self, family: Family) -> Answer:
        """Read one family.

        Raises:
            SourceError: The answer did not come, or not in time; the connection is given up.
            ConfigError: The family is none of Admin's.
        """
        read = {
            "leaders": lambda: self._leaders(family.metrics[0].name),
            "offsets": self._offsets,
            "tiered_offsets": self._tiered_offsets,
            "quota_limits": self._quota_limits,
            "topology": self._topology,
        }.get(family.name)
        if read is None:
            raise ConfigError(f"family {family.name} cannot be read via admin")
        self.identify()
        return within_cap(read(), family.cap)

    def close(self) -> None:
        """Give up the connection; the source may be used again."""
        self._forget()
        self._connection.close()

    def _forget(self) -> None:
        self._worker.close()
        self._client = self._identity = None

    def _guarded(self, ask: Callable[[KafkaAdmin], _Result]) -> _Result:
        until = time.monotonic() + self._timeout_seconds
        try:
            return self._worker.within(
                self._timeout_seconds, self._where, lambda: self._ask(ask, until)
            )
        except Exception as error:  # noqa: BLE001 - Java's are all told apart in source_error
            self._forget()
            raise source_error(self._where, error) from None

    def _ask(self, ask: Callable[[KafkaAdmin], _Result], until: float) -> _Result:
        # Any broker may be picked to answer, also one that hangs and is not fenced yet. Kafka's
        # Admin client notices that only when the whole call is over time (it ignores
        # request.timeout.ms while nothing else happens), and then picks another.
        one_try = self._timeout_seconds * _ONE_TRY
        with self._connection.lease() as admin:
            client = self._client
            if client is None or client.admin is not admin:
                client = KafkaAdmin(admin, one_try, controllers=self._controllers)
                self._client = client
            while True:
                try:
                    return ask(client)
                except Exception as error:
                    timed_out = isinstance(source_error(self._where, error), SourceTimeoutError)
                    if not timed_out or time.monotonic() + one_try > until:
                        raise

    def _ask_cluster(self, client: KafkaAdmin) -> str:
        cluster = client.cluster().id
        if self._expected_cluster not in (None, cluster):
            raise IdentityError(
                f"{self._where}: cluster {cluster} answers, not {self._expected_cluster}:"
                " correct the address or the cluster id in the configuration"
            )
        return cluster

    def _leaders(self, metric: str) -> Answer:
        topics, cluster = self._guarded(self._ask_leaders)
        for_all = readings.reports_for_all(cluster, self._node)
        before, self._topics = self._topics, topics
        notices = (
            readings.leader_changes(before, topics, self._node, for_all=for_all) if before else []
        )
        values = readings.leaderless(topics, cluster, self._node, metric)
        return self._answer({metric: values}, notices)

    def _ask_leaders(self, client: KafkaAdmin) -> tuple[Topics, Cluster]:
        cluster = client.cluster()
        return client.topics(self._held_by(cluster)), cluster

    def _held_by(self, cluster: Cluster) -> int | None:
        """Whose topics matter: this broker's, unless it reports for all."""
        return None if readings.reports_for_all(cluster, self._node) else self._node

    def _offsets(self) -> Answer:
        found = self._guarded(self._offset_reader.read)
        notices = readings.group_failures(self._failed_groups, found.failed)
        self._failed_groups = found.failed
        return self._answer(found.values, notices, found.offsets)

    def _tiered_offsets(self) -> Answer:
        return self._answer({UNTIERED: self._guarded(self._ask_untiered)}, [])

    def _ask_untiered(self, client: KafkaAdmin) -> Values:
        led = readings.led_by(client.topics(self._node), self._node)
        configs = client.configs({partition.topic for partition in led})
        tiered = [p for p in led if readings.is_tiered(configs.get(p.topic, {}))]
        kinds = ("latestTiered", "earliest", "earliestLocal", "latest")
        return untiered(*(client.offsets(tiered, kind) for kind in kinds))

    def _quota_limits(self) -> Answer:
        cluster, limits = self._guarded(lambda client: (client.cluster(), client.quotas()))
        before, self._limits = self._limits, limits
        if not readings.reports_for_all(cluster, self._node):
            return self._answer(readings.quota_limits({}), [])
        notices = readings.quota_changes(before, limits) if before is not None else []
        return self._answer(readings.quota_limits(limits), notices)

    def _topology(self) -> Answer:
        cluster, topics, configs, ids = self._guarded(self._ask_topology)
        notices = readings.config_changes(self._configs, configs)
        for_all = readings.reports_for_all(cluster, self._node)
        if for_all:
            notices += readings.recreated(self._topic_ids, ids)
        self._configs, self._topic_ids = configs, ids
        values = readings.topology(topics, configs)
        values[readings.FENCED] = readings.fenced(cluster) if for_all else {}
        return self._answer(values, notices)

    def _ask_topology(
        self, client: KafkaAdmin
    ) -> tuple[Cluster, Topics, readings.Configs, dict[str, str]]:
        cluster = client.cluster()
        for_all = readings.reports_for_all(cluster, self._node)
        topics = {
            topic: states
            for topic, states in client.topics(self._held_by(cluster)).items()
            for state in states
            if state.partition == 0
            and (state.leader == self._node or (state.leader is None and for_all))
        }
        return cluster, topics, client.configs(topics), client.topic_ids()

    def _answer(
        self,
        values: Mapping[str, Values],
        notices: list[Notice],
        offsets: Offsets | None = None,
    ) -> Answer:
        made = tuple(
            readings.gauge(metric, found, self._unchanged) for metric, found in values.items()
        )
        beans = sum(len(found) for found in values.values())
        return Answer(made, beans, offsets=offsets, notices=tuple(notices))


def _where(bootstrap: str) -> str:
    return f"Admin of {bootstrap}"
