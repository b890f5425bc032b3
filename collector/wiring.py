"""Puts an agent together from its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector import planning
from collector.agent import Agent
from collector.bronze_options import bounded
from collector.clock import SystemClock
from collector.config import storage_options
from collector.delivery import Delivery
from collector.recorder import Recorder
from collector.schedule import phase_us

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.catalogue import Catalogue
    from collector.scraper import Scraper
    from collector.sections import Config
    from collector.spool import Spool


def recorder(config: Config, loaded: Catalogue, spool: Spool) -> Recorder:
    """The recorder over an open spool."""
    return Recorder(
        spool,
        config.source.name,
        config.window.us,
        planning.memory(config, loaded),
        loaded.hash,
        config.source.cluster,
    )


def delivery(config: Config, spool: Spool, recorder: Recorder | None = None) -> Delivery:
    """The delivery of an open spool.

    Args:
        config: Where to.
        spool: Where from.
        recorder: What fills the spool, if anything does.
    """
    # What is wrong with the file or the environment is said at the start.
    bounded(config.lake.path, storage_options(config.lake))
    return Delivery(config.lake.path, lambda: storage_options(config.lake), spool, recorder)


def agent(
    config: Config,
    loaded: Catalogue,
    found: Mapping[str, Scraper],
    recorder: Recorder,
    spool: Spool,
) -> Agent:
    """The whole agent over an open spool."""
    interval_us = config.lake.commit_interval.us
    return Agent(
        planning.tasks(config, loaded, found),
        recorder,
        delivery(config, spool, recorder),
        interval_us,
        SystemClock(),
        commit_phase_us=phase_us(spool.agent, interval_us),
    )
