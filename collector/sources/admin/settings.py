"""Settings of Kafka's Admin API."""

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from collector.errors import SettingError
from collector.settings import RESTART, TIMEOUT, Duration
from collector.sources.base.transport import Transport


class Admin(Transport, frozen=True):
    """How Kafka's Admin client reaches the cluster.

    Attributes:
        bootstrap: A broker's ``HOST:PORT``, or several with commas between.
        libs: Folder of the broker's jars, such as ``/opt/kafka/libs``.
        iam_jar: AWS's aws-msk-iam-auth with all it needs, for the login AWS_MSK_IAM; None: off.
        properties_file: Security settings, as a Kafka client's properties file has them.
        timeout: For one request.
        groups: By pattern of a topic's name, patterns of the groups whose lag and lost records are
            counted in it (KIP-490); ``!`` before one excludes. The first that fits a topic counts.
    """

    opens = "admin.source:opened"
    via = "admin"
    roles = frozenset({"broker", "cluster"})
    slow = ("offsets", "tiered_offsets")
    needs_java = True

    bootstrap: str
    libs: Annotated[Path, RESTART]
    iam_jar: Annotated[Path | None, RESTART] = None
    properties_file: Path | None = None
    timeout: Annotated[Duration, TIMEOUT] = Duration("5s")
    groups: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)

    def check(self, key: str, cluster: str | None) -> None:  # noqa: ARG002, D102
        for address in map(str.strip, self.bootstrap.split(",")):
            # A listener's protocol may stand before it: Kafka takes no notice.
            place = urlsplit(f"//{address.rpartition('//')[2]}")
            try:
                fits = bool(place.hostname and place.port)
            except ValueError:
                fits = False
            if not fits:
                why = f"expected HOST:PORT, or several with commas between, got {address!r}"
                ipv6 = "(an IPv6 address stands in brackets: [::1]:9092)"
                raise SettingError(f"{key}.bootstrap", f"{why} {ipv6}")
