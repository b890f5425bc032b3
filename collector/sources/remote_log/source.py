"""Upload and deletion lag of each partition that a broker leads (KIP-405, KIP-963, KIP-1241).

The metadata topic has every change of a remote segment, the broker's folder its local segments, and
the Admin API leaders, log starts and settings. Between two reads the figures are exact.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from collector.catalogue import Family
from collector.errors import SourceError, SourceRefusedError, SourceTimeoutError
from collector.model import Answer, Clock, Identity, Notice, Series, SystemClock
from collector.sources.admin import admin_connection
from collector.sources.admin.client import KafkaAdmin
from collector.sources.base.calls import Worker
from collector.sources.base.error_mapping import source_error
from collector.sources.base.identity import Expected
from collector.sources.base.readings import answer_of
from collector.sources.remote_log.cluster import Cluster, ClusterReader
from collector.sources.remote_log.figures import Patience, View
from collector.sources.remote_log.local_segments import LocalLog, LogFolders, Wanted
from collector.sources.remote_log.metadata_topic import (
    TOPIC,
    Batch,
    MetadataTopic,
    TieredPartition,
    partitioner,
)
from collector.sources.remote_log.state import MOST_SEGMENTS, RemoteState, StateFile
from collector.sources.remote_log.timeline import Look, Timeline
from collector.sources.transports import Admin, RemoteLog
from lakehouse.tables import MAX_GAP_INTERVALS

_Result = TypeVar("_Result")

_MISSED_INTERVALS: Final = 2
_SAVE_US: Final = 60_000_000
_MOST_NOTICES: Final = 100


class Inputs(NamedTuple):
    """Everything that the source reads.

    Attributes:
        admin: Connection to the Admin API.
        topic: Opens a consumer of the metadata topic.
        log_of: Returns the function from a partition to its part of the metadata topic, by the
            number of parts.
        folders: Folders of the broker's logs.
        file: State at the last stop.
    """

    admin: admin_connection.AdminConnection
    topic: Callable[[], MetadataTopic]
    log_of: Callable[[int], Callable[[TieredPartition], int]]
    folders: LogFolders
    file: StateFile


class RemoteLogSource:
    """Reads the figures of one broker.

    Args:
        expected: Expected identity of the broker.
        inputs: Inputs.
        recorded_until: Returns the end of the recorded history, in microseconds. 0: no history, so
            the state is not stored.
        clock: Both clocks.
    """

    def __init__(
        self,
        expected: Expected,
        inputs: Inputs,
        recorded_until: Callable[[], int],
        clock: Clock,
    ) -> None:
        self._expected, self._inputs = expected, inputs
        self._node = int(str(expected.node))
        self._connection, self._file, self._folders = inputs.admin, inputs.file, inputs.folders
        self._recorded_until, self._clock = recorded_until, clock
        self._worker = Worker()
        self._identity: Identity | None = None
        self._topic: MetadataTopic | None = None
        self._state, self._topic_id = RemoteState(), ""
        self._timeline: Timeline | None = None
        self._cluster = ClusterReader(self._node, clock.steady_us)
        self._saved_us, self._reported_us = -_SAVE_US, 0
        self._problems: dict[Series, str] = {}
        self._file_problem = self._folder_problem = ""

    def identify(self) -> Identity:
        """Return the identity of the broker; connect if necessary.

        Raises:
            SourceError: The cluster cannot be reached, refused the agent, or is another cluster.
        """
        if self._identity is None:
            self._connection.join(self)
            cluster = self._guarded(self._by_admin(lambda client: client.cluster()))
            identity = Identity(cluster.id, str(self._node), None, 0)
            self._expected.check(self._connection.where, identity)
            self._identity = identity
        return self._identity

    def read(self, family: Family) -> Answer:
        """Return the figures and their changes since the last read.

        Raises:
            SourceError: The cluster did not respond, refused the agent, or has tiered topics and no
                metadata topic; or the topic is still being read for the first time.
        """
        if self._timeline is not None and self._timeline.has_more:
            if self._recorded_until() == self._reported_us:
                return self._taken(self._timeline, family)
            while self._timeline.has_more:  # moments are missing in the recorded history
                self._timeline.take()
        cluster = self._guarded(
            self._by_admin(lambda client: self._cluster.read(client, self._is_foreign))
        )
        timeline = self._followed(cluster, family)
        log_of = self._inputs.log_of(cluster.logs) if cluster.logs else lambda _: 0
        logs = {partition: log_of(partition) for partition in cluster.starts}
        everything = cluster.topic_ids is not None
        self._state.keep(range(cluster.logs) if everything else frozenset(logs.values()))
        batch = self._records()
        reported_us = self._recorded_until()
        at_us = max(batch.at_us, reported_us + 1, self._at_us + 1)
        look = Look(
            at_us, self._views(cluster, logs, at_us), logs, cluster.topic_ids,
            Patience(self._node, _MISSED_INTERVALS * cluster.interval_us),
        )  # fmt: skip
        timeline.start(batch.records, batch.next_offsets, look, reported_us)
        answer = self._taken(timeline, family)
        self._save()
        return replace(answer, notices=tuple(self._changed_problems()))

    def _taken(self, timeline: Timeline, family: Family) -> Answer:
        moments = timeline.take()
        self._reported_us = moments[-1].at_us
        readings = moments[-1].readings or ()
        return answer_of(readings, family.cap, moments=moments, more=timeline.has_more)

    def close(self) -> None:
        """Store the state and leave the connection. The source can be used again."""
        self._save(now=True)
        self._timeline = None
        self._drop_topic()
        self._worker.close()
        self._identity = None
        self._connection.leave(self)

    @property
    def _look(self) -> Look | None:
        """The last read, if there is one."""
        return self._timeline.look if self._timeline else None

    @property
    def _at_us(self) -> int:
        return self._look.at_us if self._look else 0

    def _followed(self, cluster: Cluster, family: Family) -> Timeline:
        """Return the timeline. The first read and another metadata topic start a new timeline."""
        if cluster.is_hidden:
            raise self._not_authorized()
        if not cluster.logs and cluster.starts:
            raise SourceError(
                f"{self._connection.where}: topics have remote storage, but the topic {TOPIC} does"
                " not exist; remove section remote_log, because the brokers use another"
                " RemoteLogMetadataManager"
            )
        if self._timeline is not None and self._topic_id == cluster.topic_id:
            return self._timeline
        stored = self._file.load(cluster.id, cluster.topic_id) if cluster.logs else {}
        self._topic_id, self._state = cluster.topic_id, RemoteState(stored)
        metrics = {metric.call: metric.name for metric in family.metrics if metric.call}
        longest_us = round(family.cadence_us * MAX_GAP_INTERVALS)
        self._timeline = Timeline(self._state, metrics, longest_us)
        return self._timeline

    def _is_foreign(self, partition: TieredPartition) -> bool:
        logs = self._state.logs.values()
        found = (log.partitions[partition] for log in logs if partition in log.partitions)
        return any(one.foreign for one in found)

    def _records(self) -> Batch:
        """Return the new records. The first read applies all but the last ones.

        Raises:
            SourceError: The first read needs more time, or the state more memory.
        """
        until_us = self._clock.steady_us() + self._connection.timeout_seconds * 1e6
        while True:
            batch = self._batch()
            if self._state.count > MOST_SEGMENTS:
                why = f"{TOPIC} has more than {MOST_SEGMENTS:,} segments for this agent"
                raise SourceError(f"{self._connection.where}: {why}; remove section remote_log")
            if self._at_us or all(log.is_read for log in self._state.logs.values()):
                return batch
            for record in batch.records:
                self._state.apply(record)
            self._state.advance(batch.next_offsets)
            self._save()
            if self._clock.steady_us() > until_us:
                left = sum(batch.ends.values()) - sum(batch.next_offsets.values())
                why = f"{TOPIC} is being read for the first time; {left:,} records are left"
                raise SourceTimeoutError(f"{self._connection.where}: {why}")

    def _batch(self) -> Batch:
        """Read new records, and note how far each partition of the topic was read."""
        offsets = {number: log.next_offset for number, log in self._state.logs.items()}
        if not offsets:
            return Batch(self._clock.wall_us(), (), {}, {}, {})
        try:
            batch = self._guarded(lambda: self._read_topic(offsets))
        except Exception:
            self._drop_topic()
            raise
        for number, first in batch.restarted.items():
            self._state.begin_again(number, first)
        for number, log in self._state.logs.items():
            log.is_read = batch.next_offsets[number] >= batch.ends[number]
        return batch

    def _read_topic(self, offsets: Mapping[int, int]) -> Batch:
        if self._topic is None:
            self._topic = self._inputs.topic()
        return self._topic.read(
            offsets, self._connection.timeout_seconds * admin_connection.ONE_TRY
        )

    def _drop_topic(self) -> None:
        topic, self._topic = self._topic, None
        if topic is not None:
            threading.Thread(target=topic.close, name="close consumer", daemon=True).start()

    def _views(
        self, cluster: Cluster, logs: Mapping[TieredPartition, int], at_us: int
    ) -> dict[TieredPartition, View]:
        before = self._look.views if self._look else {}
        wanted = {}
        for partition, start in cluster.starts.items():
            known = self._state.of(logs[partition], partition)
            copied = known.highest + 1 if known and not known.foreign else 0
            old = before[partition].local if partition in before else None
            wanted[partition] = Wanted(
                max(start, copied), cluster.rules[partition.topic].holds, old
            )
        local: dict[TieredPartition, LocalLog] = {}
        why = self._folders.problem(cluster.id, str(self._node)) if wanted else ""
        if not why:
            local, why = self._folders.read(wanted)
        self._folder_problem, since_us = why, self._at_us
        return {
            partition: View(
                start,
                local[partition].dated(since_us, at_us) if partition in local else None,
                cluster.rules[partition.topic],
                cluster.pending.get(partition),
            )
            for partition, start in cluster.starts.items()
        }

    def _changed_problems(self) -> Iterator[Notice]:
        """Yield each new problem, and each problem that has ended, once."""
        of_all = "; ".join(filter(None, (self._folder_problem, self._file_problem)))
        problems = {Series(""): of_all} if of_all else {}
        for log, partition, why in self._state.problems():
            at = Series("", TOPIC, log) if partition is None else Series("", *partition[1:])
            problems[at] = why
        before, self._problems = self._problems, problems
        changed = [at for at in sorted({*before, *problems}, key=repr)
                   if before.get(at) != problems.get(at)]  # fmt: skip
        for at in changed[:_MOST_NOTICES]:
            yield Notice("remote_log_unknown", at, before.get(at), problems.get(at))

    def _save(self, *, now: bool = False) -> None:
        is_due = now or self._clock.steady_us() - self._saved_us >= _SAVE_US
        if is_due and self._identity is not None and self._topic_id and self._recorded_until():
            self._state.forget_empty(self._look.views if self._look else ())
            at = self._identity.cluster, self._topic_id
            self._file_problem = self._file.save(*at, self._state.logs)
            self._saved_us = self._clock.steady_us()

    def _by_admin(self, ask: Callable[[KafkaAdmin], _Result]) -> Callable[[], _Result]:
        def asked() -> _Result:
            with self._connection.client() as client:
                return ask(client)

        return asked

    def _guarded(self, call: Callable[[], _Result]) -> _Result:
        where, seconds = self._connection.where, self._connection.timeout_seconds
        try:
            return self._worker.within(seconds, lambda: where, call)
        except Exception as error:  # noqa: BLE001 - source_error maps Java's
            self._identity = None
            if "TopicAuthorizationException" in type(error).__name__:
                raise self._not_authorized() from None
            raise source_error(where, error) from None

    def _not_authorized(self) -> SourceError:
        why = f"not authorized; grant its principal Read and Describe on topic {TOPIC}"
        return SourceRefusedError(f"{self._connection.where}: the agent is {why}")


def opened(
    expected: Expected,
    settings: RemoteLog,
    recorded_until: Callable[[], int],
    admin: Admin,
    spool: Path,
) -> RemoteLogSource:
    """Open the source. The local JVM must run.

    Args:
        expected: Broker of the agent.
        settings: Settings.
        recorded_until: Returns the end of the recorded history (µs).
        admin: Section ``admin``.
        spool: File of the spool. The state is a file next to it.
    """
    seconds = admin.timeout.seconds
    shared = admin_connection.connect(admin.bootstrap, admin.properties_file, seconds)

    def topic() -> MetadataTopic:
        properties: Any = admin_connection.client_properties(
            admin.bootstrap, admin.properties_file, seconds * admin_connection.ONE_TRY
        )
        return MetadataTopic(properties, clock.wall_us)

    clock, file = SystemClock(), StateFile(spool.with_name(f"{spool.name}.remote_log"))
    inputs = Inputs(shared, topic, partitioner, LogFolders(settings.log_dirs), file)
    return RemoteLogSource(expected, inputs, recorded_until, clock)
