"""A scenario that cannot be played is told, and the others play on; here they are functions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from demo import driver
from demo.driver import PLAYS, Play
from demo.errors import DemoError
from demo.stage import Cue, Stage
from demo.truth import Truth

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from demo.cluster import Cluster

NO_CLUSTER = cast("Cluster", None)


def nothing(stage: Stage) -> None:
    """Prepare or play nothing."""


def failing(error: Exception) -> Callable[[Stage], None]:
    def fail(_: Stage) -> None:
        raise error

    return fail


def noting(name: str, *cues: Cue) -> Callable[[Stage], None]:
    """Wait until the cues are over, and note that it went on."""

    def note(stage: Stage) -> None:
        stage.wait_over(*cues)
        stage.truth.add("noted", who=name)

    return note


def needing(cue: Cue) -> Callable[[Stage], None]:
    return lambda stage: stage.wait_for(cue)


def driven(*plays: Play, seconds: float = 60) -> Truth:
    truth = Truth()
    driver.drive(NO_CLUSTER, truth, plays, seconds)
    return truth


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (DemoError("Kafka went away.\nits log"), "Kafka went away."),
        (KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)), "UNKNOWN_TOPIC_OR_PART"),
        (ValueError(), "ValueError"),
    ],
)
def test_drive_failing_scenario_ends_alone(
    error: Exception, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = driven(
        Play("bad", failing(error), nothing, (Cue.KILLED,)),
        Play("good", noting("good", Cue.KILLED), nothing),
    )
    truth.write(tmp_path / "truth.json")
    written: Any = json.loads((tmp_path / "truth.json").read_text())
    assert written["noted"] == [{"who": "good"}]
    assert written["scenarios_played"] == ["good"]
    (missed,) = written["scenarios_missed"]
    assert missed["scenario"] == "bad"
    assert reason in missed["reason"]
    (line,) = capsys.readouterr().out.splitlines()
    assert "bad could not be played" in line
    assert reason in line


def test_drive_scenario_without_its_cue_is_missed_too() -> None:
    truth = driven(
        Play("bad", failing(DemoError("no")), nothing, (Cue.KILLED,)),
        Play("waits", needing(Cue.KILLED), nothing),
    )
    assert truth.missed == {"bad": "no", "waits": "It never came that broker 2 was killed."}
    assert truth.facts["scenarios_played"] == []


def test_drive_given_cue_lets_others_play() -> None:
    truth = driven(
        Play("gives", lambda stage: stage.give(Cue.BACK), nothing, (Cue.BACK,)),
        Play("waits", needing(Cue.BACK), nothing),
    )
    assert truth.missed == {}
    assert truth.facts["scenarios_played"] == ["gives", "waits"]


def test_drive_unprepared_scenario_is_not_played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "create_healthy", lambda _: None)
    truth = Truth()
    refused = failing(DemoError("refused"))
    plays = (
        Play("bad", noting("bad"), refused, (Cue.KILLED,)),
        Play("bad too", noting("bad too"), refused),
        Play("good", noting("good", Cue.KILLED), nothing),
    )
    driver.prepare(NO_CLUSTER, truth, plays)
    driver.drive(NO_CLUSTER, truth, plays)
    assert truth.missed == {"bad": "refused", "bad too": "refused"}
    assert truth.lists["noted"] == [{"who": "good"}]


def test_drive_scenario_of_two_parts_is_missed_once() -> None:
    truth = driven(Play("one", nothing, nothing), Play("one", failing(DemoError("no")), nothing))
    assert truth.missed == {"one": "no"}
    assert truth.facts["scenarios_played"] == []


def test_drive_endless_scenario_is_called_off() -> None:
    truth = driven(Play("endless", needing(Cue.FROZEN), nothing), seconds=0)
    assert truth.missed == {"endless": "It was not over in time."}


def test_expect_unmet_condition_fails_its_scenario() -> None:
    def hopes(stage: Stage) -> None:
        stage.expect(lambda: False, "a wonder", seconds=0)

    truth = driven(Play("hopes", hopes, nothing))
    assert truth.missed == {"hopes": "Waited 0 s in vain: a wonder."}


def test_plays_give_each_cue_once() -> None:
    """A cue that nobody gives would keep those that wait for it until the end."""
    given = [cue for play in PLAYS for cue in play.gives]
    assert sorted(given, key=list(Cue).index) == list(Cue)
