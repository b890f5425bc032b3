"""Who should answer, and the beans that tell who does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from collector.errors import IdentityError
from collector.sources.names import told

if TYPE_CHECKING:
    from collector.samples import Identity

BROKER_INFO: Final = "kafka.server:type=app-info,id=*"
CLIENT_INFO: Final = "kafka.*:type=app-info,id=*"
CLUSTER_ID: Final = (
    "kafka.server:type=KafkaServer,name=ClusterId",
    "kafka.server:type=ControllerServer,name=ClusterId",
)
RUNTIME: Final = "java.lang:type=Runtime"
"""Its StartTime, in milliseconds, tells a restart."""
IN_SYNC_COUNT: Final = "kafka.cluster:type=Partition,name=InSyncReplicasCount,topic=*,partition=*"
"""Only a leader knows who is in sync: a broker leads the partitions where this is above zero."""
LATEST_MS: Final = 2**53
"""What is later is no time at which a JVM started."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Who should answer.

    Attributes:
        role: ``broker``, ``controller`` or ``client``.
        node: Node id, or the name given to a client JVM; None: whoever answers (not for clients).
        cluster: Cluster id; None: whoever answers. Needed where the JVM does not tell its own.
    """

    role: Literal["broker", "controller", "client"]
    node: str | None = None
    cluster: str | None = None

    def check(self, where: str, identity: Identity) -> None:
        """Make sure that it is the one who was expected.

        Raises:
            IdentityError: It is another node or of another cluster, or tells what is no name.
        """
        for what, wanted, found in (
            ("cluster", self.cluster, identity.cluster),
            ("node", self.node, identity.node),
            ("version", None, identity.kafka_version or ""),
        ):
            if told(found) != found:
                raise IdentityError(f"{where}: its {what} is {found!a:.80}: that is no name")
            if wanted is not None and wanted != found:
                raise IdentityError(
                    f"{where}: {what} {found:.80} answers, not {wanted}: correct the address"
                    f" or the {what} id in the configuration"
                )
