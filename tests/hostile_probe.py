"""Reads hostile JMX ports as an agent would, in a process of its own, and says what it cost.

Each line of standard input is a ``Case`` in JSON; for each a line of JSON says the error, the
seconds and the peak of this process's memory in MiB.

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
from typing import NamedTuple

from collector.catalogue import Family, Metric
from collector.errors import SourceError
from collector.settings import Duration
from collector.sources.base.identity import Expected
from collector.sources.java import jvm
from collector.sources.jmx.rmi_source import JmxSource
from collector.sources.transports import Jmx

TIMEOUT = 3.0


class Case(NamedTuple):
    """What is read.

    Attributes:
        port: Of which JMX server on this host.
        bean: Its bean; None: only who answers is asked.
        attributes: Those of the bean that are read.
        fresh: Whether over a connection of its own.
        password_file: A file to log in with.
    """

    port: int
    bean: str | None = None
    attributes: tuple[str, ...] = ("Value",)
    fresh: bool = False
    password_file: str | None = None


def main() -> None:
    jvm.start(timeout_seconds=TIMEOUT)
    sources: dict[int, JmxSource] = {}
    for number, line in enumerate(sys.stdin):
        case = Case(**json.loads(line))
        if not number:
            _warm_up(case)
        source = _source(case) if case.fresh else sources.setdefault(case.port, _source(case))
        started = time.monotonic()
        told: dict[str, object] = {"error": None, "outcome": "ok"}
        try:
            _read(source, case)
        except SourceError as error:
            told = {"error": str(error), "outcome": error.outcome}
        told |= {
            "port": case.port,
            "bean": case.bean,
            "seconds": time.monotonic() - started,
            "peak": _peak(),
        }
        print(json.dumps(told), flush=True)  # noqa: T201 - that is what it is for
        if case.fresh:
            source.close()
    for source in sources.values():
        source.close()


def _read(source: JmxSource, case: Case) -> None:
    source.identify()
    if case.bean is not None:
        source.read(_family(case))


def _source(case: Case) -> JmxSource:
    file = Path(case.password_file) if case.password_file else None
    timeout, user = Duration(f"{TIMEOUT:g}s"), "monitor" if file else None
    jmx = Jmx(case.port, user=user, password_file=file, timeout=timeout)
    return JmxSource(Expected("broker"), jmx)


def _warm_up(case: Case) -> None:
    until = time.monotonic() + 240
    with closing(_source(case)) as source:
        while True:
            try:
                _read(source, case)
            except SourceError:
                if time.monotonic() > until:
                    raise
            else:
                return


def _family(case: Case) -> Family:
    metrics = tuple(
        Metric(
            name=f"hostile.{name}", unit="1", description="", object=case.bean or "", attribute=name
        )
        for name in case.attributes
    )
    return Family(name="hostile", via="jmx", cadence_seconds=10, roles=("broker",), metrics=metrics)


def _peak() -> int:
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text("utf-8"))
    return int(found[1]) // 1024 if found else 0


if __name__ == "__main__":
    main()
