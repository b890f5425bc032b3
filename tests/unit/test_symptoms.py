"""What is wrong now and since when; and how ``top`` shows it, whatever the terminal's size."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from collector.agent.plan import Task
from collector.catalogue import load
from collector.cli.command import amount, span
from collector.cli.scrape import _setting
from collector.cli.symptoms import KINDS, Board, kinds_of
from collector.cli.top import _ranges, view
from collector.model import Answer, Commit, Identity, Offsets, Partition, Reading, Scrape, Series
from lakehouse.tables.error_text import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

S = 1_000_000
LEADERLESS, UNDER_MIN_ISR, LOST, FENCED, THROTTLED, LAGGING = KINDS
UNDER = "kafka.partition.under_min_isr"
THROTTLE = "kafka.client.produce.throttle_time"
COPY_LAG = "kafka.topic.remote_copy_lag.bytes"
FAMILIES = ("min_isr", "quotas", "tiered", "leaders", "topology", "log")
HOSTILE = "evil\x1b[2J\n[red]\u202etopic\ud800" + "x" * 300


def tasks(*names: str) -> list[Task]:
    return [Task(load().family(name), 10 * S, None, "jmx") for name in names]  # type: ignore[arg-type]


def read(family: str, *found: Mapping[Series, float | None]) -> Scrape:
    readings = tuple(Reading(next(iter(f)).metric, "gauge", values=f) for f in found if f)
    identity = Identity("c", "1", "4.3.1", 1)
    return Scrape(family, 0, 0, 1, 10 * S, "ok", identity, Answer(readings, 1))


def failed(family: str) -> Scrape:
    return Scrape(family, 0, 0, 1, 10 * S, "timeout", error="no answer within 5 s")


def under(*partitions: int, topic: str = "orders") -> dict[Series, float | None]:
    return {Series(UNDER, topic, partition): 1.0 for partition in partitions}


def throttled(client: str, value: float | None) -> dict[Series, float | None]:
    return {Series(THROTTLE, client_id=client): value}


def filled(now: float = 100) -> Board:
    board = Board(tasks(*FAMILIES), 0)
    board.take(
        read(
            "min_isr",
            under(*range(30)),
        ),
        now,
    )
    board.take(
        read(
            "quotas",
            {**throttled("slow", 20.0), **throttled("slower", 719.4), **throttled("ok", None)},
        ),
        now,
    )
    board.take(read("tiered", {Series(COPY_LAG, "logs"): 3 << 20}), now)
    board.take(read("leaders", {Series("kafka.partition.leaderless", "single", 0): 1.0}), now)
    fenced = Series("kafka.cluster.node.fenced", labels=(("node", "broker-2"),))
    board.take(read("topology", {fenced: 1.0}), now)
    return board


def screen(board: Board, now: float, width: int, height: int, order: str = "p") -> list[str]:
    console = Console(width=width, height=height or 100, color_system=None, highlight=False)
    with console.capture() as captured:
        heading = ("broker-1, cluster c", "09:00:00")
        console.print(view(board.state(now), now, heading, (width, height), order))
    return captured.get().splitlines()


def lines(board: Board, now: float, width: int, height: int) -> list[str]:
    """Return the screen without the line of keys and the blank lines before it."""
    shown = "\n".join(screen(board, now, width, height)[: -1 if height else None])
    return shown.rstrip("\n").splitlines()


def test_only_families_that_can_tell_a_symptom_count() -> None:
    assert kinds_of(load().family("log")) == ()
    assert kinds_of(load().family("min_isr")) == (UNDER_MIN_ISR,)
    assert len(Board(tasks(*FAMILIES), 0).state(1).unknown) == len(FAMILIES) - 1


def test_the_worst_comes_first() -> None:
    kinds = [symptom.kind for symptom in filled().state(101).symptoms]
    assert kinds == [LEADERLESS, *[UNDER_MIN_ISR] * 30, FENCED, THROTTLED, THROTTLED, LAGGING]
    clients = [s.series.client_id for s in filled().state(101).symptoms if s.kind == THROTTLED]
    assert clients == ["slower", "slow"]


def test_idle_and_zero_are_no_symptoms() -> None:
    board = Board(tasks("quotas"), 0)
    board.take(read("quotas", {**throttled("idle", None), **throttled("well", 0.0)}), 1)
    assert board.state(2).symptoms == []
    assert board.state(2).counts == {THROTTLED: "0"}


def test_a_symptom_lasts_from_when_it_was_first_seen() -> None:
    board = Board(tasks("min_isr"), 0)
    board.take(read("min_isr", under(1)), 10)
    board.take(read("min_isr", under(1, 2)), 20)
    assert [(s.series.partition, s.since) for s in board.state(21).symptoms] == [(1, 10), (2, 20)]
    board.take(read("min_isr", under(2)), 30)
    board.take(read("min_isr", under(1, 2)), 40)
    assert [(s.series.partition, s.since) for s in board.state(41).symptoms] == [(2, 20), (1, 40)]


def test_what_was_not_read_is_unknown_and_not_well() -> None:
    board = Board(tasks("min_isr"), 0)
    assert board.state(3).counts == {UNDER_MIN_ISR: "?"}
    board.take(read("min_isr", under(1)), 10)
    board.take(failed("min_isr"), 20)
    state = board.state(25)
    assert state.symptoms == []
    assert state.counts == {UNDER_MIN_ISR: "?"}
    assert [(u.family, u.why, u.since) for u in state.unknown] == [
        ("min_isr", "no answer within 5 s", 10)
    ]


@pytest.mark.parametrize("gap", ["a failure", "silence"])
def test_after_unknown_time_a_symptom_is_first_seen_anew(gap: str) -> None:
    board = Board(tasks("min_isr"), 0)
    board.take(read("min_isr", under(1)), 10)
    if gap == "a failure":
        board.take(failed("min_isr"), 20)
    else:
        assert [u.why for u in board.state(36).unknown] == ["the last response is too old"]
    board.take(read("min_isr", under(1)), 40)
    assert [s.since for s in board.state(41).symptoms] == [40]


@pytest.mark.parametrize("size", [(80, 24), (200, 60), (40, 12)])
def test_the_view_fits_the_terminal(size: tuple[int, int]) -> None:
    board = filled()
    for number in range(50):
        board.take(read("min_isr", under(*range(0, 2 * number, 2))), 100 + number)
    board.take(failed("tiered"), 150)
    shown = screen(board, 151, *size)
    assert len(shown) <= size[1]
    assert max(map(len, shown)) <= size[0]


def test_partitions_to_which_the_same_happened_at_once_share_a_line() -> None:
    board = Board(tasks("min_isr"), 0)
    board.take(read("min_isr", under(0, 1, 2, 7)), 10)
    board.take(read("min_isr", under(0, 1, 2, 5, 7)), 20)
    shown = lines(board, 42, 80, 24)
    assert [line.split() for line in shown[-2:]] == [
        ["under", "min", "ISR", "orders-{0-2,", "7}", "4", "partitions", ">32s"],
        ["under", "min", "ISR", "orders-5", "22s"],
    ]  # fmt: skip


def test_what_has_no_room_is_counted() -> None:
    board = Board(tasks("min_isr"), 0)
    found = {Series(UNDER, f"topic-{number:03}", 0): 1.0 for number in range(100)}
    board.take(read("min_isr", found), 10)
    shown = screen(board, 11, 80, 24)
    assert len(shown) == 24
    assert shown[-2] == "and 82 more"
    assert len(screen(board, 11, 80, 0)) == 100 + 4


@pytest.mark.parametrize(
    ("order", "first"),
    [
        ("p", ["no leader", "under min ISR", "fenced", "throttled", "throttled", "lagging"]),
        ("s", ["throttled", "throttled", "lagging", "fenced", "under min ISR", "no leader"]),
        ("v", ["under min ISR", "no leader", "fenced", "lagging", "throttled", "throttled"]),
        ("a", ["no leader", "under min ISR", "fenced", "lagging", "throttled", "throttled"]),
    ],
)
def test_rows_are_sorted_by_the_column_of_a_key(order: str, first: list[str]) -> None:
    board = filled(100)
    board.take(failed("quotas"), 101)
    board.take(read("quotas", {**throttled("slow", 20.0), **throttled("slower", 719.4)}), 104)
    shown = screen(board, 105, 80, 24, order)
    header = next(number for number, line in enumerate(shown) if line.startswith("Problem"))
    table = shown[header + 1 : header + 7]
    assert [next(kind for kind in KINDS if row.startswith(kind)) for row in table] == first


def test_last_line_of_a_terminal_is_the_keys() -> None:
    shown = screen(filled(), 101, 80, 24, "a")
    assert len(shown) == 24
    assert shown[-1] == "q quit   sort by  p problem  s subject  v value [a age]"
    assert not any("quit" in line for line in screen(filled(), 101, 80, 0))


def test_a_question_mark_stands_for_what_is_not_known() -> None:
    board = filled()
    board.take(failed("quotas"), 110)
    text = "\n".join(lines(board, 115, 80, 24))
    assert "throttled ?" in text
    assert "unknown quotas for 15s: no answer within 5 s" in text
    assert "under min ISR 30" in text


def test_a_zero_that_others_would_tell_is_no_zero() -> None:
    board = Board(tasks("leaders", "topology"), 0)
    board.take(read("leaders"), 10)
    assert board.state(11).counts[LEADERLESS] == "?"  # not known whether it is ours to tell
    board.take(read("topology"), 10)
    assert "no leader -   fenced -" in lines(board, 11, 80, 24)[1]
    live = Series("kafka.cluster.node.fenced", labels=(("node", "broker-1"),))
    zeros = Reading(live.metric, "gauge", frozenset({live}))
    board.take(replace(read("topology"), answer=Answer((zeros,), 1)), 12)
    assert "no leader 0   fenced 0" in lines(board, 13, 80, 24)[1]
    board.take(failed("topology"), 14)
    assert "no leader ?   fenced ?" in lines(board, 15, 80, 24)[1]


def test_what_was_there_at_the_first_look_lasts_longer_than_we_saw() -> None:
    board = Board(tasks("min_isr"), 0)
    board.take(read("min_isr", under(1)), 10)
    board.take(read("min_isr", under(1, 2)), 20)
    assert [line.split()[-1] for line in lines(board, 29, 80, 24)[-2:]] == [">19s", "9s"]


def test_a_source_that_is_away_is_one_line_that_wraps_where_there_is_room() -> None:
    board = Board(tasks(*FAMILIES), 0)
    for family in FAMILIES[:3]:
        board.take(replace(failed(family), error="nothing listens there " * 20 + "END"), 10)
    shown = lines(board, 11, 80, 24)
    assert sum("unknown" in line for line in shown) == 2  # and what was not read yet
    assert "END" in "".join(shown)
    assert shown[2].startswith("unknown min_isr, quotas, tiered for 11s: nothing listens there")
    low = lines(board, 11, 80, 12)
    assert "END" not in "".join(low)
    assert len(low) < len(shown)


def offsets(log_start: int, before: int, after: int) -> Scrape:
    """An answer on one group and partition: it committed so far before and after the log start."""
    group, partition = Commit("billing", "orders", 0), Partition("orders", 0)
    found = Offsets({group: before}, {partition: log_start}, {group: after})
    return replace(read("offsets"), answer=Answer((), 1, offsets=found))


def test_what_a_group_lost_since_the_first_look_is_shown_with_its_bounds() -> None:
    board = Board(tasks("offsets"), 0)
    board.take(offsets(10, 10, 10), 10)
    assert board.state(11).counts == {LOST: "0"}, "what was lost before is not known"
    board.take(offsets(10_030, 10, 20), 20)
    board.take(offsets(10_030, 10_030, 10_040), 30)
    (one,) = board.state(31).symptoms
    assert (one.kind, one.value, one.least, one.since) == (LOST, 10_020, 10_010, 20)
    assert lines(board, 41, 80, 24)[-1].split() == [
        "lost", "unread", "orders,", "group", "billing", "10,010", "to", "10,020", "offsets", "21s",
    ]  # fmt: skip
    board.take(failed("offsets"), 50)
    assert board.state(51).counts == {LOST: "?"}


def test_a_small_terminal_keeps_values_and_a_large_one_is_not_stretched() -> None:
    board = Board(tasks("quotas"), 0)
    board.take(read("quotas", throttled("slow", 20.0)), 10)
    small = lines(board, 11, 40, 12)
    assert small[-1].split() == ["throttled", "client", "slow", "20", "ms", ">1s"]
    large = lines(board, 11, 200, 60)
    assert len(large[-1].rstrip()) < 60


def test_all_well_is_said_only_where_everything_was_read() -> None:
    board = Board(tasks("min_isr", "quotas"), 0)
    board.take(read("min_isr", under()), 10)
    assert "No problems" not in "\n".join(lines(board, 11, 80, 24))
    board.take(read("quotas"), 10)
    assert "No problems" in "\n".join(lines(board, 11, 80, 24))


def test_a_hostile_name_moves_no_cursor_and_means_no_markup() -> None:
    board = Board(tasks("min_isr", "quotas"), 0)
    board.take(read("min_isr", under(3, topic=HOSTILE), under(4, 5, topic=HOSTILE + "y")), 10)
    board.take(read("quotas", throttled(HOSTILE, 5.0)), 10)
    for width in (40, 80, 200):
        shown = lines(board, 11, width, 24)
        assert all(line.isprintable() and len(line) <= width for line in shown)
    text = "\n".join(lines(board, 11, 4000, 24))
    assert "evil\\x1b[2J\\n[red]\\u202etopic\\ud800" in text


def test_the_end_of_a_long_name_is_kept_since_it_tells_partitions_apart() -> None:
    board = Board(tasks("min_isr"), 0)
    board.take(read("min_isr", under(1234, topic="a" * 200)), 10)
    assert any(
        line.split()[-2].endswith("aaa-1234") for line in lines(board, 11, 40, 12) if "aaa" in line
    )


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "ms", "idle"), (719.4, "ms", "719 ms"), (0.25, "ms", "0.25 ms"),
        (1469.7, "ms", "1,470 ms"), (3 << 20, "By", "3.0 MiB"), (33, "By/s", "33 B/s"),
        (1, "{partition}", "1 partition"), (2, "{entry}", "2 entries"),
        (2, "{mutation}/s", "2 mutations/s"), (1, "1", "1"),
        (5_000_000, "{offset}", "5,000,000 offsets"),
    ],
)  # fmt: skip
def test_amounts_have_units(value: float | None, unit: str, text: str) -> None:
    assert amount(value, unit) == text


@pytest.mark.parametrize(
    ("metric", "value", "unit", "text"),
    [
        ("kafka.topic.retention_time", 604_800_000, "ms", "604,800,000 ms (7d 00h)"),
        ("kafka.topic.retention_time", 5_400_000, "ms", "5,400,000 ms (1h 30m)"),
        ("kafka.topic.retention_time", -1, "ms", "unlimited"),
        ("kafka.topic.retention_bytes", -1, "By", "unlimited"),
        ("kafka.client.x", -1, "ms", "-1 ms"),
        ("kafka.client.x", 20, "ms", "20 ms"),
    ],
)
def test_settings_are_readable(metric: str, value: float, unit: str, text: str) -> None:
    assert _setting(metric, value, unit) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59.4, "59s"), (125, "2m 05s"), (3720, "1h 02m"), (273_600, "3d 04h")],
)
def test_spans_have_two_units(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_ranges_and_printable_names() -> None:
    assert _ranges([0, 1, 2, 7, 9, 10]) == "0-2, 7, 9-10"
    assert printable("Grüße 日本") == "Grüße 日本"


def test_what_several_brokers_report_counts_once_and_one_that_is_silent_makes_it_unknown() -> None:
    (task,) = tasks("min_isr")
    board = Board([task._replace(source=name) for name in ("broker-1", "broker-2")], 0)
    board.take(replace(read("min_isr", under(1, 2)), source="broker-1"), 10)
    state = board.state(11)
    assert state.counts["under min ISR"] == "?"
    assert [one.family for one in state.unknown] == ["broker-2 min_isr"]
    board.take(replace(read("min_isr", under(2, 3)), source="broker-2"), 12)
    state = board.state(13)
    assert state.counts["under min ISR"] == "3"
    assert [one.series.partition for one in state.symptoms] == [1, 2, 3]
    assert not state.unknown
