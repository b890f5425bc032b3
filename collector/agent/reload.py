"""Reload: reads configuration and catalogue again, and keeps the connections that still fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collector.agent import plan
from collector.agent.plan import Plan
from collector.config import loader
from collector.config.schema import marked
from collector.errors import SettingError
from collector.sources.factory import SLOW_ADMIN

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from collector.agent.scraper import Scraper
    from collector.catalogue import Catalogue
    from collector.config.schema import Config

_ADMIN: Final = ("admin", *SLOW_ADMIN)


class Reload:
    """Holds the configuration in force, and makes the plan for a changed one.

    Args:
        path: The configuration file.
        config: Its content when the agent started.
        catalogue: The catalogue that it named.
        scrapers: The scrapers in use, by source.
        recorded_until: Up to when a family was recorded, for sources that go on from there.

    Attributes:
        catalogue: The catalogue in force.
    """

    def __init__(
        self,
        path: Path,
        config: Config,
        catalogue: Catalogue,
        scrapers: dict[str, Scraper],
        recorded_until: Callable[[str], int] = lambda _: 0,
    ) -> None:
        self._path, self._recorded_until = path, recorded_until
        self._config, self.catalogue, self._scrapers = config, catalogue, scrapers
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
        config = loader.load(self._path)
        try:
            _refuse_fixed(self._config, config)
            catalogue = plan.catalogue(config)
            scrapers = {
                source: self._scrapers[source] if self._stays(source, config, catalogue) else made
                for source, made in plan.scrapers(config, self._recorded_until).items()
            }
            tasks = plan.tasks(config, catalogue, scrapers)
            delays = plan.delays(config, catalogue)
        except SettingError as error:
            raise loader.located(error, str(self._path)) from error
        self._config, self.catalogue, self._scrapers = config, catalogue, scrapers
        return Plan(tasks, delays, catalogue.hash)

    def _stays(self, source: str, config: Config, catalogue: Catalogue) -> bool:
        if source not in self._scrapers:
            return False
        # The section that says how it is reached.
        named = source if source == "metadata_log" else "source"
        section = "admin" if source in _ADMIN else named
        unchanged: bool = self._config.names == config.names
        unchanged &= getattr(self._config, section) == getattr(config, section)
        # Readers remember what a metric's beans are: one that means others now needs a new reader.
        before = self.catalogue.metrics
        return unchanged and all(
            before.get(name, metric) == metric for name, metric in catalogue.metrics.items()
        )


def _refuse_fixed(before: Config, after: Config) -> None:
    old, new = (dict(marked(config, "restart")) for config in (before, after))
    for key in {**old, **new}:
        if old.get(key) != new.get(key):
            raise SettingError(key, "it has changed, which takes a restart")
