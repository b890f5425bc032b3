"""Kafka's Admin API: its settings."""

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec

from collector.errors import SettingError
from collector.settings import RESTART, TIMEOUT, Duration
from collector.sources.base.transport import Transport


class Admin(Transport, frozen=True):
    """Kafka's Admin API.

    Attributes:
        bootstrap: ``HOST:PORT`` of one or more brokers, separated by commas.
        libs: Folder of the broker's jars, such as ``/opt/kafka/libs``.
        iam_jar: JAR of AWS's aws-msk-iam-auth with its dependencies, for the login AWS_MSK_IAM.
            None: disabled.
        properties_file: Security settings, in the format of a Kafka client's properties file.
        timeout: Timeout per request.
        groups: Groups whose lag and lost records are counted (KIP-490): patterns of their names, by
            pattern of a topic's name. ``!`` excludes. The first pattern that fits a topic applies.
            Rules of the topics' owners in the lake have priority.
        groups_default: Groups that count in topics without a rule: ``all`` or ``none``.
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
    groups_default: Literal["all", "none"] = "all"

    def check(self, key: str, cluster: str | None) -> None:  # noqa: ARG002, D102
        for address in map(str.strip, self.bootstrap.split(",")):
            # Kafka accepts and ignores a listener's protocol before the address.
            place = urlsplit(f"//{address.rpartition('//')[2]}")
            try:
                fits = bool(place.hostname and place.port)
            except ValueError:
                fits = False
            if not fits:
                why = f"expected HOST:PORT, or several separated by commas, got {address!r}"
                ipv6 = "(write an IPv6 address in brackets: [::1]:9092)"
                raise SettingError(f"{key}.bootstrap", f"{why} {ipv6}")
