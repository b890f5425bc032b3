"""Settings of an exporter's page: jmx_exporter, or Strimzi's metrics reporter."""

from pathlib import Path
from typing import Annotated, Literal

from collector.errors import SettingError
from collector.settings import RESTART, TIMEOUT, Duration
from collector.sources.http.settings import Endpoint


class Prometheus(Endpoint, frozen=True):
    """Prometheus's jmx_exporter, in the JVM or beside it; or Strimzi's metrics reporter.

    Attributes:
        exporter: Which of them it is.
        allowlist: The reporter's ``prometheus.metrics.reporter.allowlist``: regular expressions.
        rules_file: The exporter's own configuration, by which it names what it shows; None: it has
            none, and every bean has its default name.
        staleness: How old an answer may be, where something between keeps answers for a while.
        kafka_version: What runs there, such as 4.3.1: the exporter does not say.
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
            why = f"needed: an exporter does not give its cluster's id; {command} prints it"
            raise SettingError("source.cluster", why)
