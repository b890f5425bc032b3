"""Ways to read the same beans of one broker, ours among them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol


class Peer(Protocol):
    """A tool that reads a broker; what it needs was started before.

    Attributes:
        name: How the table calls it.
        pid: The process beside the broker that does its work, if there is one that stays.
    """

    name: str
    pid: int | None

    def prepare(self) -> None:
        """What comes before a scrape and is not timed: a connection that is still open."""
        ...

    def scrape(self) -> None:
        """Read everything once."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


@dataclass(frozen=True)
class Target:
    """A running broker, as another process reaches it.

    Attributes:
        broker: Broker ID.
        cluster: Cluster ID.
        jmx_port: JMX port.
        password_file: File with the users and passwords of the JMX port.
        exporter_port: Port of a jmx_exporter agent that shows all beans.
    """

    broker: str
    cluster: str
    jmx_port: int
    password_file: Path
    exporter_port: int

    @classmethod
    def parse(cls, text: str) -> Target:
        """From an argument of the command line."""
        told = json.loads(text)
        return cls(**{**told, "password_file": Path(told["password_file"])})

    @property
    def jmx_password(self) -> str:
        """The password of the first user."""
        return self.password_file.read_text("utf-8").split()[1]

    def text(self) -> str:
        """As an argument of the command line."""
        return json.dumps(asdict(self), default=str)
