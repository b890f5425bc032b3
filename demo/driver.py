"""Load and faults: everything that jmxlake exists to see really happens, most of it at once."""

from __future__ import annotations

from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

from demo.clock import now_iso
from demo.scenarios import broker_loss, expiry, falling_behind, throttling, tiering, traffic
from demo.stage import CurtainError, Stage
from demo.topics import create_healthy

if TYPE_CHECKING:
    from collections.abc import Callable

    from demo.cluster import Cluster
    from demo.truth import Truth

_SCENARIOS = (throttling, expiry, falling_behind, tiering, broker_loss, traffic)
_PLAYS: tuple[Callable[[Stage], None], ...] = (
    throttling.run,
    expiry.load,
    expiry.run,
    falling_behind.run,
    tiering.run,
    broker_loss.load,
    broker_loss.run,
    traffic.run,
    traffic.wait_for_replicas,
)


def prepare(cluster: Cluster, truth: Truth) -> None:
    """Create topics and quotas, and let the first segments reach the remote tier.

    Raises:
        DemoError: Kafka refused something, or it did not happen in time.
    """
    stage = Stage(cluster, truth)
    create_healthy(cluster)
    for scenario in _SCENARIOS:
        scenario.prepare(stage)


def drive(cluster: Cluster, truth: Truth) -> None:
    """Play all scenarios, about two minutes; the first that fails calls off the rest.

    Raises:
        DemoError: Something that had to happen did not.
    """
    stage = Stage(cluster, truth)
    started = now_iso()
    with ThreadPoolExecutor(len(_PLAYS), thread_name_prefix="scenario") as pool:
        plays = [pool.submit(play, stage) for play in _PLAYS]
        try:
            wait(plays, return_when=FIRST_EXCEPTION)
        finally:  # also on Ctrl-C, which only this thread hears
            stage.curtain.set()
    truth.set("driven", {"start": started, "end": now_iso()})
    for failure in (play.exception() for play in plays):
        if failure is not None and not isinstance(failure, CurtainError):
            raise failure
