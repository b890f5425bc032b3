"""Strimzi's metrics reporter, a plugin of brokers: under which name and labels it shows a bean.

It knows Kafka's own metrics, not their beans, and names them by domain, type and name
(``YammerMetricWrapper`` and ``KafkaMetricWrapper`` of strimzi/metrics-reporter 0.2 and 0.3, names
as client_java writes them, PrometheusNaming). What other code registers as a bean, such as the
JVM's, it does not show; nor of a histogram anything but its count and some quantiles.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from collector.sources.base.beans import Question
from collector.sources.prometheus.exporter_rules import RESERVED, Shown, all_of, choices, key_values

_ILLEGAL: Final = re.compile(r"[^a-zA-Z0-9_:]")
_QUANTILES: Final = {"50thPercentile": "0.5"} | {
    f"{digits}thPercentile": f"0.{digits}" for digits in (75, 95, 98, 99, 999)
}
_OTHERS: Final = re.compile("M(in|ax|ean)|StdDev|.*Rate")
"""Attributes of Yammer's beans that are not shown."""


class Reporter(NamedTuple):
    """The reporter's configuration, as far as it decides on names.

    Attributes:
        allowlist: Expressions of names, one of which must fit; empty: all are shown.
    """

    allowlist: Sequence[re.Pattern[str]] = ()

    @property
    def labels(self) -> frozenset[str]:
        """It names no labels of its own."""
        return frozenset()

    def shown(self, question: Question, further: Iterable[str] = ()) -> list[Shown] | None:
        """As ``exporter_rules.Rules.shown``."""
        domain, keys = key_values(question.pattern)
        if not domain.startswith(("kafka.", "org.apache.kafka.")) or "*" in domain:
            return None
        chosen = choices(keys, tuple(further))
        return all_of(self._shown(domain, one, question.attribute) for one in chosen)

    def _shown(self, domain: str, keys: list[tuple[str, str]], attribute: str) -> Shown | None:
        bean = dict(keys)
        is_yammer = attribute in {"Value", "Count", *_QUANTILES}
        parts = (domain, bean.pop("type", "*"), bean.pop("name", "*") if is_yammer else attribute)
        if "*" in parts or _OTHERS.fullmatch(attribute):
            return None
        name = RESERVED.sub("", _ILLEGAL.sub("_", "_".join(parts))).lower()
        if self.allowlist and not any(one.fullmatch(name) for one in self.allowlist):
            return None
        names = {f"{name}_total", f"{name}_count"} if attribute == "Count" else {name}
        labels = {_ILLEGAL.sub("_", key): value for key, value in bean.items()}
        wildcards = [label for label, value in labels.items() if value == "*"]
        constants = {label: value for label, value in labels.items() if value != "*"}
        if attribute in _QUANTILES:
            constants["quantile"] = _QUANTILES[attribute]
        pieces = ",".join(f"{key}={value}" for key, value in keys).split("*")
        return Shown(
            frozenset(names),
            constants,
            {label: re.compile(f"(?P<w{n}>.*)", re.DOTALL) for n, label in enumerate(wildcards)},
            1.0,
            (f"{domain}:{pieces[0]}", *pieces[1:]),
            quotes=not is_yammer,
        )
