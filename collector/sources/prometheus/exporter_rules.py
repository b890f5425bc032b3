"""Rules of Prometheus's jmx_exporter: the names and labels of the samples of an MBean.

The exporter converts ``domain<key=value, ...><>attribute: value`` to a sample with its first
matching rule. A rule without a name, or a file without rules, means the default name. The agent
applies the same rules to each question, with a placeholder for each wildcard. The label that gets
the placeholder contains the value of that key. The code follows JmxCollector.java of jmx_exporter
1.0.1 and 1.6.0 (names as client_java writes them, PrometheusNaming), and was tested with 0.16.1,
0.20.0 and 1.0.1. The last of two equal keys counts, as in SnakeYAML.

The author of the file controls the exporter's output, so its content is trusted like the agent's
configuration. Its patterns are not trusted: Python cannot stop a regular expression that runs
forever, and it would block all threads of the agent. So ``check_time`` first applies the rules to
every MBean of the shipped catalogue, in a separate process with a limit of CPU time.
"""

import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from collector import catalogue
from collector.errors import ConfigError
from collector.sources.base.beans import Question, asked_for
from collector.sources.prometheus import sample_names
from collector.sources.prometheus.java_patterns import compiled
from collector.sources.prometheus.sample_names import Pairs, Shown
from lakehouse.tables import strict_yaml
from lakehouse.tables.strict_files import UnreadableFileError, read_text

_REFERENCE: Final = re.compile(r"\\(.)|\$([0-9]+)|\$\{([a-zA-Z][a-zA-Z0-9]*)\}", re.DOTALL)
_UNSAFE: Final = re.compile(r"[^a-zA-Z0-9:]+")
_CAPITAL: Final = re.compile(r"(?<![A-Z_])(?<!^)(?=[A-Z])")
_PLACEHOLDER: Final = re.compile(r"(?:jmxlake|73010)(\d)(?:standin|8)")
_NAMES: Final = (
    "jmxlake",
    "JMXLAKE",
    "jmx.lake",
    "jmx-lake",
    "jmx_lake_2",
    "__jmx",
    "5",
    "5040302",
)
_OTHERS: Final = {"partition": ("5", "50403"), "topic": _NAMES, "user": _NAMES, "client-id": _NAMES}
"""Names in other forms than the placeholders. The rules must treat all of them alike."""
_HIDING: Final = (
    "metricCustomizers", "includeObjectNameAttributes", "excludeObjectNameAttributes"
)  # fmt: skip

_JVM: Final = frozenset({"com.sun.management", "java.lang", "java.nio", "java.util.logging"})
"""Domains of the catalogue that ``excludeJvmMetrics`` hides."""

_MOST_SECONDS: Final = 10
"""CPU time; published rules take less than one second."""

_Keys = Mapping[str, str]  # keys of an object name, with their values


class _Sample(NamedTuple):
    """The sample of one MBean: its names, labels, and factor from the MBean's value."""

    names: frozenset[str]
    labels: Mapping[str, str]
    factor: float


def _check_references(template: str, expression: re.Pattern[str]) -> None:
    """Check that a replacement refers to existing groups.

    Raises:
        ValueError: A group does not exist. The exporter would fail at each matching MBean.
    """
    for _, number, name in _REFERENCE.findall(template):
        if (number and int(number[0]) > expression.groups) or (
            name and name not in expression.groupindex
        ):
            raise ValueError(
                f"{template[:80]!a:.100} refers to group {number[:9] or name[:40]}, which the"
                " pattern does not have"
            )
    if rest := re.search(r"[$\\]", _REFERENCE.sub("", template)):
        raise ValueError(f"{template[:80]!a:.100} has a {rest[0]} without a group")


class _Rule(msgspec.Struct, frozen=True, rename="camel"):
    pattern: str | None = None
    name: str | None = None
    labels: Mapping[str, Any] | None = None
    value: Any = None
    value_factor: float = 1.0
    type: str | None = None
    attr_name_snake_case: bool = False

    def __post_init__(self) -> None:
        expression = compiled(self.pattern or "")
        given = (self.labels or {}).items()
        for template in (self.name or "", *(str(one) for pair in given for one in pair)):
            _check_references(template, expression)


