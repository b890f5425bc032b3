"""The agents of a schedule under virtual clocks: real scraper, encoder, spool and delivery.

Each source has a thread of its own in a real agent, so a slow answer makes the next question to the
same source late, and that to another not.
"""

from __future__ import annotations

import heapq
import random
from collections import defaultdict
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, NamedTuple

from collector import catalogue
from collector.agent.plan import Task
from collector.agent.scrape_attempt import Scraper, skipped
from collector.delivery.delivery import Delivery
from collector.model import Event, Series
from collector.spool.recorder import Recorder
from collector.spool.source_states import Scope
from collector.spool.spool import Spool
from lakehouse import tables
from lakehouse.tables import MAX_GAP_INTERVALS
from tests.truth.sources import FAMILIES, WITH_LOGS, Instants, Simulated
from tests.truth.steps import Span
from tests.truth.world import S

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tests.truth.schedule import Schedule, Watch

WINDOW_US: Final = tables.DEFAULT_WINDOW_SECONDS * S
_SPOOL_BYTES: Final = 64 << 20
_LATE: Final = 0.03  # seconds until a thread gets to what is due, at most
_SEAL_US: Final = 20 * S


class Seen(NamedTuple):
    """What a schedule's agents did.

    Attributes:
        scrapes: Attempts that were recorded.
        apart_us: Per family, the longest time from a question to the next answer that was vouched
            for: nothing in between was looked at.
        unlooked: Per broker, such times of the min ISR family that are longer than its cadence.
        in_part: Answers that lacked something.
    """

    scrapes: int
    apart_us: dict[str, int]
    unlooked: dict[int, list[Span]]
    in_part: int = 0


def live(schedule: Schedule, lake: Path, folder: Path) -> Seen:
    """Let all agents of a cluster live, and deliver everything.

    Args:
        schedule: What happens.
        lake: Where it is delivered to.
        folder: Where the spools are.
    """
    brokers = schedule.world.shape.brokers
    return together(live_on(schedule, broker, lake, folder) for broker in brokers)


def live_on(schedule: Schedule, broker: int, lake: Path, folder: Path) -> Seen:
    """The same of one broker's agent, or of both that it has."""
    watch = schedule.watches[broker]
    seen = _Agent(schedule, broker, watch, lake, folder).live()
    if watch.twin is None:
        return seen
    other = _Agent(schedule, broker, watch.twin, lake, folder).live()
    # Where one of them does not look the other may.
    return together((seen, other))._replace(unlooked={broker: []})


def together(agents: Iterable[Seen]) -> Seen:
    """What several agents did."""
    seen = Seen(0, {}, {})
    for one in agents:
        seen = Seen(
            seen.scrapes + one.scrapes, seen.apart_us, seen.unlooked | one.unlooked,
            seen.in_part + one.in_part,
        )  # fmt: skip
        for family, us in one.apart_us.items():
            seen.apart_us[family] = max(seen.apart_us.get(family, 0), us)
    return seen


