"""Prometheus's jmx_exporter, by its configuration: under which name and labels it shows a bean.

The exporter turns ``domain<key=value, ...><>attribute: value`` into a sample by the first of its
rules that matches; a rule without a name, and no rules at all, mean its default name. We apply the
same rules to each of our questions, with a stand-in for each wildcard: where the stand-in turns up
among the labels, there the value of that key can be read back (JmxCollector.java of jmx_exporter
1.0.1 and 1.6.0; names as client_java writes them, PrometheusNaming). Tried on the programs 0.16.1,
0.20.0 and 1.0.1. Of two equal keys the last wins, as for SnakeYAML there.

The author of the file decides what the exporter shows, so its content is trusted as the agent's
own configuration is. Its patterns are not: see ``rules_trial`` for one that takes for ever.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from collector.errors import ConfigError
from collector.sources.base.beans import Question
from collector.sources.prometheus.java_patterns import compiled
from lakehouse.tables import strict_yaml
from lakehouse.tables.strict_files import UnreadableFileError, read_text

RESERVED: Final = re.compile(r"(_total|_created|_bucket|_info)+$")
_REFERENCE: Final = re.compile(r"\\(.)|\$([0-9]+)|\$\{([a-zA-Z][a-zA-Z0-9]*)\}", re.DOTALL)
_UNSAFE: Final = re.compile(r"[^a-zA-Z0-9:]+")
_CAPITAL: Final = re.compile(r"(?<![A-Z_])(?<!^)(?=[A-Z])")
_STAND_IN: Final = re.compile(r"(?:jmxlake|73010)(\d)(?:standin|8)")
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
"""Names of other forms than the stand-ins': each is to be treated as those are."""
_PLAIN: Final = re.compile(r"[\w\-%. \t]*", re.ASCII)
_HIDING: Final = (
    "metricCustomizers", "includeObjectNameAttributes", "excludeObjectNameAttributes"
)  # fmt: skip

_JVM: Final = frozenset({"com.sun.management", "java.lang", "java.nio", "java.util.logging"})
"""Domains that ``excludeJvmMetrics`` hides, as far as the catalogue can name them."""

_Pairs = list[tuple[str, str]]
_Keys = Mapping[str, str]  # of a bean's name, with their values


class Shown(NamedTuple):
    """How the exporter shows an attribute of the beans that fit a pattern.

    Attributes:
        names: The sample's name; two, where the exporter's version decides.
        constants: Labels that are the same for all of them.
        variables: Other labels, and an expression whose groups are the wildcards, by their number.
        factor: The sample is the attribute's value times this.
        bean: The beans' name, in pieces between which the wildcards' values belong.
        quotes: The labels have the values themselves, which Kafka quotes in a bean's name where it
            must (``Sanitizer.jmxSanitize``).
    """

    names: frozenset[str]
    constants: Mapping[str, str]
    variables: Mapping[str, re.Pattern[str]]
    factor: float
    bean: tuple[str, ...]
    quotes: bool = False

    def named(self, labels: Mapping[str, str]) -> str | None:
        """The object name of the bean whose sample has these labels; None: they do not fit."""
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


class _Sample(NamedTuple):
    """The sample of one bean: its names, its labels, and its value by the bean's."""

    names: frozenset[str]
    labels: Mapping[str, str]
    factor: float


