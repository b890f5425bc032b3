"""Loader of the catalogue: the shipped YAML files, and a user's own files over them."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from collector.catalogue.entries import Catalogue, Family, Metric
from collector.errors import ConfigError
from lakehouse.tables import METRIC_NAME, strict_yaml, typed_settings
from lakehouse.tables.strict_files import UnreadableFileError

_Record = TypeVar("_Record", Family, Metric)
_NAME = re.compile(METRIC_NAME)
_NAMES_OF = {"topic": {"topic"}, "node": {"node"}, "quota": {"user", "client_id"}}
"""Labels that name what a metric describes."""
_OF_KNOWN_FAMILIES = ("admin", "metadata_log", "remote_log")  # each family has a reader of its own


def load(extra: Path | None = None) -> Catalogue:
    """Return the catalogue with the additions and overrides of a folder of YAML files.

    Args:
        extra: The folder. A known metric is replaced as a whole. A file with the name of a known
            family adds to it or changes its settings.

    Raises:
        ConfigError: A file is invalid; the error names file, entry and key.
    """
    families = dict(_shipped())
    if extra is not None:
        if not extra.is_dir():
            raise ConfigError(f"catalogue folder {extra} does not exist: create it or unset it")
        for name, family in _merged(extra, families).items():
            if name not in families and family.via in _OF_KNOWN_FAMILIES:
                why = f"the new family {name} cannot be read via {family.via}: use jmx"
                raise ConfigError(f"{extra}: {why}")
            families[name] = family
        _refuse_doubles(families)
    return Catalogue(tuple(families.values()))


@cache
def _shipped() -> Mapping[str, Family]:
    return _merged(Path(__file__).parent, {})


def _merged(folder: Path, known: Mapping[str, Family]) -> dict[str, Family]:
    """Return the known families with the additions and overrides of a folder."""
    families = dict(known)
    for path in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
        family = _family(path.name, _content(path), families)
        families[family.name] = family
    return families


def _content(path: Path) -> Any:
    try:
        return strict_yaml.load_file(path)
    except UnreadableFileError as error:
        raise ConfigError(str(error)) from None


def _family(file: str, content: Any, known: Mapping[str, Family]) -> Family:
    if not isinstance(content, dict) or not isinstance(name := content.get("family"), str):
        raise ConfigError(f"{file}: the key 'family' must name the family")
    head = dict(content)
    entries, defaults = head.pop("metrics", None) or {}, head.pop("defaults", None) or {}
    if not all(isinstance(one, dict) for one in (entries, defaults, *entries.values())):
        raise ConfigError(f"{file}: 'metrics', 'defaults' and each metric must be mappings")
    metrics: dict[str, Metric] = {}
    if name in known:
        metrics = {metric.name: metric for metric in known[name].metrics}
        head = {**msgspec.to_builtins(known[name]), **head}
    for entry, value in entries.items():
        settings = {**defaults, **value}
        if "name" in settings:
            raise ConfigError(f"{file}: {entry}: unknown key 'name': the entry's key is its name")
        metrics[entry] = _convert(f"{file}: {entry}", {**settings, "name": entry}, Metric)
    family = _convert(file, {**head, "metrics": ()}, Family)
    family = msgspec.structs.replace(family, metrics=tuple(metrics.values()))
    for metric in family.metrics:
        _check_metric(f"{file}: {metric.name}", family, metric)
    _check_bounds(file, family)
    return family


def _convert(where: str, value: dict[str, Any], kind: type[_Record]) -> _Record:
    try:
        return typed_settings.convert(value, kind)
    except typed_settings.WrongSettingError as error:
        raise ConfigError(f"{where}: {error}") from None


def _check_metric(where: str, family: Family, metric: Metric) -> None:
    via, counter = family.via, metric.kind == "counter"
    textual = metric.item is not None or bool(metric.states)
    by_broker = "cluster" in family.roles and via != "admin"
    bean, call = metric.object and not metric.call, metric.call and not metric.object
    wrong = {
        "a metric's name is lower case words joined by dots": not _NAME.fullmatch(metric.name),
        "a counter has no percentiles: remove 'percentiles'": counter and metric.percentiles,
        "a counter has no limit: remove 'above'": counter and metric.above is not None,
        "a server cannot compare items and texts: remove 'filter'": metric.filter and textual,
        "a counter is not a position: remove 'position'": counter and metric.position,
        f"it describes a {metric.describes} that no label names: add it to labels": _is_nameless(
            via, metric
        ),
        "a cluster is read via admin only: remove 'cluster' from roles": by_broker,
        f"a metric read via {via} has a call and no object": via != "jmx" and not call,
        "a metric read via jmx has an object and no call": via == "jmx" and not bean,
    }
    for why, is_so in wrong.items():
        if is_so:
            raise ConfigError(f"{where}: {why}")
    for name in filter(None, (metric.counted_by, *metric.written_after)):
        family.metric(name)
    for pattern in metric.patterns:
        _check_pattern(where, pattern, metric)


def _is_nameless(via: str, metric: Metric) -> bool:
    """Return True if no label names the subject that a metric describes."""
    names = _NAMES_OF.get(metric.describes or "")
    return via == "jmx" and names is not None and names.isdisjoint(metric.labels.values())


def _check_bounds(file: str, family: Family) -> None:
    """Raise ConfigError unless bounds are pairs of like metrics."""
    pairs: defaultdict[str, list[Metric]] = defaultdict(list)
    for metric in family.metrics:
        if metric.bound:
            pairs[metric.bound.of].append(metric)
    for of, bounds in pairs.items():
        where = f"{file}: {bounds[0].name}"
        if sorted(one.bound.side for one in bounds if one.bound) != ["high", "low"]:
            raise ConfigError(f"{where}: {of} needs one bound of side low and one of side high")
        first, second = bounds
        if (first.kind, first.unit, first.labels) != (second.kind, second.unit, second.labels):
            raise ConfigError(f"{where}: kind, unit or labels differ from {second.name}")
        if any(one.name == of for one in family.metrics):
            raise ConfigError(f"{where}: {of} is also a metric: choose another name for the value")


def _check_pattern(where: str, pattern: str, metric: Metric) -> None:
    domain, colon, properties = pattern.partition(":")
    keys = dict(part.partition("=")[::2] for part in properties.split(",") if part != "*")
    if not domain or not colon or not keys or not all(keys.values()):
        raise ConfigError(f"{where}: {pattern!r} is not an object name such as 'domain:type=X'")
    unlabelled = {key for key, value in keys.items() if "*" in value} - set(metric.labels)
    if unlabelled:
        raise ConfigError(
            f"{where}: key {min(unlabelled)!r} of {pattern!r} has no label: add it to labels"
        )


def _refuse_doubles(families: Mapping[str, Family]) -> None:
    """Raise ConfigError if families share a name that they may not share."""
    owners: defaultdict[str, list[tuple[Family, Metric]]] = defaultdict(list)
    for family in families.values():
        for metric in family.metrics:
            for name in _names(metric):
                for other, its in owners[name]:
                    if other is not family and not _is_shared(name, family, metric, other, its):
                        both = f"is in family {other.name} and in {family.name}"
                        raise ConfigError(f"metric {name} {both}: rename one of them")
                owners[name].append((family, metric))


def _is_shared(name: str, family: Family, metric: Metric, other: Family, its: Metric) -> bool:
    """Return True if two families define a metric equally, and no source has both."""
    is_equal = (metric.kind, metric.unit) == (its.kind, its.unit)
    is_metric = metric.name == its.name == name
    return is_metric and is_equal and not {*family.roles} & {*other.roles}


def _names(metric: Metric) -> Iterator[str]:
    """Yield the names that belong to a metric's family: its own and the value that it bounds."""
    yield metric.name
    if metric.bound:
        yield metric.bound.of