class _Agent:
    """All lives of one broker's agent."""

    def __init__(
        self, schedule: Schedule, broker: int, watch: Watch, lake: Path, folder: Path
    ) -> None:
        self._schedule, self._broker, self._lake = schedule, broker, lake
        self._folder, self._watch = folder, watch
        self._rng = random.Random(self._watch.seed)
        self._catalogue = catalogue.load()
        self._delays = {
            metric.name: metric.delays
            for metric in self._catalogue.metrics.values()
            if any(metric.delays)
        }
        self._scrapes = 0
        self._sources: list[Simulated] = []
        self._apart = _Apart()

    def live(self) -> Seen:
        """Every life, and what each leaves to the next."""
        lives = list(self._lives())
        for number, (span, in_order) in enumerate(lives):
            spool = "new" if self._watch.new_spool and number == len(lives) - 1 else "old"
            name = f"{self._schedule.cluster}-{self._broker}-{self._watch.seed}-{spool}.db"
            path = self._folder / name
            with ExitStack() as things:
                self._one_life(things, path, span, in_order=in_order)
        unlooked = {self._broker: self._apart.spans["min_isr"]}
        in_part = sum(source.in_part for source in self._sources)
        return Seen(self._scrapes, self._apart.longest_us, unlooked, in_part)

    def _lives(self) -> Iterator[tuple[Span, bool]]:
        begin_us, end_us = self._schedule.world.shape.whole
        start_us = begin_us + self._rng.randrange(20 * S)
        for (gone_us, back_us), in_order in self._watch.away:
            yield (start_us, gone_us), in_order
            start_us = back_us
        yield (start_us, end_us), True

    def _one_life(self, things: ExitStack, path: Path, span: Span, *, in_order: bool) -> None:
        clock = Instants()
        clock.now_us = span[0]
        spool = things.enter_context(Spool(path, _SPOOL_BYTES, clock))
        recorder = Recorder(
            spool,
            Scope({f"broker-{self._broker}": None}, self._delays, self._catalogue.hash),
            WINDOW_US,
        )
        delivery = Delivery(str(self._lake), dict, spool, recorder)
        recorder.begin(span[0])
        recorder.note(Event(span[0], "agent_start", Series("")))
        sealed_us = span[0]
        for task, clock_, due_us, missed in self._due(span):
            if due_us >= sealed_us + _SEAL_US:
                recorder.seal(due_us)
                sealed_us = due_us
            if missed:
                recorder.record(skipped(task.family, task.interval_us, due_us))
                continue
            clock_.now_us = due_us
            scrape = task.scraper.attempt(task.family, task.interval_us)
            if clock_.now_us >= span[1]:
                continue  # it ended before that was kept
            recorder.record(scrape)
            self._scrapes += 1
            self._apart.note(task, scrape.asked_us, scrape.answered_us, scrape.outcome)
        if in_order:
            recorder.flush(span[1])
            while delivery.deliver_next():
                pass

    def _due(self, span: Span) -> Iterator[tuple[Task, Instants, int, bool]]:
        """What is read when; True: the tick passed while the one before was still under way."""
        tasks = self._tasks()
        start_us = span[0] + self._rng.randrange(S)
        # All at the start, then at multiples of their intervals.
        queue = [(start_us, number) for number in range(len(tasks))]
        heapq.heapify(queue)
        while queue:
            tick_us, number = heapq.heappop(queue)
            task, clock = tasks[number]
            next_us = tick_us - tick_us % task.interval_us + task.interval_us
            free_us = max(tick_us, clock.now_us)
            due_us = free_us + round(self._rng.uniform(0, _LATE) * S)
            if due_us >= span[1]:
                continue
            if tick_us < free_us and number == self._under_way.get(id(clock)):
                yield task, clock, tick_us - tick_us % task.interval_us, True
            else:
                self._under_way[id(clock)] = number
                yield task, clock, due_us, False
            heapq.heappush(queue, (next_us, number))

    def _tasks(self) -> list[tuple[Task, Instants]]:
        found = []
        self._under_way: dict[int, int] = {}
        families = WITH_LOGS if self._schedule.world.logs else FAMILIES
        for via, names in families.items():
            clock = Instants()
            source = Simulated(self._schedule, self._broker, via, self._rng, clock, self._watch)
            self._sources.append(source)
            scraper = Scraper(source, clock)
            for name in names:
                family = self._catalogue.family(name)
                found.append((Task(family, family.cadence_us, scraper, via), clock))
        return found


class _Apart:
    """How far apart what was looked at lies, where the time between is vouched for."""

    def __init__(self) -> None:
        self.longest_us: dict[str, int] = {}
        self.spans: defaultdict[str, list[Span]] = defaultdict(list)
        self._before: dict[str, tuple[int, int]] = {}

    def note(self, task: Task, asked_us: int, answered_us: int, outcome: str) -> None:
        """An attempt in its order."""
        name = task.family.name
        before = self._before.pop(name, None)
        if outcome != "ok":
            return
        self._before[name] = (asked_us, answered_us)
        if before is not None and asked_us - before[1] <= MAX_GAP_INTERVALS * task.interval_us:
            apart_us = answered_us - before[0]
            self.longest_us[name] = max(self.longest_us.get(name, 0), apart_us)
            if apart_us > task.interval_us:
                self.spans[name].append((before[0], answered_us))
