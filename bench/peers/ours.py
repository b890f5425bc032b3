from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bench.beans import families
from collector.agent.scraper import Scraper
from collector.clock import SystemClock
from collector.config.schema import Jmx
from collector.config.units import Duration
from collector.sources.identity import Expected
from collector.sources.java import jvm
from collector.sources.jmx.remote import JmxSource
from demo.node import JMX_ROLE

if TYPE_CHECKING:
    from pathlib import Path

    from demo.node import Node

_TIMEOUT = Duration("30s")


class Jmxlake:
    """Our source over RMI with a password, families in a row, as the agent reads them."""

    name = "jmxlake (jmx)"

    def __init__(self, node: Node, libs: Path | None = None) -> None:
        jvm.start(libs, timeout_seconds=_TIMEOUT.seconds)
        self.pid: int | None = os.getpid()
        self._families = families()
        source = JmxSource(
            Expected("broker", str(node.plan.id)),
            Jmx(
                node.jmx_port or 0,
                user=JMX_ROLE,
                password_file=node.password_file,
                timeout=_TIMEOUT,
            ),
        )
        self._scraper = Scraper(source, SystemClock())

    def prepare(self) -> None:
        """It keeps its connection itself."""

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
