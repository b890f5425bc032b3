"""Load and faults: everything that jmxlake exists to see really happens, most of it at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Final, NamedTuple

from demo.clock import now_iso
from demo.scenarios import broker_loss, expiry, falling_behind, throttling, tiering, traffic
from demo.stage import Cue, CurtainError, Stage
from demo.topics import create_healthy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from demo.cluster import Cluster
    from demo.truth import Truth

_LIMIT_SECONDS = 1_200.0


class Play(NamedTuple):
    """A part of a scenario, which plays in a thread of its own.

    Attributes:
        scenario: The scenario's name in truth.json.
        act: Plays it.
        prepare: Creates its topics beforehand.
        gives: The cues that it gives.
    """

    scenario: str
    act: Callable[[Stage], None]
    prepare: Callable[[Stage], None]
    gives: tuple[Cue, ...] = ()


PLAYS: Final = (
    Play("throttling", throttling.run, throttling.prepare, (Cue.CLIENTS_ENDED,)),
    Play("expiry", expiry.load, expiry.prepare),
    Play("expiry", expiry.run, expiry.prepare, (Cue.FROZEN,)),
    Play("falling_behind", falling_behind.run, falling_behind.prepare, (Cue.CAUGHT_UP,)),
    Play("upload_lag", tiering.lag_in_copy, tiering.prepare, (Cue.UPLOADED,)),
    Play("deletion_lag", tiering.lag_in_delete, tiering.prepare, (Cue.DELETION_HELD,)),
    Play("broker_loss", broker_loss.load, broker_loss.prepare),
    Play("broker_loss", broker_loss.run, broker_loss.prepare, (Cue.KILLED, Cue.BACK)),
    Play("traffic", traffic.run, traffic.prepare),
    Play("held_writes", traffic.wait_for_replicas, traffic.prepare, (Cue.WRITERS_READY,)),
)


def prepare(cluster: Cluster, truth: Truth, plays: Sequence[Play] = PLAYS) -> None:
    """Create topics and quotas, and let the first segments reach the remote tier.

    What cannot be prepared makes its scenarios missed.

    Raises:
        DemoError: Kafka refused the topics to which nothing happens.
    """
    stage = Stage(cluster, truth)
    create_healthy(cluster)
    for prepared in dict.fromkeys(play.prepare for play in plays):
        try:
            prepared(stage)
        except Exception as error:  # noqa: BLE001 - one scenario less, and the report says so
            for play in plays:
                if play.prepare is prepared:
                    truth.miss(play.scenario, _reason(error))


def drive(
    cluster: Cluster,
    truth: Truth,
    plays: Sequence[Play] = PLAYS,
    seconds: float = _LIMIT_SECONDS,
) -> None:
    """Play all scenarios that were prepared, two minutes or more; one that fails ends alone.

    Args:
        cluster: Where.
        truth: Told which were played and which were missed.
        plays: All parts of all scenarios.
        seconds: What is not over then is called off.
    """
    stage = Stage(cluster, truth)
    started = now_iso()
    stage.call_off(cue for play in plays if play.scenario in truth.missed for cue in play.gives)
    playable = [play for play in plays if play.scenario not in truth.missed]
    with ThreadPoolExecutor(len(plays), thread_name_prefix="scenario") as pool:
        try:
            wait([pool.submit(_play, play, stage) for play in playable], seconds)
        finally:  # also on Ctrl-C, which only this thread hears
            stage.curtain.set()
    truth.set("driven", {"start": started, "end": now_iso()})
    names = dict.fromkeys(play.scenario for play in plays)
    truth.set("scenarios_played", [name for name in names if name not in truth.missed])


def _play(play: Play, stage: Stage) -> None:
    try:
        play.act(stage)
    except CurtainError:
        stage.truth.miss(play.scenario, "It was not over in time.")
    except Exception as error:  # noqa: BLE001 - one scenario less, and the report says so
        stage.truth.miss(play.scenario, _reason(error))
    finally:
        stage.call_off(play.gives)


def _reason(error: Exception) -> str:
    lines = str(error).splitlines() or [""]
    return lines[0] or type(error).__name__
