"""What an agent reads, made of its configuration: the catalogue, the scrapers, the plan."""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING

from collector import catalogue as catalogues, limits
from collector.clock import SystemClock
from collector.errors import SettingError
from collector.hidden_names import HiddenNames
from collector.plan import Plan, Task
from collector.scraper import Scraper
from collector.sections import FamilySettings, Names
from collector.sources import factory
from lakehouse.tables import MAX_GAP_INTERVALS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from collector.catalogue import Catalogue, Family
    from collector.sections import Config


def catalogue(config: Config) -> Catalogue:
    """The catalogue with the user's files, named as is right for what is read.

    Raises:
        ConfigError: A file is wrong.
        SettingError: The configuration names a family that there is not.
    """
    loaded = catalogues.load(config.catalogue)
    if _reads_log(config):
        loaded = loaded.preferring("metadata_log")
    names = [family.name for family in loaded.families]
    for name in config.families:
        if name not in names:
            raise SettingError(f"families.{name}", f"no such family; there are {', '.join(names)}")
    return loaded


def _reads_log(config: Config) -> bool:
    settings = config.families.get("metadata_log", FamilySettings())
    wanted = config.metadata_log is not None and config.source.role == "broker"
    return wanted and settings.enabled is not False


def scrapers(config: Config, told: Callable[[str], int] = lambda _: 0) -> dict[str, Scraper]:
    """The scrapers by source; may start the JVM.

    Args:
        config: What is asked for.
        told: Up to when a family was recorded.

    Raises:
        ConfigError: There is no Java, no Kafka client in ``admin.libs``, or no key for names.
    """
    found = factory.sources(config, told)
    hidden = None if config.names == Names() else HiddenNames(config.names)
    return {via: Scraper(one, SystemClock(), hidden) for via, one in found.items()}


def tasks(config: Config, loaded: Catalogue, found: Mapping[str, Scraper]) -> list[Task]:
    """What is read: the families of this role whose source is configured, at their cadence.

    Raises:
        SettingError: A cadence leaves no room for two scrapes and a gap in a window.
    """
    wanted = []
    for family, interval_us in families(config, loaded):
        source = family.name if family.name in found else family.via
        if source in found:
            wanted.append(Task(family, interval_us, found[source], source))
    return wanted


def families(config: Config, loaded: Catalogue) -> list[tuple[Family, int]]:
    """The families that the configuration asks for, each with its cadence in microseconds.

    Raises:
        SettingError: A cadence leaves no room for two scrapes and a gap in a window.
    """
    wanted = []
    for family in loaded.families:
        settings = config.families.get(family.name, FamilySettings())
        enabled = family.enabled if settings.enabled is None else settings.enabled
        if enabled and config.source.role in family.roles and _reached(config, family):
            interval_us = settings.interval.us if settings.interval else family.cadence_us
            capped = replace(family, cap=settings.cap) if settings.cap else family
            wanted.append((capped, interval_us))
    if wanted:
        _check_window(config, *max(wanted, key=itemgetter(1)))
    return wanted


def _reached(config: Config, family: Family) -> bool:
    sections = {"admin": config.admin, "metadata_log": config.metadata_log}
    if config.source.statistics is not None or family.via == "statistics":
        return family.via == "statistics" and config.source.statistics is not None
    return family.via not in sections or sections[family.via] is not None


def _check_window(config: Config, family: Family, interval_us: int) -> None:
    """Whether there is room for two scrapes and a gap of a family in a window."""
    needed_us = round(interval_us * MAX_GAP_INTERVALS)
    if needed_us >= config.window.us:
        key = f"families.{family.name}.interval"
        raise SettingError(
            "window",
            f"{limits.WINDOW_RULES} ({family.name} has {interval_us / 1e6:g} s):"
            f" at least {limits.shortest_window(needed_us)} here, or lower {key}",
            (key,),
        )


def plan(config: Config, loaded: Catalogue, found: Mapping[str, Scraper]) -> Plan:
    """Everything that is read.

    Raises:
        ConfigError: As for ``tasks``.
    """
    return Plan(tasks(config, loaded, found), memory(config, loaded), loaded.hash)


def memory(config: Config, loaded: Catalogue) -> dict[str, int]:
    """Per metric, how long its bean shows a value after its cause has ended, in microseconds."""
    found = {}
    for family in loaded.families:
        override = config.families.get(family.name, FamilySettings()).memory
        for metric in family.metrics:
            if metric.memory_us:
                found[metric.name] = override.us if override else metric.memory_us
    return found
