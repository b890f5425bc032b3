"""Pages of exporters that do not show the beans of a JVM, by the names on them."""

from collections.abc import Iterable
from typing import Final

_OF: Final = {
    "confluent_kafka_": "Confluent Cloud's export, which has no beans",
    "kminion_": "KMinion",
    "kafka_consumergroup_": "kafka_exporter, or Strimzi's Kafka Exporter",
    "kafka_topic_partition_": "kafka_exporter, or Strimzi's Kafka Exporter",
    "kafka_exporter_build_info": "kafka_exporter, or Strimzi's Kafka Exporter",
    "kafka_lag_exporter_": "Kafka Lag Exporter",
    "burrow_": "Burrow",
    "strimzi_": "a Strimzi operator",
    "redpanda_": "Redpanda",
    "vectorized_": "Redpanda",
    "otelcol_": "an OpenTelemetry collector",
    "target_info": "an OpenTelemetry collector",
    "node_": "node_exporter",
    "windows_": "windows_exporter",
    "container_": "cAdvisor",
    "machine_": "cAdvisor",
    "kube_": "kube-state-metrics",
    "aws_": "a CloudWatch exporter",
    "prometheus_": "Prometheus itself",
    "jmxlake_": "a jmxlake agent itself",
}
"""By how names begin."""
_OF_ANY: Final = ("process_", "go_", "python_", "promhttp_", "scrape_", "jvm_", "up")
"""Names that say nothing of what a program exports, only what it is written in."""
_OF_JMX_EXPORTER: Final = "jmx_"  # it always counts its own scrapes
_OF_BEANS: Final = ("kafka_", "java_lang_")


def other_page(names: Iterable[str]) -> str | None:
    """Return what a page without any wanted name seems to be; None: a page of beans all the same.

    Args:
        names: The names on it.
    """
    first, others, is_of_beans = "", set[str](), False
    for name in names:
        if name.startswith(_OF_JMX_EXPORTER):
            return None
        if not first or (first.startswith(_OF_ANY) and not name.startswith(_OF_ANY)):
            first = name
        if not others:
            others |= {program for begin, program in _OF.items() if name.startswith(begin)}
        is_of_beans = is_of_beans or name.startswith(_OF_BEANS)
    if not others and is_of_beans:
        return None
    if not first:
        return "the page is empty"
    as_of = f", as the page of {min(others)} does" if others else ""
    return f"no bean of Kafka is on this page; it begins with {first[:60]!a:.80}{as_of}"
