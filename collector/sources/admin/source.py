"""Kafka's Admin API as a source, read by the agent of one broker or of a whole cluster."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from collector.catalogue import Family
from collector.catalogue.entries import Delays
from collector.errors import ConfigError, SourceTimeoutError
from collector.model import Answer, Identity, Notice, Offsets
from collector.sources.admin import cluster_changes, readings
from collector.sources.admin.admin_connection import ONE_TRY, AdminConnection, connect
from collector.sources.admin.client import Cluster, KafkaAdmin, Topics
from collector.sources.admin.offsets import GroupRules, OffsetReader
from collector.sources.admin import Admin
from collector.sources.base.calls import Worker
from collector.sources.base.error_mapping import source_error
from collector.sources.base.identity import Expected
from collector.sources.base.readings import Readings, Values, answer_of, split

_Result = TypeVar("_Result")

ALL: Final = "all"
"""The node of a source that reports for all brokers."""
_MEMORY: Final = ("metrics.num.samples", "metrics.sample.window.ms")
_REFRESH: Final = "remote.log.manager.task.interval.ms"


class _Seen(NamedTuple):
    """The last reading, to find changes; ``limits`` None: they were not read yet."""

    topics: Topics
    limits: readings.Limits | None
    configs: readings.Configs
    topic_ids: dict[str, str]
    failed_groups: dict[str, str]
    hidden: frozenset[int]


class _FamilyValues(NamedTuple):
    """The result of one read: values by metric, changes, and the state for the next comparison."""

    values: Mapping[str, Values]
    seen: _Seen
    notices: list[Notice]
    offsets: Offsets | None = None
    held_back: frozenset[str] | None = None


class AdminSource:
    """Leaders, offsets, quotas and topology, as far as they are one broker's to report.

    Args:
        node: Node id of the broker whose agent this is; None: the agent reports for all brokers.
        connection: The client, which other sources of the same cluster may share.
        cluster: Cluster id that must answer; None: any.
        groups: Which groups count in which topics, see ``GroupRules``.
    """

    def __init__(
        self,
        node: int | None,
        connection: AdminConnection,
        cluster: str | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._node, self._connection = node, connection
        self._expected = Expected("cluster", cluster=cluster)
        self._worker = Worker()
        self._identity: Identity | None = None
        self._readings = Readings()
        self._seen = _Seen({}, None, {}, {}, {}, frozenset())
        rules = GroupRules(groups)
        self._offset_reader = OffsetReader(node, lambda: time.time_ns() // 1_000_000, rules)

    def identify(self) -> Identity:
        """Connect if needed and say who answers; costs nothing while connected.

        Admin has no start time or version of a broker: they are 0 and None.

        Raises:
            SourceError: It cannot be reached, refused us, or is of another cluster.
        """
        if self._identity is None:
            self._connection.join(self)
            self._identity = self._guarded(self._asked_identity)
        return self._identity

    def cluster(self) -> Cluster:
        """The cluster as it is now, with all its brokers.

        Raises:
            SourceError: The answer did not come, or not in time.
        """
        return self._guarded(lambda client: client.cluster())

    def delays(self) -> Delays:
        """By how much the settings of this broker make its beans late.

        Raises:
            SourceError: The answer did not come, or not in time, or we may not ask.
        """
        node, names = self._node, (*_MEMORY, _REFRESH)
        if node is None:
            return Delays()  # its brokers' beans are not read
        settings = self._guarded(lambda client: client.broker_settings(node, names))
        samples, length_ms, refresh_ms = (int(settings.get(name, 0)) for name in names)
        return Delays(samples * length_ms * 1000, refresh_ms * 1000)

    def read(self, family: Family) -> Answer:
        """Read one family; nothing of the answer is older than the question.

        Raises:
            SourceError: The answer did not come, or not in time; the connection is given up.
            ConfigError: The family is none of Admin's.
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
            raise ConfigError(f"family {family.name} cannot be read via admin")
        self.identify()
        found: _FamilyValues = self._guarded(read)
        self._seen = found.seen
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
        """Give up the connection; the source may be used again."""
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
        # Any broker may be picked to answer, also one that hangs and is not fenced yet. Kafka's
        # Admin client notices that only when the whole call is over time (it ignores
        # request.timeout.ms while nothing else happens), and then picks another.
        one_try = self._connection.timeout_seconds * ONE_TRY
        while True:
            try:
                with self._connection.client() as client:
                    return ask(client)
            except Exception as error:
                why = source_error(self._connection.where, error)
                if not isinstance(why, SourceTimeoutError) or time.monotonic() + one_try > until:
                    raise

    def _asked_identity(self, client: KafkaAdmin) -> Identity:
        node = ALL if self._node is None else str(self._node)
        identity = Identity(client.cluster().id, node, None, 0)
        self._expected.check(self._connection.where, identity)
        return identity

    def _whose(self, client: KafkaAdmin) -> tuple[Cluster, bool, int | None]:
        """The cluster, whether this broker reports for all, and the broker whose topics matter."""
        cluster = client.cluster()
        for_all = readings.reports_for_all(cluster, self._node)
        return cluster, for_all, None if for_all else self._node

    def _leaders(self, client: KafkaAdmin, metric: str) -> _FamilyValues:
        cluster, for_all, held_by = self._whose(client)
        topics, _ = client.topics(held_by)
        hidden = readings.hidden_leaders(topics, cluster)
        values = readings.leaderless(topics, self._node, hidden, metric, for_all=for_all)
        notices = cluster_changes.leader_changes(
            self._seen.topics, topics, self._node, for_all=for_all
        )
        brokers = frozenset().union(*hidden.values())
        notices += cluster_changes.hidden_brokers(self._seen.hidden, brokers)
        seen = self._seen._replace(topics=topics, hidden=brokers)
        return _FamilyValues({metric: values}, seen, notices)

    def _partitions(self, client: KafkaAdmin) -> _FamilyValues:
        found = self._leaders(client, readings.LEADERLESS)
        topics = found.seen.topics
        configs = client.configs(readings.out_of_sync(topics))
        under = readings.under_min_isr(topics, configs)
        return found._replace(values={**found.values, readings.UNDER_MIN_ISR: under})

    def _offsets(self, client: KafkaAdmin) -> _FamilyValues:
        values, offsets, failed = self._offset_reader.read(client)
        notices = cluster_changes.group_failures(self._seen.failed_groups, failed)
        return _FamilyValues(values, self._seen._replace(failed_groups=failed), notices, offsets)

    def _tiered_offsets(self, client: KafkaAdmin) -> _FamilyValues:
        topics, _ = client.topics(self._node)
        leaders = readings.leaders(topics).items()
        led = [one for one, leader in leaders if readings.leads(self._node, leader)]
        configs = client.configs({partition.topic for partition in led})
        tiered = [p for p in led if readings.is_tiered(configs.get(p.topic, {}))]
        kinds = ("latestTiered", "earliest", "earliestLocal", "latest")
        values = readings.untiered(*(client.offsets(tiered, kind) for kind in kinds))
        held = frozenset(t for t, config in configs.items() if readings.holds_uploads_back(config))
        return _FamilyValues({readings.UNTIERED: values}, self._seen, [], held_back=held)

    def _quota_limits(self, client: KafkaAdmin) -> _FamilyValues:
        _, for_all, _ = self._whose(client)
        limits, before = client.quotas(), self._seen.limits
        notices = (
            cluster_changes.quota_changes(before, limits) if for_all and before is not None else []
        )
        values = readings.quota_limits(limits if for_all else {})
        return _FamilyValues(values, self._seen._replace(limits=limits), notices)

    def _topology(self, client: KafkaAdmin) -> _FamilyValues:
        cluster, for_all, held_by = self._whose(client)
        described, ids = client.topics(held_by)
        topics = {
            topic: states
            for topic, states in described.items()
            for state in states
            if state.partition == 0
            and (readings.leads(self._node, state.leader) or (state.leader is None and for_all))
        }
        configs = client.configs(topics)
        notices = cluster_changes.config_changes(self._seen.configs, configs)
        if for_all:
            notices += cluster_changes.recreated(self._seen.topic_ids, ids)
        values = readings.topology(topics, configs)
        if self._node is not None:
            values[readings.FENCED] = readings.fenced(cluster) if for_all else {}
        return _FamilyValues(values, self._seen._replace(configs=configs, topic_ids=ids), notices)


def opened(expected: Expected, settings: Admin) -> AdminSource:
    """Open the source with the client that all sources of a cluster share.

    Args:
        expected: The broker whose agent reads it; of role ``cluster``: all brokers.
        settings: How to reach the cluster.
    """
    node = None if expected.role == "cluster" else int(str(expected.node))
    shared = connect(settings.bootstrap, settings.properties_file, settings.timeout.seconds)
    return AdminSource(node, shared, expected.cluster, settings.groups)