def _check_references(template: str, expression: re.Pattern[str]) -> None:
    """Make sure that a replacement refers to groups that there are.

    Raises:
        ValueError: It does not; the exporter would fail at each bean that fits.
    """
    for _, number, name in _REFERENCE.findall(template):
        if (number and int(number[0]) > expression.groups) or (
            name and name not in expression.groupindex
        ):
            raise ValueError(
                f"{template[:80]!a:.100} refers to group {number[:9] or name[:40]}, which its"
                " pattern does not have"
            )
    if rest := re.search(r"[$\\]", _REFERENCE.sub("", template)):
        raise ValueError(f"{template[:80]!a:.100} has a {rest[0]} that refers to no group")


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
    """An exporter's configuration, as far as it decides on names; by default it has none."""

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
        """The labels that the rules name; others are keys of beans."""
        named = {_safe(str(label)) for rule in self.rules for label in rule.labels or ()}
        return frozenset(named | {label.lower() for label in named})

    def shown(self, question: Question, further: Iterable[str] = ()) -> list[Shown] | None:
        """How the answers to a question are shown; None: the exporter hides some of them.

        Args:
            question: The question.
            further: The keys that beans may have where the pattern ends in ``,*``.
        """
        domain, keys = key_values(question.pattern)
        if "*" in domain or "?" in domain:
            return None
        chosen = choices(keys, tuple(further))
        return all_of(self._shown(domain, one, question.attribute) for one in chosen)

    def depends_on(self, question: Question, further: Iterable[str] = ()) -> str | None:
        """Return a name, as ``topic=jmx.lake``, that the rules treat otherwise than others.

        Names that ``excludeObjectNames`` leaves out are no such: who wrote that meant it.
        """
        domain, keys = key_values(question.pattern)
        for pairs in choices(keys, tuple(further)):
            stand_ins = _stand_ins(pairs)
            usual = self._sample_of(domain, _bean(pairs, stand_ins), question.attribute)
            for key, own in stand_ins.items():
                for name in _OTHERS.get(key, ()):
                    bean = _bean(pairs, {**stand_ins, key: name})
                    if not self._is_read(domain, bean):
                        continue
                    other = self._sample_of(domain, bean, question.attribute)
                    if _renamed(other, name, own, usual) != usual:
                        return f"{key}={name}"
        return None

    def _shown(self, domain: str, keys: _Pairs, attribute: str) -> Shown | None:
        bean = _bean(keys, _stand_ins(keys))
        sample = self._sample_of(domain, bean, attribute)
        if sample is None or any(map(_STAND_IN.search, sample.names)):
            return None
        return _as_shown(sample.names, sample.labels, sample.factor, domain, bean)

    def _sample_of(self, domain: str, bean: _Keys, attribute: str) -> "_Sample | None":
        """The sample of one bean; None: it is hidden, or its value is another."""
        if not self._is_read(domain, bean):
            return None
        *path, attribute = attribute.split(".")  # of a composite attribute, its part
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
            return False  # by 1.6.0 unless it is included by name, by older ones in any case
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
        base = RESERVED.sub("", name)
        if rule.type == "COUNTER" or (
            self.infer_counter_type_from_name and name.endswith("_total")
        ):
            return frozenset({f"{base}_total"})
        return frozenset({name, base})


def read(path: Path | None) -> Rules:
    """The rules in a file: the exporter's own, or a ConfigMap of Kubernetes that holds it.

    Raises:
        ConfigError: It cannot be read, or has what we cannot follow.
    """
    if path is None:
        return Rules()
    try:
        return parse(next(configurations(read_text(path), str(path)), {}))
    except UnreadableFileError as error:
        raise ConfigError(f"{error.place}: the exporter's rules: {error.problem}") from None
    except (msgspec.MsgspecError, AttributeError, TypeError, ValueError) as error:
        why = " ".join(str(error).split())[:200]
        raise ConfigError(f"{path}: that is no configuration of jmx_exporter: {why}") from None


def configurations(text: str, where: str = "") -> Iterator[Mapping[str, Any]]:
    """Those in a file of several documents, some of which may be other objects of Kubernetes."""
    for found in strict_yaml.load_all(text, where, "last"):  # as the exporter does
        if found and found.get("kind") == "ConfigMap":
            texts = map(str, found.get("data", {}).values())
            yield from (strict_yaml.load(one, where, "last") for one in texts if "rules:" in one)
        elif found and "kind" not in found:
            yield found