class Rules(msgspec.Struct, frozen=True, rename="camel", dict=True):
    """Configuration of an exporter that affects names. Default: no rules."""

    rules: Sequence[_Rule] = (_Rule(),)
    lowercase_output_name: bool = False
    lowercase_output_label_names: bool = False
    infer_counter_type_from_name: bool = False
    exclude_jvm_metrics: bool = False
    include_object_names: Sequence[str] = ()
    exclude_object_names: Sequence[str] = ()
    whitelist_object_names: Sequence[str] = ()
    blacklist_object_names: Sequence[str] = ()

    @cached_property
    def labels(self) -> frozenset[str]:
        """Labels in the rules. All other labels are keys of MBeans."""
        named = {_safe(str(label)) for rule in self.rules for label in rule.labels or ()}
        return frozenset(named | {label.lower() for label in named})

    def shown(self, question: Question, further: Iterable[str] = ()) -> list[Shown] | None:
        """Return the samples with the answers to a question. None: the exporter hides some.

        Args:
            question: Question.
            further: Keys that MBeans can have if the pattern ends in ``,*``.
        """
        domain, keys = sample_names.key_values(question.pattern)
        if "*" in domain or "?" in domain:
            return None
        chosen = sample_names.choices(keys, tuple(further))
        return sample_names.all_of(self._shown(domain, one, question.attribute) for one in chosen)

    def depends_on(self, question: Question, further: Iterable[str] = ()) -> str | None:
        """Return a name, such as ``topic=jmx.lake``, that the rules treat differently.

        Names that ``excludeObjectNames`` excludes do not count, because that is intended.
        """
        domain, keys = sample_names.key_values(question.pattern)
        for pairs in sample_names.choices(keys, tuple(further)):
            placeholders = _placeholders(pairs)
            usual = self._sample_of(domain, _bean(pairs, placeholders), question.attribute)
            for key, own in placeholders.items():
                for name in _OTHERS.get(key, ()):
                    bean = _bean(pairs, {**placeholders, key: name})
                    if not self._is_read(domain, bean):
                        continue
                    other = self._sample_of(domain, bean, question.attribute)
                    if _renamed(other, name, own, usual) != usual:
                        return f"{key}={name}"
        return None

    def _shown(self, domain: str, keys: Pairs, attribute: str) -> Shown | None:
        bean = _bean(keys, _placeholders(keys))
        sample = self._sample_of(domain, bean, attribute)
        if sample is None or any(map(_PLACEHOLDER.search, sample.names)):
            return None
        return _as_shown(sample.names, sample.labels, sample.factor, domain, bean)

    def _sample_of(self, domain: str, bean: _Keys, attribute: str) -> "_Sample | None":
        """Return the sample of one MBean. None: it is hidden, or its value is changed."""
        if not self._is_read(domain, bean):
            return None
        *path, attribute = attribute.split(".")  # item of a composite attribute
        head = f"{domain}<{', '.join(f'{key}={value}' for key, value in bean.items())}><"
        for rule in self.rules:
            last = _CAPITAL.sub("_", attribute).lower() if rule.attr_name_snake_case else attribute
            match = compiled(rule.pattern or "").fullmatch(f"{head}{', '.join(path)}>{last}: 1")
            if match is None:
                continue
            if rule.value not in (None, "") or not rule.value_factor:
                return None
            name, labels = self._sample(rule, match, domain, bean, [*path, last])
            return _Sample(self._names(name, rule), labels, rule.value_factor) if name else None
        return None

    def _is_read(self, domain: str, bean: _Keys) -> bool:
        if self.exclude_jvm_metrics and domain in _JVM:
            return False  # 1.6.0 exports MBeans that are included by name, older versions do not
        fits = partial(_fits, domain, bean)
        include = self.include_object_names or self.whitelist_object_names
        exclude = self.exclude_object_names or self.blacklist_object_names
        return (not include or any(map(fits, include))) and not any(map(fits, exclude))

    def _sample(
        self, rule: _Rule, match: re.Match[str], domain: str, bean: _Keys, attribute: list[str]
    ) -> tuple[str, dict[str, str]]:
        if rule.name is None:
            (_, first), *others = bean.items()
            name, labels = "_".join([domain, first, *attribute]), dict(others)
        else:
            name = _expanded(rule.name, match)
            given = (rule.labels or {}).items()
            labels = {_expanded(key, match): _expanded(str(value), match) for key, value in given}
        name = _safe(name)
        named = {_safe(label): value for label, value in labels.items() if value}
        if self.lowercase_output_label_names:
            named = {label.lower(): value for label, value in named.items()}
        return name.lower() if self.lowercase_output_name else name, named

    def _names(self, name: str, rule: _Rule) -> frozenset[str]:
        base = sample_names.RESERVED.sub("", name)
        if rule.type == "COUNTER" or (
            self.infer_counter_type_from_name and name.endswith("_total")
        ):
            return frozenset({f"{base}_total"})
        return frozenset({name, base})


def read(path: Path | None) -> Rules:
    """Return the rules in an exporter's file, or in a ConfigMap of Kubernetes with that file.

    Raises:
        ConfigError: The file cannot be read, or has unsupported content.
    """
    if path is None:
        return Rules()
    try:
        return parse(next(configurations(read_text(path), str(path)), {}))
    except UnreadableFileError as error:
        raise ConfigError(f"{error.place}: the exporter's rules: {error.problem}") from None
    except (msgspec.MsgspecError, AttributeError, TypeError, ValueError) as error:
        why = " ".join(str(error).split())[:200]
        raise ConfigError(f"{path}: invalid configuration of jmx_exporter: {why}") from None


