"""Kafka's Admin API as a source, for the agent of one broker or of a whole cluster."""

import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeVar

from collector.catalogue import Family
from collector.catalogue.entries import Delays
from collector.errors import ConfigError, IdentityError, SourceTimeoutError
from collector.model import Answer, Identity, Notice, Offsets
from collector.sources.admin import readings
from collector.sources.admin.admin_connection import ONE_TRY, AdminConnection, connect
from collector.sources.admin.client import Cluster, KafkaAdmin, Topics
from collector.sources.admin.offsets import OffsetReader
from collector.sources.admin.watched_groups import GroupRules, WatchedGroups, shared
from collector.sources.base.calls import Worker
from collector.sources.base.error_mapping import source_error
from collector.sources.base.identity import Expected
from collector.sources.base.readings import Readings, Values, answer_of, split
from collector.sources.transports import Admin

_Result = TypeVar("_Result")

ALL: Final = "all"
"""Node of a source that reports for all brokers."""
_MEMORY: Final = ("metrics.num.samples", "metrics.sample.window.ms")
_REFRESH: Final = "remote.log.manager.task.interval.ms"


class _Last(NamedTuple):
    """The last answers, for detecting changes. ``limits`` None: not read yet."""

    topics: Topics
    limits: readings.Limits | None
    configs: readings.Configs
    topic_ids: dict[str, str]
    failed_groups: dict[str, str]
    hidden: frozenset[int]
    rejected: dict[str, str] = {}  # noqa: RUF012 - never changed
    failure: str | None = None


class _FamilyValues(NamedTuple):
    """The result of one read: values by metric, cluster changes, and the next ``_Last``.

    ``cluster`` is the last request, so it shows that no other cluster answered the others.
    """

    values: Mapping[str, Values]
    last: _Last
    notices: list[Notice]
    cluster: Cluster
    offsets: Offsets | None = None
    held_back: frozenset[str] | None = None


