"""Puts an agent together from its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector import catalogue as catalogues
from collector import config as configuration
from collector.agent import Agent, Task
from collector.clock import SystemClock
from collector.delivery import Delivery
from collector.errors import ConfigError
from collector.recorder import Recorder
from collector.runs import MAX_GAP_INTERVALS
from collector.scraper import Scraper
from collector.sources import jvm
from collector.sources.admin import AdminSource
from collector.sources.attach import AttachSource
from collector.sources.jmx import JmxSource
from collector.sources.session import Expected

if TYPE_CHECKING:
    from collector.catalogue import Catalogue
    from collector.config import Config
    from collector.samples import Source
    from collector.spool import Spool


_SLOW_ADMIN = ("offsets", "tiered_offsets")
_SLOW_JMX = ("log",)
"""Families with a connection and a thread of their own, since they may take long: a group's
coordinator may be dead, the remote tier hang, a broker have thousands of logs. They must not hold
up those that are read every few seconds."""


def sources(config: Config) -> dict[str, Source]:
    """The sources by ``via`` or by family, where one has a source of its own; starts the JVM.

    Raises:
        ConfigError: There is no Java, or no Kafka client in ``admin.libs``.
    """
    source, admin = config.source, config.admin
    timeout = source.jmx.timeout if source.jmx else configuration.Duration("5s")
    jvm.start(admin.libs if admin else None, timeout_seconds=timeout.us / 1e6)
    found: dict[str, Source] = {name: _jvm_source(config) for name in ("jmx", *_SLOW_JMX)}
    if admin is not None and source.role == "broker":
        for name in ("admin", *_SLOW_ADMIN):
            found[name] = AdminSource(
                int(source.node),
                admin.bootstrap,
                cluster=source.cluster,
                properties_file=admin.properties_file,
                timeout_seconds=admin.timeout.us / 1e6,
            )
    return found


def _jvm_source(config: Config) -> Source:
    source = config.source
    expected = Expected(source.role, str(source.node), source.cluster)
    if source.jmx is None:
        return AttachSource(expected, source.attach.pid if source.attach else None)
    return JmxSource(
        expected,
        source.jmx.host,
        source.jmx.port,
        user=source.jmx.user,
        password_file=source.jmx.password_file,
        timeout_seconds=source.jmx.timeout.us / 1e6,
    )


def catalogue(config: Config) -> Catalogue:
    """The catalogue with the user's files.

    Raises:
        ConfigError: A file is wrong, or the configuration names a family that there is not.
    """
    loaded = catalogues.load(config.catalogue)
    names = [family.name for family in loaded.families]
    for name in config.families:
        if name not in names:
            raise ConfigError(f"families.{name}: no such family; there are {', '.join(names)}")
    return loaded


def tasks(config: Config, loaded: Catalogue, found: dict[str, Source]) -> list[Task]:
    """What is read: the families of this role whose source is configured, at their cadence.

    Raises:
        ConfigError: A cadence leaves no room for two scrapes and a gap in a window.
    """
    scrapers = {via: Scraper(source, SystemClock()) for via, source in found.items()}
    wanted = []
    for family in loaded.families:
        settings = config.families.get(family.name, configuration.FamilySettings())
        if not settings.enabled or config.source.role not in family.roles:
            continue
        scraper = scrapers.get(family.name) or scrapers.get(family.via)
        if scraper is None:
            continue
        interval_us = settings.interval.us if settings.interval else family.cadence_us
        if interval_us * MAX_GAP_INTERVALS >= config.window.us:
            raise ConfigError(
                f"families.{family.name}: {MAX_GAP_INTERVALS} intervals of {interval_us / 1e6:g} s"
                f" must be shorter than the window of {config.window.us / 1e6:g} s"
            )
        wanted.append(Task(family, interval_us, scraper))
    return wanted


def memory(config: Config, loaded: Catalogue) -> dict[str, int]:
    """Per metric, how long its bean shows a value after its cause has ended, in microseconds."""
    found = {}
    for family in loaded.families:
        override = config.families.get(family.name, configuration.FamilySettings()).memory
        for metric in family.metrics:
            if metric.memory_us:
                found[metric.name] = override.us if override else metric.memory_us
    return found


def recorder(config: Config, loaded: Catalogue, spool: Spool) -> Recorder:
    """The recorder over an open spool."""
    return Recorder(
        spool,
        config.source.name,
        config.window.us,
        memory(config, loaded),
        loaded.hash,
        config.source.cluster,
    )


def delivery(config: Config, spool: Spool) -> Delivery:
    """The delivery of an open spool."""
    return Delivery(config.lake.path, configuration.storage_options(config.lake), spool)


def agent(config: Config, spool: Spool) -> Agent:
    """The whole agent over an open spool."""
    loaded = catalogue(config)
    return Agent(
        tasks(config, loaded, sources(config)),
        recorder(config, loaded, spool),
        delivery(config, spool),
        config.lake.commit_interval.us,
        SystemClock(),
    )