def configurations(text: str, where: str = "") -> Iterator[Mapping[str, Any]]:
    """Yield the configurations in a file, which can also have other objects of Kubernetes."""
    for found in strict_yaml.load_all(text, where):  # as in the exporter
        if found and found.get("kind") == "ConfigMap":
            texts = map(str, found.get("data", {}).values())
            yield from (strict_yaml.load(one, where, "last") for one in texts if "rules:" in one)
        elif found and "kind" not in found:
            yield found


def parse(found: Mapping[str, Any]) -> Rules:
    """Return the rules of an exporter's configuration.

    Raises:
        ValueError: The configuration has an unsupported key.
        msgspec.ValidationError: A value has another type, or an expression is invalid.
    """
    if hiding := [key for key in _HIDING if key in found]:
        raise ValueError(f"the agent does not support {', '.join(hiding)}")
    given = {key: value for key, value in found.items() if value is not None}
    return msgspec.convert(given, Rules, strict=False)


def _placeholders(keys: Pairs) -> dict[str, str]:
    wildcards = [key for key, value in keys if value == "*"]
    return {
        key: f"73010{number}8" if key == "partition" else f"jmxlake{number}standin"
        for number, key in enumerate(wildcards)
    }


def _bean(keys: Pairs, names: _Keys) -> dict[str, str]:
    return {key: names.get(key, value) for key, value in keys}


def _renamed(
    sample: _Sample | None, name: str, other: str, usual: _Sample | None
) -> _Sample | None:
    """Return the sample of the MBean with another name, in the labels that depend on the name."""
    if sample is None or usual is None:
        return sample
    labels = {
        label: text if usual.labels.get(label) == text else text.replace(name, other)
        for label, text in sample.labels.items()
    }
    return sample._replace(labels=labels)


def _fits(domain: str, bean: _Keys, pattern: str) -> bool:
    """Return True if an MBean matches an object name pattern."""
    wanted, pairs = sample_names.key_values(pattern)
    keys = dict(pairs)
    is_open = keys.pop("*", None) is not None
    return (
        _glob(wanted).fullmatch(domain) is not None
        and (keys.keys() <= bean.keys() if is_open else keys.keys() == bean.keys())
        and all(_glob(value).fullmatch(bean[key]) for key, value in keys.items())
    )


def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)


def _as_shown(
    names: frozenset[str], labels: Mapping[str, str], factor: float, domain: str, bean: _Keys
) -> Shown | None:
    constants, variables, found = {}, {}, set()
    for label, text in labels.items():
        numbers = _PLACEHOLDER.findall(text)
        if not numbers:
            constants[label] = text
            continue
        if len(set(numbers)) < len(numbers):
            return None
        expression = _PLACEHOLDER.sub(r"(?P<w\1>.*)", re.escape(text))
        variables[label] = re.compile(expression, re.DOTALL)
        found |= set(numbers)
    pattern = f"{domain}:{','.join(f'{key}={value}' for key, value in bean.items())}"
    template = tuple(_PLACEHOLDER.split(pattern)[::2])
    if len(found) < len(template) - 1:
        return None  # samples of different MBeans would have the same name and labels
    return Shown(names, constants, variables, factor, template)


def _expanded(template: str, match: re.Match[str]) -> str:
    """Return a replacement with its groups, as in Java's Matcher."""

    def value(reference: re.Match[str]) -> str:
        escaped, number, name = reference.groups()
        if escaped:
            return escaped
        if name:
            return match[name] or ""
        # As many digits as form the number of an existing group.
        groups = match.re.groups
        taken = next(n for n in range(len(number), 0, -1) if n == 1 or int(number[:n]) <= groups)
        return (match[int(number[:taken])] or "") + number[taken:]

    return _REFERENCE.sub(value, template)


def _safe(name: str) -> str:
    """Return a valid name, with one underscore for invalid characters (toSafeName)."""
    return _UNSAFE.sub("_", f"_{name}" if name[:1].isdigit() else name)


def check_time(path: Path) -> None:
    """Check that the rules in a file can be applied in time.

    Raises:
        ConfigError: The rules take too long.
    """
    try:
        state = path.stat()
    except OSError:
        return  # the reader of the file reports it
    if not _is_in_time(path, state.st_ino, state.st_mtime_ns, state.st_size):
        raise ConfigError(
            f"{path}: the patterns of the exporter's rules take more than {_MOST_SECONDS} s to"
            " match; remove repetitions within repetitions, such as (.+)+"
        )


@cache  # the sources of an agent can share a file
def _is_in_time(path: Path, *_: int) -> bool:
    trial = subprocess.run(
        [sys.executable, "-m", __name__, str(path), str(_MOST_SECONDS)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return trial.returncode != -signal.SIGXCPU


def _apply(path: Path) -> None:
    rules = read(path)
    for metric in (one for family in catalogue.load().families for one in family.metrics):
        for question in asked_for(metric):
            rules.shown(question, tuple(metric.labels))
            rules.depends_on(question, tuple(metric.labels))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[2]), int(sys.argv[2]) + 1))
    _apply(Path(sys.argv[1]))