class AdminSource:
    """Leaders, offsets, quotas and topology that the agent of one broker reports.

    Args:
        node: Node ID of the agent's broker. None: the agent reports for all brokers.
        connection: Connection, which other sources of the same cluster can share.
        cluster: Expected cluster ID. None: any.
        rules: Groups that count per topic.
        watched: Current rules of the topics' owners.
    """

    def __init__(
        self,
        node: int | None,
        connection: AdminConnection,
        cluster: str | None = None,
        rules: GroupRules | None = None,
        watched: WatchedGroups | None = None,
    ) -> None:
        self._node, self._connection = node, connection
        self._expected = cluster
        self._worker = Worker()
        self._identity: Identity | None = None
        self._readings = Readings()
        self._watched, self._rules = watched or WatchedGroups(), rules or GroupRules()
        self._forget()

    def _forget(self) -> None:
        """Drop the last answers. Answers of another cluster are not compared with them."""
        self._last = _Last({}, None, {}, {}, {}, frozenset())
        self._cluster = Cluster("", (), ())
        self._offset_reader = OffsetReader(
            self._node, lambda: time.time_ns() // 1_000_000, self._rules, self._watched
        )

    def identify(self) -> Identity:
        """Return the identity of the cluster; connect if necessary.

        The Admin API does not have a start time or version of a broker: they are 0 and None.

        Raises:
            SourceError: The cluster cannot be reached, refused the agent, or is another cluster.
        """
        if self._identity is None:
            self._connection.join(self)
            cluster = self._guarded(lambda client: self._checked(client.cluster(), self._expected))
            if cluster.id != self._cluster.id:
                self._forget()
            self._cluster, self._identity = cluster, self._identity_of(cluster)
        return self._identity

    def cluster(self) -> Cluster:
        """Return the current cluster with all its brokers.

        Raises:
            SourceError: The request failed or took too long.
        """
        return self._guarded(lambda client: client.cluster())

    def delays(self) -> Delays:
        """Return the delays of MBeans that this broker's settings cause.

        Raises:
            SourceError: The request failed, took too long or is not authorized.
        """
        node, names = self._node, (*_MEMORY, _REFRESH)
        if node is None:
            return Delays()  # the agent does not read MBeans of its brokers
        settings = self._guarded(lambda client: client.broker_settings(node, names))
        samples, length_ms, refresh_ms = (int(settings.get(name, 0)) for name in names)
        return Delays(samples * length_ms * 1000, refresh_ms * 1000)

    def read(self, family: Family) -> Answer:
        """Read one family. Everything in the answer is newer than the request.

        Raises:
            SourceError: The read failed or took too long, or another cluster has replaced this one
                at its address. The connection is closed.
            ConfigError: The Admin API does not provide the family.
        """
        read = {
            "leaders": lambda client: self._leaders(client, family.metrics[0].name),
            "partitions": self._partitions,
            "offsets": self._offsets,
            "tiered_offsets": self._tiered_offsets,
            "quota_limits": self._quota_limits,
            "topology": self._topology,
        }.get(family.name)
        if read is None:
            raise ConfigError(f"the Admin API does not provide family {family.name}")
        found = self._read_from(self.identify().cluster, read)
        self._last, self._cluster = found.last, found.cluster
        made = tuple(
            self._readings.reading(metric, *split(found.values[metric.name]))
            for metric in family.metrics
            if metric.name in found.values
        )
        return answer_of(
            made, family.cap, offsets=found.offsets, notices=tuple(found.notices),
            held_back=found.held_back,
        )  # fmt: skip

    def close(self) -> None:
        """Leave the connection. The source can be used again."""
        self._worker.close()
        self._identity = None
        self._connection.leave(self)

    def _guarded(self, ask: Callable[[KafkaAdmin], _Result]) -> _Result:
        where, seconds = self._connection.where, self._connection.timeout_seconds
        until = time.monotonic() + seconds
        try:
            return self._worker.within(seconds, lambda: where, lambda: self._ask(ask, until))
        except Exception as error:  # noqa: BLE001 - source_error maps Java's
            self._identity = None
            raise source_error(where, error) from None

    def _ask(self, ask: Callable[[KafkaAdmin], _Result], until: float) -> _Result:
        # Kafka's Admin client can choose a broker that hangs and is not fenced yet. It detects that
        # only at the end of the call's timeout, because it ignores request.timeout.ms while it has
        # no other events. Then it chooses another broker.
        one_try = self._connection.timeout_seconds * ONE_TRY
        while True:
            try:
                with self._connection.client() as client:
                    return ask(client)
            except Exception as error:
                why = source_error(self._connection.where, error)
                if not isinstance(why, SourceTimeoutError) or time.monotonic() + one_try > until:
                    raise

    def _read_from(
        self, cluster: str, read: Callable[[KafkaAdmin], _FamilyValues]
    ) -> _FamilyValues:
        """Read, and refuse the answers of another cluster: the client reconnects to any."""

        def checked(client: KafkaAdmin) -> _FamilyValues:
            found = read(client)
            self._checked(found.cluster, cluster)
            return found

        try:
            return self._guarded(checked)
        except IdentityError:
            self._forget()  # the reader of offsets has used the answers
            raise

    def _checked(self, cluster: Cluster, expected: str | None) -> Cluster:
        check = Expected("cluster", cluster=expected).check
        check(self._connection.where, self._identity_of(cluster))
        return cluster

    def _identity_of(self, cluster: Cluster) -> Identity:
        return Identity(cluster.id, ALL if self._node is None else str(self._node), None, 0)

    @property
    def _for_all(self) -> bool:
        """True if this agent reports for all: the previous read found so."""
        return readings.reports_for_all(self._cluster, self._node)

    def _topics(self, client: KafkaAdmin) -> tuple[Topics, dict[str, str]]:
        return client.topics(None if self._for_all else self._node)

    def _leaders(self, client: KafkaAdmin, metric: str) -> _FamilyValues:
        topics, _ = self._topics(client)
        return self._led(topics, client.cluster(), metric)

    def _partitions(self, client: KafkaAdmin) -> _FamilyValues:
        topics, _ = self._topics(client)
        configs = client.configs(readings.out_of_sync(topics))
        found = self._led(topics, client.cluster(), readings.LEADERLESS)
        under = readings.under_min_isr(topics, configs)
        return found._replace(values={**found.values, readings.UNDER_MIN_ISR: under})

    def _led(self, topics: Topics, cluster: Cluster, metric: str) -> _FamilyValues:
        node, for_all, last = self._node, self._for_all, self._last
        hidden = readings.hidden_leaders(topics, cluster)
        values = readings.leaderless(topics, node, hidden, metric, for_all=for_all)
        notices = readings.leader_changes(last.topics, topics, node, for_all=for_all)
        brokers = frozenset().union(*hidden.values())
        notices += readings.hidden_brokers(last.hidden, brokers)
        last = last._replace(topics=topics, hidden=brokers)
        return _FamilyValues({metric: values}, last, notices, cluster)

    def _offsets(self, client: KafkaAdmin) -> _FamilyValues:
        values, offsets, failed = self._offset_reader.read(client)
        notices = readings.group_failures(self._last.failed_groups, failed)
        last = self._last._replace(failed_groups=failed)
        return _FamilyValues(values, last, notices, client.cluster(), offsets)

    def _tiered_offsets(self, client: KafkaAdmin) -> _FamilyValues:
        topics, _ = client.topics(self._node)
        leaders = readings.leaders(topics).items()
        led = [one for one, leader in leaders if readings.leads(self._node, leader)]
        configs = client.configs({partition.topic for partition in led})
        tiered = [p for p in led if readings.is_tiered(configs.get(p.topic, {}))]
        kinds = ("latestTiered", "earliest", "earliestLocal", "latest")
        values = readings.untiered(*(client.offsets(tiered, kind) for kind in kinds))
        held = frozenset(t for t, config in configs.items() if readings.holds_uploads_back(config))
        found = {readings.UNTIERED: values}
        return _FamilyValues(found, self._last, [], client.cluster(), held_back=held)

    def _quota_limits(self, client: KafkaAdmin) -> _FamilyValues:
        limits, before, for_all = client.quotas(), self._last.limits, self._for_all
        notices = [] if before is None or not for_all else readings.quota_changes(before, limits)
        values = readings.quota_limits(limits if for_all else {})
        last = self._last._replace(limits=limits)
        return _FamilyValues(values, last, notices, client.cluster())

    def _topology(self, client: KafkaAdmin) -> _FamilyValues:
        (described, ids), for_all = self._topics(client), self._for_all
        topics = {
            topic: states
            for topic, states in described.items()
            for state in states
            if state.partition == 0
            and (readings.leads(self._node, state.leader) or (state.leader is None and for_all))
        }
        configs, cluster = client.configs(topics), client.cluster()
        notices = readings.config_changes(self._last.configs, configs)
        owners, last = self._watched.owners, self._last
        notices += readings.unread_table(last.failure, owners.failure)
        rejected = last.rejected
        if for_all:
            notices += readings.recreated(last.topic_ids, ids)
            rejected = owners.unmatched(described) | owners.rejected
            notices += readings.rejected_rows(last.rejected, rejected)
        values = readings.topology(topics, configs)
        if self._node is not None:
            values[readings.FENCED] = readings.fenced(cluster) if for_all else {}
        last = last._replace(
            configs=configs, topic_ids=ids, rejected=rejected, failure=owners.failure
        )
        return _FamilyValues(values, last, notices, cluster)


def opened(expected: Expected, settings: Admin) -> AdminSource:
    """Open the source with the connection that all sources of a cluster share.

    Args:
        expected: Broker of the agent. Role ``cluster``: all brokers.
        settings: Settings.
    """
    node = None if expected.role == "cluster" else int(str(expected.node))
    connection = connect(settings.bootstrap, settings.properties_file, settings.timeout.seconds)
    rules = GroupRules(settings.groups, default=settings.groups_default == "all")
    return AdminSource(node, connection, expected.cluster, rules, shared())
