from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bench.beans import families
from collector.agent.scrape_attempt import Scraper
from collector.model import SystemClock
from collector.settings import Duration
from collector.sources.base.identity import Expected
from collector.sources.java import jvm
from collector.sources.jmx.rmi_source import JmxSource
from collector.sources.prometheus.exporter import PrometheusSource
from collector.sources.transports import Jmx, Prometheus
from demo.node import JMX_ROLE

if TYPE_CHECKING:
    from pathlib import Path

    from bench.peers import Target
    from collector.model import Source

_TIMEOUT = Duration("30s")


class _Ours:
    """One of our sources, families in a row, as the agent reads them."""

    def __init__(self, source: Source) -> None:
        self.pid: int | None = os.getpid()
        self._families = families()
        self._scraper = Scraper(source, SystemClock())

    def prepare(self) -> None:
        """It keeps its connection itself."""

    def scrape(self) -> None:
        for family in self._families:
            scrape = self._scraper.attempt(family, family.cadence_us)
            if scrape.answer is None:
                raise RuntimeError(f"{family.name} was not read: {scrape.error}")

    def close(self) -> None:
        self._scraper.close()


class Jmxlake(_Ours):
    """Our source over RMI with a password."""

    name = "jmxlake (jmx)"

    def __init__(self, target: Target, libs: Path | None = None) -> None:
        jvm.start(libs, timeout_seconds=_TIMEOUT.seconds)
        file = target.password_file
        login = Jmx(target.jmx_port, user=JMX_ROLE, password_file=file, timeout=_TIMEOUT)
        super().__init__(JmxSource(Expected("broker", target.broker), login))


class JmxlakeByExporter(_Ours):
    """Our source over a jmx_exporter that shows all beans by its default names."""

    name = "jmxlake (prometheus)"

    def __init__(self, target: Target) -> None:
        expected = Expected("broker", target.broker, target.cluster)
        url = f"http://127.0.0.1:{target.exporter_port}/metrics"
        super().__init__(
            PrometheusSource(expected, Prometheus(url, timeout=_TIMEOUT, kafka_version="4.3.1"))
        )
