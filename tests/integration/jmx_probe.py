"""Connects to JMX ports as an agent would, in a process of its own, and says how it went.

A process has one JVM, and a JVM one TLS. Standard input holds a list of ``source`` sections with
the same TLS; standard output gets a list of what came of each.
"""

from __future__ import annotations

import json
import sys
import time

from collector.agent.plan import open_sources
from collector.config import loader
from collector.errors import JmxlakeError


def main() -> None:
    told = []
    for section in json.load(sys.stdin):
        started = time.monotonic()
        raw = {"source": section, "lake": {"path": "none"}, "spool": {"path": "none"}}
        try:
            source = open_sources(loader.parse(raw, "probe"))["jmx"]
            started = time.monotonic()
            found = {"node": source.identify().node}
            source.close()
        except JmxlakeError as error:
            found = {"error": type(error).__name__, "text": str(error)}
        told.append({**found, "seconds": time.monotonic() - started})
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
