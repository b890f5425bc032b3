"""What truly went wrong in the lakes of ``make test-report``, by their schedules."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lakehouse.core.periods import DAY_US
from lakehouse.sample import cluster
from tests.lake_builder import micros
from tests.story_lake import HOUR, WINDOW, Story
from tests.truth import expected
from tests.truth.schedule import LAGS
from tests.truth.steps import Span, united
from tests.truth.world import S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.truth.schedule import Schedule
    from tests.truth.world import World

COPIES: Final = dict(zip(("copy", "delete"), LAGS, strict=True))
"""The metric of a simulated lag, by what is behind."""

_MOVED_US: Final = S
"""An incident that starts this close to a change of the live brokers was caused by it."""


class Fault(NamedTuple):
    """What truly happened.

    Attributes:
        kind: One of the sample's kinds; a broker is ``hung`` or ``isolated``; uploads or deletions
            of a topic are ``waiting`` without an error.
        name: Name of the broker, topic, client or group.
        start: Microseconds since 1970.
        end: The same.
    """

    kind: str
    name: str
    start: int
    end: int


def of_sample(facts: Mapping[str, Any], seed: int = 1) -> list[Fault]:
    """Return the faults of the sample in the weeks around a report."""
    start = us_of(facts["from"])
    monday = start - _weekday(start) * DAY_US
    now = us_of(facts["generated_at"])
    running = now - now % DAY_US - _weekday(now) * DAY_US
    weeks = (running - monday) // (7 * DAY_US)
    return [Fault(*one) for one in cluster.of_weeks(seed, running, int(weeks))]


def of_story(story: Story) -> list[Fault]:
    """Return the faults of the invented cluster."""
    down, back = story.outage
    since, until = story.maintenance
    clicks = story.at(0.8)
    seconds = [
        ("killed", "broker-2", down, back),
        ("restarted", "broker-3", since + 60, until - 60),
        ("slow", "clicks", clicks + 30, clicks + 75),
        *(("throttled", "bulk-loader", *one) for one in story.throttled),
        ("behind", "archive", story.at(0.3), story.at(0.3) + 14 * WINDOW),
        ("late", "nightly", story.at(0.7), story.at(0.9)),
    ]
    assert story.first + story.hours * HOUR > max(end for *_, end in seconds)
    return [Fault(kind, name, micros(a), micros(b)) for kind, name, a, b in seconds]


def of_demo(truth: Mapping[str, Any]) -> list[Fault]:
    """Return the faults that the demo noted while it played them."""
    rows = [
        *(("killed", one["source"], one["killed_at"], one["back_at"])
          for one in truth.get("killed_brokers", ())),
        *(("throttled", one["client_id"] or one["user"], span["start"], span["end"])
          for one in truth.get("clients", ()) for span in one["spans"] if one["throttled"]),
        *(("behind", one["topic"], one["start"], one["end"])
          for one in truth.get("tier_lags", ())),
        *(("late", one["group"], one["first_unread_at"], one["caught_up_at"])
          for one in truth.get("late_groups", ())),
        *(("late", one["group"], truth["from"], one["at"])
          for one in truth.get("expired", ()) if one["offsets_most"]),
    ]  # fmt: skip
    return [Fault(kind, name, us_of(start), us_of(end)) for kind, name, start, end in rows]


def of_schedule(schedule: Schedule) -> list[Fault]:
    """Return the faults of a simulated cluster: of brokers, and what else its state shows."""
    world = schedule.world
    return [
        *_of_brokers(world),
        *(Fault("slow", topic, *span) for topic, span in _by_followers(world)),
        *(Fault("throttled", client, *span)
          for (_, client), brokers in world.throttles.items()
          for spans in brokers.values() for span in spans),
        *(Fault("waiting", topic, *span)
          for (_, topic, _), steps in world.lag.items()
          for span in steps.spans(lambda value: value > 0, world.shape.whole)),
        *(Fault("late", group, at, at) for group, at in lost(world)),
    ]  # fmt: skip


def _of_brokers(world: World) -> Iterator[Fault]:
    """Yield when brokers were down, hung or isolated, until controllers had them back."""
    for broker, process in world.process.items():
        states = {
            "killed": process.spans(lambda state: state == "down", world.shape.whole),
            "hung": process.spans(lambda state: state == "hung", world.shape.whole),
            "isolated": world.isolated.spans(lambda one, me=broker: one == me, world.shape.whole),
        }
        for kind, spans in states.items():
            for start, end in spans:
                back = next((at for at in world.live.times if at >= end
                             and broker in world.live.at(at)), end)  # fmt: skip
                yield Fault(kind, f"broker-{broker}", start, back)


def _by_followers(world: World) -> Iterator[tuple[str, Span]]:
    """Yield the bad times of partitions that no change of the live brokers started."""
    for kind in ("under", "leaderless"):
        for (topic, _), bad in expected.partitions(world, kind).items():
            for span in bad.spans:
                if not any(abs(at - span[0]) <= _MOVED_US for at in world.live.times):
                    yield topic, span


def lost(world: World) -> Iterator[tuple[str, int]]:
    """Yield each group that lost messages unread, and when."""
    for commit, position in world.commits.items():
        starts = world.logs[commit.log].starts
        for at, (before, now) in zip(starts.times, pairwise(starts.values), strict=True):
            if now > max(before, position.at(at)):
                yield commit.group, at


def bad_times(world: World, event: Mapping[str, Any]) -> list[Span] | None:
    """Return when the subject of an event was truly bad; None: its kind is not simulated."""
    match event["kind"]:
        case "availability":
            each = [bad.spans for kind in ("under", "leaderless")
                    for (topic, _), bad in expected.partitions(world, kind).items()
                    if topic in event["topics"]]  # fmt: skip
        case "throttling":
            each = list(world.throttles[event["of"], event["client_id"]].values())
        case "tiered":
            each = [steps.spans(lambda value: value > 0, world.shape.whole)
                    for (metric, topic, _), steps in world.lag.items()
                    if metric == COPIES[event["of"]] and topic in event["topics"]]  # fmt: skip
        case _:
            return None
    return united(span for spans in each for span in spans)


def us_of(instant: str) -> int:
    """Return an instant of JSON in microseconds since 1970."""
    return round(datetime.fromisoformat(instant).timestamp() * 1_000_000)


def _weekday(us: int) -> int:
    """Return the day of the week, 0 is Monday; 1970 began on a Thursday."""
    return (us // DAY_US + 3) % 7
