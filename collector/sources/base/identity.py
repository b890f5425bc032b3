"""The expected identity of a source, and the beans that give the real one."""

from typing import Final, NamedTuple

from collector.catalogue.entries import Role
from collector.errors import IdentityError
from collector.model import Identity
from collector.sources.base.beans import Answers, Question, keys_of
from collector.sources.base.lake_limits import lake_name

_LATEST_MS: Final = 2**53  # what is later is no time at which a JVM started

STARTED: Final = Question("java.lang:type=Runtime", "StartTime")
"""In milliseconds; it changes with a restart."""
_BROKER: Final = Question("kafka.server:type=app-info,id=*", "Version")
_CLIENT: Final = Question("kafka.*:type=app-info,id=*", "Version")
_CLUSTERS: Final = (
    Question("kafka.server:type=KafkaServer,name=ClusterId", "Value"),
    Question("kafka.server:type=ControllerServer,name=ClusterId", "Value"),
)


class Expected(NamedTuple):
    """The identity that a source should have.

    Attributes:
        role: What runs in the JVM.
        node: Node id, or the name given to a client JVM; None: any (not for clients).
        cluster: Cluster id; None: any. Needed where the JVM does not report its own.
    """

    role: Role
    node: str | None = None
    cluster: str | None = None

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions whose answers identify a JVM."""
        return (STARTED, self._info, *_CLUSTERS)

    def identity(self, where: str, answers: Answers) -> Identity:
        """The identity of the JVM, from the answers to ``questions``.

        Raises:
            IdentityError: It is another than expected, or does not tell who it is.
        """
        versions = answers.get(self._info, {})
        if self.role == "client":
            node = self.node or where
            if not versions:  # one for each client: of the same jar
                raise IdentityError(f"{where}: this JVM has no Kafka client, or not yet")
        else:
            node = keys_of(next(iter(versions), "")).get("id", "")
            if len(versions) != 1:
                raise IdentityError(f"{where}: this JVM is no Kafka broker or controller")
        clusters = [value for one in _CLUSTERS for value in answers.get(one, {}).values()]
        cluster = clusters[0] if clusters else self.cluster
        if not isinstance(cluster, str):
            raise IdentityError(f"{where}: it does not report its cluster id: configure it")
        started_ms = next(iter(answers.get(STARTED, {}).values()), None)
        if not isinstance(started_ms, int) or not 0 <= started_ms < _LATEST_MS:
            raise IdentityError(f"{where}: it does not report when its JVM started")
        version = versions[min(versions)]
        known = version if isinstance(version, str) else None
        identity = Identity(cluster, node, known, int(started_ms) * 1000)
        self.check(where, identity)
        return identity

    def check(self, where: str, identity: Identity) -> None:
        """Make sure that it is the one who was expected.

        Raises:
            IdentityError: It is another node or of another cluster, or reports an invalid name.
        """
        for what, wanted, found in (
            ("cluster", self.cluster, identity.cluster),
            ("node", self.node, identity.node),
            ("version", None, identity.kafka_version or ""),
        ):
            if lake_name(found) != found:
                raise IdentityError(f"{where}: its {what} is {found!a:.80}: that is no name")
            if wanted is not None and wanted != found:
                raise IdentityError(
                    f"{where}: {what} {found:.80} answers, not {wanted}: correct the address"
                    f" or the {what} id in the configuration"
                )

    @property
    def _info(self) -> Question:
        return _CLIENT if self.role == "client" else _BROKER
