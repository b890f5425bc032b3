from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bench.peers.http import HttpPeer
from demo.jars import jolokia_jar

if TYPE_CHECKING:
    from bench.beans import Beans


def agent(port: int) -> str:
    """The JVM option that loads it into a broker."""
    return f"-javaagent:{jolokia_jar()}=host=127.0.0.1,port={port},discoveryEnabled=false"


class Jolokia(HttpPeer):
    """Jolokia's agent in the broker, asked for all beans in one POST."""

    name = "Jolokia, bulk"

    def __init__(self, port: int, beans: Beans) -> None:
        requests = [
            {
                "type": "read",
                "mbean": pattern,
                "attribute": attributes,
                "config": {"ignoreErrors": True},  # a bean that is not there yet is no failure
            }
            for pattern, attributes in beans.items()
        ]
        super().__init__(self.name, port, "/jolokia/", body=json.dumps(requests).encode())
