"""Traces of a benchmark: what is read back is what was recorded."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bench import trace
from collector.model import (
    Answer,
    Commit,
    Identity,
    Notice,
    Offsets,
    Partition,
    Reading,
    Scrape,
    Series,
)

if TYPE_CHECKING:
    from pathlib import Path

METRIC = "kafka.partition.log_end_offset"
IDENTITY = Identity("cluster", "1", "4.3.1", 1_000)
FIRST, SECOND, THIRD = (Series(METRIC, "orders\n\u0000", number) for number in range(3))
CLIENT = Series(METRIC, user="u", client_id="", labels=(("a", "b"), ("c", "")))


def scrape(number: int, *readings: Reading, offsets: Offsets | None = None) -> Scrape:
    tick = 1_795_000_000_000_000 + number * 10_000_000
    notices = (Notice("leader_change", FIRST, None, "2"),)
    answer = Answer(readings, 3, 1, offsets, notices)
    return Scrape("offsets", tick, tick + 5, tick + 900, 10_000_000, "ok", IDENTITY, answer)


def reading(
    zeros: tuple[Series, ...] = (), values: dict[Series, float | None] | None = None
) -> Reading:
    return Reading(METRIC, "gauge", frozenset(zeros), values or {}, ("known_wrong",))


def test_scrapes_are_read_back_as_they_were(tmp_path: Path) -> None:
    commits = {Commit("g", "orders", 0): None, Commit("g", "orders", 1): 2**62}
    offsets = Offsets(commits, {Partition("orders", 0): 7}, {Commit("g", "orders", 0): 9})
    first = scrape(0, reading((FIRST, SECOND), {THIRD: 0.1, CLIENT: None}), offsets=offsets)
    told = [
        first,
        scrape(1, reading((FIRST, SECOND), {THIRD: 0.1, CLIENT: None}), offsets=offsets),
        scrape(2, reading((SECOND,), {FIRST: 2.0**60, THIRD: -1.5})),
        replace(first, outcome="timeout", answer=None, error="no answer"),
        scrape(4, reading(), Reading("other", "counter", values={CLIENT: 1.0})),
        scrape(5, reading((FIRST, SECOND, THIRD, CLIENT)), offsets=Offsets({}, {}, {})),
    ]
    path = tmp_path / "trace.msgpack.xz"
    trace.write(path, told)
    assert list(trace.read(path)) == told


def test_a_source_that_saw_no_change_hands_over_the_same_set_again(tmp_path: Path) -> None:
    path = tmp_path / "trace.msgpack.xz"
    trace.write(path, [scrape(number, reading((FIRST, SECOND))) for number in range(2)])
    zeros = [one.answer.readings[0].zeros for one in trace.read(path) if one.answer is not None]
    assert zeros[0] is zeros[1]
