"""Reads the catalogue from its YAML files, and a user's own files over them."""

from __future__ import annotations

import difflib
import re
from dataclasses import fields, replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import yaml

from collector import strict_yaml
from collector.catalogue.entries import Catalogue, Family, KnownWrong, Metric, version_key
from collector.errors import ConfigError
from lakehouse.tables import METRIC_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_Record = TypeVar("_Record", Family, Metric)
_NAME = re.compile(METRIC_NAME)
_VERSION = re.compile(r"\d+(\.\d+)+")
_OF_KNOWN_FAMILIES = ("admin", "metadata_log")  # their readers are written for each family
_HEAD_KEYS = ("via", "cadence_seconds", "roles", "cap", "enabled")
_FILE_KEYS = ("family", *_HEAD_KEYS, "defaults", "metrics")
_METRIC_KEYS = tuple(entry.name for entry in fields(Metric) if entry.name != "name")
_KNOWN_WRONG_KEYS = tuple(entry.name for entry in fields(KnownWrong))


def load(extra: Path | None = None) -> Catalogue:
    """The catalogue, with what the YAML files of a folder add to it or override.

    Args:
        extra: Folder of further files; a metric that is known already is replaced as a whole, and
            a file may name a known family to add to it or to change its cadence.

    Raises:
        ConfigError: A file is not as it should be; the text names file, entry and key.
    """
    families = dict(_shipped())
    for path in _files(extra) if extra else ():
        family = _family(path.name, _parse(path.name, _text(path)), families)
        if family.name not in families and family.via in _OF_KNOWN_FAMILIES:
            raise ConfigError(f"{path.name}: a new family cannot be read via {family.via}: use jmx")
        families[family.name] = family
    _refuse_doubles(families)
    return Catalogue(tuple(families.values()))


@cache
def _shipped() -> Mapping[str, Family]:
    families: dict[str, Family] = {}
    folder = resources.files("collector.catalogue")
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".yaml"):
            family = _family(entry.name, _parse(entry.name, entry.read_text("utf-8")), families)
            families[family.name] = family
    return families


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise ConfigError(f"catalogue folder {folder} does not exist: create it or unset it")
    return sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")])


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: it cannot be read as UTF-8 text: {error}") from None


def _parse(file: str, text: str) -> dict[str, Any]:
    try:
        content = strict_yaml.load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{file}: not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{file}: expected a mapping with the keys {', '.join(_FILE_KEYS)}")
    return content


def _family(file: str, content: dict[str, Any], known: Mapping[str, Family]) -> Family:
    _check_keys(file, content, _FILE_KEYS)
    name = content.get("family")
    if not isinstance(name, str):
        raise ConfigError(f"{file}: the key 'family' must name the family")
    before = known.get(name)
    entries = content.get("metrics") or {}
    defaults = content.get("defaults") or {}
    if not isinstance(entries, dict) or not isinstance(defaults, dict):
        raise ConfigError(f"{file}: 'metrics' and 'defaults' must be mappings")
    _check_keys(f"{file}: defaults", defaults, _METRIC_KEYS)
    metrics = {metric.name: metric for metric in before.metrics} if before else {}
    for entry, value in entries.items():
        metrics[entry] = _metric(f"{file}: {entry}", entry, value, defaults)
    head = {"cadence_seconds": 60, **_head(before), "name": name, "metrics": ()}
    head.update((key, content[key]) for key in _HEAD_KEYS if key in content)
    family = _convert(file, head, Family)
    if family.cadence_seconds < 1:
        raise ConfigError(f"{file}: cadence_seconds must be 1 or more")
    if family.cap < 1:
        raise ConfigError(f"{file}: cap must be 1 or more")
    family = replace(family, metrics=tuple(metrics.values()))
    for metric in family.metrics:
        _check_metric(f"{file}: {metric.name}", family, metric)
    return family


def _head(family: Family | None) -> dict[str, Any]:
    return {key: getattr(family, key) for key in _HEAD_KEYS} if family else {}


def _metric(where: str, name: str, value: object, defaults: dict[str, Any]) -> Metric:
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: expected a mapping with the metric's fields")
    _check_keys(where, value, _METRIC_KEYS)
    wrongs = value.get("known_wrong")
    for known in wrongs if isinstance(wrongs, list) else ():
        if isinstance(known, dict):
            _check_keys(f"{where}: known_wrong", known, _KNOWN_WRONG_KEYS)
    return _convert(where, {**defaults, **value, "name": name}, Metric)


def _convert(where: str, value: dict[str, Any], kind: type[_Record]) -> _Record:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {error}") from None


def _check_keys(where: str, mapping: Mapping[Any, Any], known: tuple[str, ...]) -> None:
    for key in mapping:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
            raise ConfigError(f"{where}: unknown key {key!r}; {hint}")


def _check_metric(where: str, family: Family, metric: Metric) -> None:
    if not _NAME.fullmatch(metric.name):
        raise ConfigError(f"{where}: a metric's name is lower case words joined by dots")
    _check_versions(where, metric)
    if metric.percentiles and metric.kind == "counter":
        raise ConfigError(f"{where}: a counter's increases have no percentiles: leave them out")
    if metric.above is not None and (metric.above < 0 or metric.kind == "counter"):
        raise ConfigError(f"{where}: 'above' is 0 or more, and no counter has it")
    if metric.counted_by is not None:
        family.metric(metric.counted_by)
    if family.via != "jmx":
        if metric.object or not metric.call:
            raise ConfigError(
                f"{where}: a metric read via {family.via} names its call and no object"
            )
        return
    if not metric.object or metric.call:
        raise ConfigError(f"{where}: a metric read via jmx names its object and no call")
    for pattern in metric.patterns:
        _check_pattern(where, pattern, metric)


def _check_versions(where: str, metric: Metric) -> None:
    for version in (metric.first, metric.last):
        if version is not None and not _VERSION.fullmatch(version):
            raise ConfigError(f"{where}: {version!r} is not a Kafka version such as '3.7.0'")
    if metric.first and metric.last and version_key(metric.first) > version_key(metric.last):
        raise ConfigError(f"{where}: first version {metric.first} is after last {metric.last}")


def _check_pattern(where: str, pattern: str, metric: Metric) -> None:
    domain, colon, properties = pattern.partition(":")
    keys = dict(part.partition("=")[::2] for part in properties.split(",") if part != "*")
    if not domain or not colon or not keys or not all(keys.values()):
        raise ConfigError(f"{where}: {pattern!r} is not an object name such as 'domain:type=X'")
    unlabelled = {key for key, value in keys.items() if "*" in value} - set(metric.labels)
    if unlabelled:
        raise ConfigError(f"{where}: no label says what key {min(unlabelled)!r} of {pattern!r} is")


def _refuse_doubles(families: Mapping[str, Family]) -> None:
    owner: dict[str, str] = {}
    for family in families.values():
        for metric in family.metrics:
            if owner.setdefault(metric.name, family.name) != family.name:
                raise ConfigError(
                    f"metric {metric.name} stands in family {owner[metric.name]} and in"
                    f" {family.name}: rename one of them"
                )