def parse(found: Mapping[str, Any]) -> Rules:
    """The rules of an exporter's configuration.

    Raises:
        ValueError: It has what we cannot follow.
        msgspec.ValidationError: It has a value of another type, or an expression that is none.
    """
    if hiding := [key for key in _HIDING if key in found]:
        raise ValueError(f"the agent cannot follow {', '.join(hiding)}")
    given = {key: value for key, value in found.items() if value is not None}
    return msgspec.convert(given, Rules, strict=False)


def key_values(pattern: str) -> tuple[str, _Pairs]:
    """The domain of an object name pattern, and its keys with their values."""
    domain, _, properties = pattern.partition(":")
    return domain, [
        (key, value) for key, _, value in (one.partition("=") for one in properties.split(","))
    ]


def choices(keys: _Pairs, further: tuple[str, ...]) -> Iterable[_Pairs]:
    """The keys that beans of a pattern have: with any of the further ones where it allows them."""
    if keys[-1] != ("*", ""):
        return [keys]
    return [
        [*keys[:-1], *((key, "*") for key in chosen)]
        for number in range(1, len(further) + 1)
        for chosen in combinations(further, number)
    ]


def all_of(found: Iterable[Shown | None]) -> list[Shown] | None:
    """All of them; None: one is hidden."""
    known = list(found)
    return [one for one in known if one is not None] if None not in known else None


def _stand_ins(keys: _Pairs) -> dict[str, str]:
    wildcards = [key for key, value in keys if value == "*"]
    return {
        key: f"73010{number}8" if key == "partition" else f"jmxlake{number}standin"
        for number, key in enumerate(wildcards)
    }


def _bean(keys: _Pairs, names: _Keys) -> dict[str, str]:
    return {key: names.get(key, value) for key, value in keys}


def _renamed(
    sample: _Sample | None, name: str, other: str, usual: _Sample | None
) -> _Sample | None:
    """The sample as if the bean had the other name, of which the usual one is."""
    if sample is None or usual is None:
        return sample
    labels = {
        label: text if usual.labels.get(label) == text else text.replace(name, other)
        for label, text in sample.labels.items()
    }
    return sample._replace(labels=labels)


def _fits(domain: str, bean: _Keys, pattern: str) -> bool:
    """Whether a bean fits an object name pattern."""
    wanted, pairs = key_values(pattern)
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
    constants, variables, seen = {}, {}, set()
    for label, text in labels.items():
        numbers = _STAND_IN.findall(text)
        if not numbers:
            constants[label] = text
            continue
        if len(set(numbers)) < len(numbers):
            return None
        expression = _STAND_IN.sub(r"(?P<w\1>.*)", re.escape(text))
        variables[label] = re.compile(expression, re.DOTALL)
        seen |= set(numbers)
    pattern = f"{domain}:{','.join(f'{key}={value}' for key, value in bean.items())}"
    template = tuple(_STAND_IN.split(pattern)[::2])
    if len(seen) < len(template) - 1:
        return None  # beans that we tell apart have one name there
    return Shown(names, constants, variables, factor, template)


def _quoted(value: str) -> str:
    if _PLAIN.fullmatch(value):
        return value
    return '"' + re.sub(r'["*?\\]', r"\\\g<0>", value).replace("\n", "\\n") + '"'


def _expanded(template: str, match: re.Match[str]) -> str:
    """A replacement as Java's Matcher understands it."""

    def value(reference: re.Match[str]) -> str:
        escaped, number, name = reference.groups()
        if escaped:
            return escaped
        if name:
            return match[name] or ""
        # As many digits as make the number of a group that there is.
        groups = match.re.groups
        taken = next(n for n in range(len(number), 0, -1) if n == 1 or int(number[:n]) <= groups)
        return (match[int(number[:taken])] or "") + number[taken:]

    return _REFERENCE.sub(value, template)


def _safe(name: str) -> str:
    """As ``toSafeName`` of the exporter: one underscore for all that a name may not have."""
    return _UNSAFE.sub("_", f"_{name}" if name[:1].isdigit() else name)
