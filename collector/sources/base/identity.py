"""Identity check of a source: the expected identity, and the MBeans that report the real one."""

import time
from typing import Final, NamedTuple

from collector.catalogue.entries import Role
from collector.errors import IdentityError
from collector.model import Identity
from collector.sources.base.beans import Answers, Question, keys_of
from collector.sources.base.lake_limits import lake_name

_LATEST_MS: Final = 2**53  # no JVM has a later start time
_YOUNG_SECONDS: Final = 60

STARTED: Final = Question("java.lang:type=Runtime", "StartTime")
"""Start time of the JVM in milliseconds. It changes with a restart."""
_BROKER: Final = Question("kafka.server:type=app-info,id=*", "Version")
_CLIENT: Final = Question("kafka.*:type=app-info,id=*", "Version")
_CLUSTERS: Final = (
    Question("kafka.server:type=KafkaServer,name=ClusterId", "Value"),
    Question("kafka.server:type=ControllerServer,name=ClusterId", "Value"),
)


class Expected(NamedTuple):
    """The identity that a source should have.

    Attributes:
        role: Role of the JVM.
        node: Node ID, or the configured name of a client JVM. None: any (not for clients).
        cluster: Cluster ID. None: any. Required if the JVM does not report it.
    """

    role: Role
    node: str | None = None
    cluster: str | None = None

    @property
    def questions(self) -> tuple[Question, ...]:
        """MBean attributes that identify a JVM."""
        return (STARTED, self._info, *_CLUSTERS)

    def identity(self, where: str, answers: Answers) -> Identity:
        """Return the identity of the JVM, from the answers to ``questions``.

        Raises:
            IdentityError: The JVM has another identity than expected, or does not report it.
        """
        versions = answers.get(self._info, {})
        started_ms = next(iter(answers.get(STARTED, {}).values()), None)
        if self.role == "client":
            node = self.node or where
            if not versions:  # one MBean per client, all with the version of the same jar
                raise IdentityError(f"{where}: the JVM has no Kafka client, or not yet")
        else:
            node = keys_of(next(iter(versions), "")).get("id", "")
            if len(versions) != 1:
                raise IdentityError(f"{where}: {self._why_unnamed(answers, started_ms)}")
        clusters = [value for one in _CLUSTERS for value in answers.get(one, {}).values()]
        cluster = clusters[0] if clusters else self.cluster
        if not isinstance(cluster, str):
            raise IdentityError(f"{where}: the JVM has no cluster id; set source.cluster")
        if not isinstance(started_ms, int) or not 0 <= started_ms < _LATEST_MS:
            raise IdentityError(f"{where}: the JVM does not report its start time")
        version = versions[min(versions)]
        known = version if isinstance(version, str) else None
        is_combined = len(clusters) == len(_CLUSTERS)
        identity = Identity(cluster, node, known, int(started_ms) * 1000, is_combined)
        self.check(where, identity)
        return identity

    def check(self, where: str, identity: Identity) -> None:
        """Check that an identity is the expected one.

        Raises:
            IdentityError: The node or cluster differs, or a name is invalid.
        """
        for what, wanted, found in (
            ("cluster", self.cluster, identity.cluster),
            ("node", self.node, identity.node),
            ("version", None, identity.kafka_version or ""),
        ):
            if lake_name(found) != found:
                raise IdentityError(f"{where}: {found!a:.80} is not a valid name of a {what}")
            if wanted is not None and wanted != found:
                raise IdentityError(
                    f"{where}: {what} {found:.80} responds instead of {wanted}; correct the address"
                    f" or the {what} id in the configuration"
                )

    def _why_unnamed(self, answers: Answers, started_ms: object) -> str:
        """Return why the JVM does not have the MBean of one broker or controller."""
        # Kafka registers app-info at the end of its start, and the cluster ID at the beginning.
        if not answers.get(self._info) and any(answers.get(one) for one in _CLUSTERS):
            why = f"the {self.role} is starting or stopping: it has no MBean app-info"
            return f"{why}. If this lasts, check the filters of its MBeans"
        if isinstance(started_ms, int) and time.time() - started_ms / 1000 < _YOUNG_SECONDS:
            return f"the JVM has just started. Wait until the {self.role} has MBeans"
        why = "the JVM does not have the MBeans of one Kafka broker or controller"
        return f"{why}. Correct the address"

    @property
    def _info(self) -> Question:
        return _CLIENT if self.role == "client" else _BROKER
