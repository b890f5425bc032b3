from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bench.beans import families
from collector.clock import SystemClock
from collector.scraper import Scraper
from collector.secret import Secret
from collector.sources import jvm
from collector.sources.expected import Expected
from collector.sources.jmx import JmxSource
from demo.node import JMX_ROLE

if TYPE_CHECKING:
    from pathlib import Path

    from demo.node import Node

_TIMEOUT_SECONDS = 30.0


class Jmxlake:
    """Our source over RMI with a password, families in a row, as the agent reads them."""

    name = "jmxlake (jmx)"

    def __init__(self, node: Node, libs: Path | None = None) -> None:
        jvm.start(libs, timeout_seconds=_TIMEOUT_SECONDS)
        self.pid: int | None = os.getpid()
        self._families = families()
        source = JmxSource(
            Expected("broker", str(node.plan.id)),
            "127.0.0.1",
            node.jmx_port or 0,
            user=JMX_ROLE,
            secret=Secret(node.password_file),
            timeout_seconds=_TIMEOUT_SECONDS,
        )
        self._scraper = Scraper(source, SystemClock())

    def scrape(self) -> int:
        beans = 0
        for family in self._families:
            scrape = self._scraper.attempt(family, family.cadence_us)
            if scrape.answer is None:
                raise RuntimeError(f"{family.name} was not read: {scrape.error}")
            beans += scrape.answer.beans
        return beans

    def close(self) -> None:
        self._scraper.close()
