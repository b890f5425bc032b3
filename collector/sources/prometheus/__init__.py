"""Exporters of MBeans, jmx_exporter and Strimzi's metrics reporter: their settings."""

import re
from pathlib import Path
from typing import Annotated, Literal

from collector.errors import SettingError
from collector.settings import RESTART, TIMEOUT, Duration
from collector.sources.http import Endpoint


class Prometheus(Endpoint, frozen=True):
    """Prometheus's jmx_exporter (Java agent or process), or Strimzi's metrics reporter.

    Attributes:
        exporter: Kind of exporter.
        allowlist: ``prometheus.metrics.reporter.allowlist`` of the reporter: regular expressions.
        rules_file: Configuration of the exporter, whose rules name its samples. None: no rules, so
            that every MBean has its default name.
        staleness: Maximum age of a response, if a proxy caches responses.
        kafka_version: Kafka version, such as 4.4.0. The exporter does not report it.
    """

    opens = "prometheus.exporter:PrometheusSource"

    exporter: Annotated[Literal["jmx_exporter", "strimzi"], RESTART] = "jmx_exporter"
    allowlist: Annotated[tuple[str, ...], RESTART] = ()
    rules_file: Annotated[Path | None, RESTART] = None
    staleness: Annotated[Duration, RESTART] = Duration("0s")
    kafka_version: Annotated[str | None, RESTART] = None
    timeout: Annotated[Duration, TIMEOUT] = Duration("10s")

    def check(self, key: str, cluster: str | None) -> None:  # noqa: D102
        super().check(key, cluster)
        if cluster is None:
            command = "`kafka-cluster.sh cluster-id --bootstrap-server HOST:PORT`"
            why = "required, because an exporter does not report the cluster ID"
            raise SettingError("source.cluster", f"{why}; {command} prints it")
        if self.allowlist and self.exporter != "strimzi":
            raise SettingError(f"{key}.allowlist", "applies only to exporter: strimzi; remove it")
        if self.rules_file is not None and self.exporter != "jmx_exporter":
            text = "applies only to exporter: jmx_exporter; remove it"
            raise SettingError(f"{key}.rules_file", text)
        try:
            for pattern in self.allowlist:
                re.compile(pattern)
        except re.error as error:
            raise SettingError(f"{key}.allowlist", f"{error}; correct it") from None
