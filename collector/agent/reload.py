"""Reload of configuration and catalogue. Unchanged sources keep their connections."""

from collections.abc import Callable
from pathlib import Path

from collector.agent import plan
from collector.agent.discovery import Discovery, is_found
from collector.agent.plan import Plan, Scrapers
from collector.catalogue import Catalogue
from collector.config import loader
from collector.config.schema import Config
from collector.errors import SettingError
from collector.settings import Section, marked


class Reload:
    """The configuration in force, and the plan for a changed one.

    Args:
        path: Configuration file.
        config: Its content at the start of the agent.
        catalogue: Its catalogue.
        scrapers: Current scrapers.
        discovery: Discovery of sources that the configuration does not name.
        recorded_until: Returns the end of the recorded time of a family of a source (µs), where a
            history continues.

    Attributes:
        catalogue: The catalogue in force.
    """

    def __init__(
        self,
        path: Path,
        config: Config,
        catalogue: Catalogue,
        scrapers: Scrapers,
        discovery: Discovery,
        recorded_until: Callable[[str, str], int] = lambda *_: 0,
    ) -> None:
        self._path, self._discovery, self._recorded_until = path, discovery, recorded_until
        self._next = config, discovery.found(config), catalogue, scrapers
        self.adopted()
        self._found = self._taken = 0  # counts of changed discoveries, and of those used
        self._asked = self._seen = 0  # counts, because a signal can interrupt a holder of a lock

    def want(self, *_: object) -> None:
        """Request a reload. This is a signal handler."""
        self._asked += 1

    def wanted(self) -> bool:
        """Return True if a reload was requested since the last call."""
        before, self._seen = self._seen, self._asked
        return before != self._seen

    def plan(self) -> Plan:
        """Return the plan for the current configuration file.

        Raises:
            ConfigError: The file is invalid, or its change requires a restart.
        """
        config = loader.load(self._path)
        try:
            _refuse_fixed(self._config, config)
            return self._planned(config)
        except SettingError as error:
            raise loader.located(error, str(self._path)) from error

    @property
    def is_open(self) -> bool:
        """Return True if discovery is needed."""
        return any(is_found(each.source) for each in self._config.each())

    def look(self) -> dict[str, str]:
        """Discover sources and return the errors, by entry of the configuration.

        Raises:
            JmxlakeError: A file of targets is invalid, or the result cannot be stored.
        """
        self._discovery.look(self._config)
        if self._discovery.found(self._config) != self._in_force:
            self._found += 1
        return self._discovery.problems

    def found(self) -> Callable[[], Plan] | None:
        """Return a function that makes the plan with newly discovered sources. None if none."""
        before, self._taken = self._taken, self._found
        return None if before == self._taken else lambda: self._planned(self._config)

    def adopted(self) -> None:
        """Set the last plan in force."""
        self._config, self._in_force, self.catalogue, self._scrapers = self._next

    def _planned(self, config: Config) -> Plan:
        found = self._discovery.found(config)
        catalogue = plan.catalogue(found)
        scrapers = {
            at: self._scrapers[at] if self._stays(at, found, catalogue) else made
            for at, made in plan.scrapers(found, self._recorded_until).items()
        }
        tasks = plan.tasks(found, catalogue, scrapers)
        self._next = config, found, catalogue, scrapers
        return Plan(tasks, plan.delays(found, catalogue), catalogue.hash, plan.sources(found))

    def _stays(self, at: tuple[str, str], config: Config, catalogue: Catalogue) -> bool:
        source, via = at
        before, after = (_of(each, source) for each in (self._in_force, config))
        if at not in self._scrapers or before is None or after is None:
            return False
        unchanged: bool = before.names == after.names
        unchanged &= _settings(before, via) == _settings(after, via)
        # A reader caches the MBeans of a metric, so a metric with other MBeans needs a new reader.
        known, now = self.catalogue.metrics, catalogue.metrics
        return unchanged and all(known.get(name, metric) == metric for name, metric in now.items())


def _settings(config: Config, via: str) -> list[Section | None]:
    """Return the sections of the transport of a family or of its ``via``."""
    for key, transport in config.transports().items():
        if via == transport.via or via in transport.slow:
            return [getattr(config, key), config.admin if transport.with_admin else None]
    return []


def _of(config: Config, source: str) -> Config | None:
    return next((each for each in config.each() if each.source.name == source), None)


def _refuse_fixed(before: Config, after: Config) -> None:
    """Raise SettingError for a change that requires a restart.

    Such are changes of the agent's own keys, and of a source that existed before.
    """
    several = before.sources is not None or after.sources is not None
    pairs = [(before, after)]
    if several:
        names = dict.fromkeys(each.source.name for each in before.each())
        found = [(_of(before, name), _of(after, name)) for name in names]
        pairs += [(old, new) for old, new in found if old is not None and new is not None]
    for number, pair in enumerate(pairs):
        then, now = (dict(marked(config, "restart")) for config in pair)
        for key in {**then, **now}:
            is_own = number > 0 or not several or not key.startswith("source.")
            if is_own and then.get(key) != now.get(key):
                raise SettingError(key, "a change requires a restart of the agent")
