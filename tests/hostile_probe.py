"""Reads hostile JMX ports as an agent would, in a process of its own, and says what it cost.

Standard input holds ``[port, bean]`` pairs; for each a line of JSON says the error, the seconds and
the peak of this process's memory in MiB. A bean that is null: only who answers is asked.

The first bean is good and is read until it answers, before anything counts: two Javas that have
just been started take seconds for the first answer on a busy machine.
"""

from __future__ import annotations

import json
import re
import sys
import time
from contextlib import closing
from pathlib import Path

from collector.catalogue import Family, Metric
from collector.config.schema import Jmx
from collector.config.units import Duration
from collector.errors import SourceError
from collector.sources.connection.identity import Expected
from collector.sources.java import jvm
from collector.sources.jmx.rmi_source import JmxSource

TIMEOUT = 3.0


def main() -> None:
    jvm.start(timeout_seconds=TIMEOUT)
    sources: dict[int, JmxSource] = {}
    cases = json.load(sys.stdin)
    _warm_up(*cases[0])
    for port, bean in cases:
        source = sources.get(port)
        if source is None:
            source = sources[port] = _source(port)
        started = time.monotonic()
        told: dict[str, object] = {"error": None, "outcome": "ok"}
        try:
            source.identify()
            if bean is not None:
                source.read(_family(bean))
        except SourceError as error:
            told = {"error": str(error), "outcome": error.outcome}
        told |= {"port": port, "bean": bean, "seconds": time.monotonic() - started, "peak": _peak()}
        print(json.dumps(told), flush=True)  # noqa: T201 - that is what it is for
    for source in sources.values():
        source.close()


def _source(port: int) -> JmxSource:
    return JmxSource(Expected("broker"), Jmx(port, timeout=Duration(f"{TIMEOUT:g}s")))


def _warm_up(port: int, bean: str) -> None:
    until = time.monotonic() + 240
    with closing(_source(port)) as source:
        while True:
            try:
                source.identify()
                source.read(_family(bean))
            except SourceError:
                if time.monotonic() > until:
                    raise
            else:
                return


def _family(bean: str) -> Family:
    metric = Metric(name="hostile.value", unit="1", description="", object=bean)
    return Family(
        name="hostile", via="jmx", cadence_seconds=10, roles=("broker",), metrics=(metric,)
    )


def _peak() -> int:
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text("utf-8"))
    return int(found[1]) // 1024 if found else 0


if __name__ == "__main__":
    main()
