"""Reload: reads configuration and catalogue anew, and keeps every connection that need not go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collector import config as configs, planning
from collector.errors import SettingError
from collector.sections import marked
from collector.sources.factory import SLOW_ADMIN

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from collector.catalogue import Catalogue
    from collector.plan import Plan
    from collector.scraper import Scraper
    from collector.sections import Config

_ADMIN: Final = ("admin", *SLOW_ADMIN)


class Reload:
    """What was configured last, and what makes the plan of what is configured now.

    Args:
        path: The configuration file.
        config: What it said when the agent started.
        catalogue: The catalogue that it named.
        scrapers: The scrapers in use, by source.
        told: Up to when a family was recorded, for sources that go on from there.
    """

    def __init__(
        self,
        path: Path,
        config: Config,
        catalogue: Catalogue,
        scrapers: dict[str, Scraper],
        told: Callable[[str], int] = lambda _: 0,
    ) -> None:
        self._path, self._told = path, told
        self._config, self._catalogue, self._scrapers = config, catalogue, scrapers
        self._asked = self._seen = 0  # no Event: a signal may come while its lock is held

    def want(self, *_: object) -> None:
        """Ask for a reload; a signal handler."""
        self._asked += 1

    def wanted(self) -> bool:
        """Whether one was asked for since the last call."""
        before, self._seen = self._seen, self._asked
        return before != self._seen

    def plan(self) -> Plan:
        """The plan for what is configured now.

        Raises:
            ConfigError: It is wrong, or changes what only a restart can; nothing has changed.
        """
        config = configs.load(self._path)
        try:
            return self._plan(config)
        except SettingError as error:
            raise configs.located(error, str(self._path)) from error

    def _plan(self, config: Config) -> Plan:
        _refuse_fixed(self._config, config)
        catalogue = planning.catalogue(config)
        scrapers = {
            source: self._scrapers[source] if self._stays(source, config, catalogue) else new
            for source, new in planning.scrapers(config, self._told).items()
        }
        plan = planning.plan(config, catalogue, scrapers)
        self._config, self._catalogue, self._scrapers = config, catalogue, scrapers
        return plan

    def _stays(self, source: str, config: Config, catalogue: Catalogue) -> bool:
        if source not in self._scrapers:
            return False
        section = _section(source)
        unchanged: bool = self._config.names == config.names
        unchanged &= getattr(self._config, section) == getattr(config, section)
        # Readers remember what a metric's beans are: one that means others now needs a new reader.
        before = self._catalogue.metrics
        return unchanged and all(
            before.get(name, metric) == metric for name, metric in catalogue.metrics.items()
        )


def _section(source: str) -> str:
    """The section of the configuration that says how a source is reached."""
    if source in _ADMIN:
        return "admin"
    return source if source == "metadata_log" else "source"


def _refuse_fixed(before: Config, after: Config) -> None:
    old, new = (dict(marked(config, "restart")) for config in (before, after))
    for key in {**old, **new}:
        if old.get(key) != new.get(key):
            raise SettingError(key, "it has changed, which takes a restart")
