"""Puts an agent together from its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from collector import crashes, planning
from collector.agent import Agent
from collector.bronze_options import bounded
from collector.clock import SystemClock
from collector.coarsening import Bounds
from collector.config import storage_options
from collector.delivery import Delivery
from collector.recorder import Recorder
from collector.schedule import phase_us

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.catalogue import Catalogue
    from collector.courier import Deliverer
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


def reporting_crashes(config: Config) -> Config:
    """The same, with a JVM that puts the report of its crash beside the spool."""
    options = f"{crashes.option(config.spool.path)} {config.java.options}"
    return msgspec.structs.replace(
        config, java=msgspec.structs.replace(config.java, options=options)
    )


def agent(
    config: Config,
    loaded: Catalogue,
    found: Mapping[str, Scraper],
    recorder: Recorder,
    spool: Spool,
    instead: Deliverer | None = None,
) -> Agent:
    """The whole agent over an open spool.

    Args:
        config: What is asked for.
        loaded: The catalogue.
        found: The scrapers by source.
        recorder: Where what is read is kept.
        spool: Where it waits.
        instead: What takes the batches; None: the lake.
    """
    interval_us = config.lake.commit_interval.us
    return Agent(
        planning.tasks(config, loaded, found),
        recorder,
        instead or delivery(config, spool, recorder),
        interval_us,
        SystemClock(),
        commit_phase_us=phase_us(spool.agent, interval_us),
        bounds=Bounds(config.limits.window_rows, config.limits.memory.bytes),
    )
