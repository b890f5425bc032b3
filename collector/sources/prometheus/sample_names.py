"""Names and labels of samples: how an exporter shows the MBeans of a question.

``Reporter`` has the names of Strimzi's metrics reporter, a plugin of brokers. It exports Kafka's
own metrics and not MBeans, and names them by domain, type and name (``YammerMetricWrapper`` and
``KafkaMetricWrapper`` of strimzi/metrics-reporter 0.2 and 0.3; names as client_java writes them,
PrometheusNaming). It does not export MBeans that other code registers, such as the JVM's. It
exports only the count and some quantiles of a histogram.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Final, NamedTuple

from collector.sources.base.beans import Question

RESERVED: Final = re.compile(r"(_total|_created|_bucket|_info)+$")
_PLAIN: Final = re.compile(r"[\w\-%. \t]*", re.ASCII)
_ILLEGAL: Final = re.compile(r"[^a-zA-Z0-9_:]")
_QUANTILES: Final = {"50thPercentile": "0.5"} | {
    f"{digits}thPercentile": f"0.{digits}" for digits in (75, 95, 98, 99, 999)
}
_OTHERS: Final = re.compile("M(in|ax|ean)|StdDev|.*Rate")
"""Attributes of Yammer's MBeans that the reporter does not export."""

Pairs = list[tuple[str, str]]


class Shown(NamedTuple):
    """The samples of an attribute of the MBeans that match a pattern.

    Attributes:
        names: Name of the sample; two names if it depends on the exporter's version.
        constants: Labels with the same value in all samples.
        variables: Other labels, with an expression whose groups are the wildcards by number.
        factor: Factor from the attribute's value to the sample's.
        bean: Object name, split at the wildcards.
        quotes: Whether labels have unquoted values, which Kafka quotes in an object name if
            necessary (``Sanitizer.jmxSanitize``).
    """

    names: frozenset[str]
    constants: Mapping[str, str]
    variables: Mapping[str, re.Pattern[str]]
    factor: float
    bean: tuple[str, ...]
    quotes: bool = False

    def named(self, labels: Mapping[str, str]) -> str | None:
        """Return the object name of the MBean whose sample has these labels. None: no match."""
        values: dict[str, str] = {}
        for label, expression in self.variables.items():
            found = expression.fullmatch(labels[label])
            if found is None:
                return None
            values |= found.groupdict()
        if self.quotes:
            values = {key: _quoted(value) for key, value in values.items()}
        ends = [values[f"w{number}"] for number in range(len(self.bean) - 1)]
        return "".join(piece + end for piece, end in zip(self.bean, [*ends, ""], strict=True))


def key_values(pattern: str) -> tuple[str, Pairs]:
    """Return the domain of an object name pattern, and its keys with their values."""
    domain, _, properties = pattern.partition(":")
    return domain, [
        (key, value) for key, _, value in (one.partition("=") for one in properties.split(","))
    ]


def choices(keys: Pairs, further: tuple[str, ...]) -> Iterable[Pairs]:
    """Return the possible keys of a pattern's MBeans. A pattern with ``,*`` allows further keys."""
    if keys[-1] != ("*", ""):
        return [keys]
    return [
        [*keys[:-1], *((key, "*") for key in chosen)]
        for number in range(1, len(further) + 1)
        for chosen in combinations(further, number)
    ]


def all_of(found: Iterable[Shown | None]) -> list[Shown] | None:
    """Return all samples. None: the exporter hides one of them."""
    known = list(found)
    return [one for one in known if one is not None] if None not in known else None


def _quoted(value: str) -> str:
    if _PLAIN.fullmatch(value):
        return value
    return '"' + re.sub(r'["*?\\]', r"\\\g<0>", value).replace("\n", "\\n") + '"'


class Reporter(NamedTuple):
    """Configuration of Strimzi's reporter that affects names.

    Attributes:
        allowlist: Expressions; a name must match one of them. Empty: all names.
    """

    allowlist: Sequence[re.Pattern[str]] = ()

    @property
    def labels(self) -> frozenset[str]:
        """Additional labels: none."""
        return frozenset()

    def shown(self, question: Question, further: Iterable[str] = ()) -> list[Shown] | None:
        """Return the samples of a question, as ``exporter_rules.Rules.shown``."""
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
