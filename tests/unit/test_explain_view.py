"""A story as facts and as a person sees it: golden views of a topic, a group and a broker.

``python -m tests.unit.test_explain_view`` writes the golden files anew; look at what changed.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lakehouse.core import periods
from lakehouse.core.metrics import LEADERLESS, UNDER_MIN_ISR, WATCHED_OF
from lakehouse.core.subjects import Subject
from lakehouse.explain import story as stories
from lakehouse.explain.evidence import Attempt, Evidence, Total
from lakehouse.explain.story import Scope
from lakehouse.explain.subject import NO_EVENTS, Events
from lakehouse.explain.terminal import GOOD, LEGEND, view
from lakehouse.gold.incidents import Incident
from lakehouse.slo.openslo import objective_files
from lakehouse.slo.sla_statement import Statement, Times
from tests.sample_facts import EVIL

GOLDEN = Path(__file__).parents[1] / "golden"
WEEK = periods.week("2026-W47")
START, END = periods.micros(WEEK.start), periods.micros(WEEK.end)
SECOND = 1_000_000
WINDOW = 300 * SECOND
DAY = 86_400 * SECOND
OBJECTIVES = {one.name: one for one in objective_files.load()}
LAG = "kafka.topic.remote_copy_lag.bytes"
LOST = "kafka.group.non_consumed"
READ = frozenset({"broker-1", "broker-2", "broker-3"})
HEAD = {
    "cluster": "cluster-a",
    "from": periods.iso(START),
    "to": periods.iso(END),
    "time_zone": "UTC",
    "week": {"iso": "2026-W47", "time_zone": "UTC"},
    "generated_at": periods.iso(END + DAY),
    "running": False,
    "elapsed": 1.0,
    "window_seconds": 300.0,
    "min_coverage_percent": 50.0,
}
NOBODY = dict.fromkeys(("topic", "partition", "user", "client_id", "group", "old", "new"))


def at(day: int, hour: int, minute: int = 0, second: float = 0) -> int:
    moment = datetime(2026, 11, 16 + day, hour, minute, tzinfo=UTC)
    return periods.micros(moment) + round(second * SECOND)


def bad(
    metric: str, start: int, end: int, part: int | None, *sources: str, worst: float = 1.0,
    lead: float = 10, tail: float = 10, **rest: Any,
) -> Incident:  # fmt: skip
    names = {"topic": "orders", "group": None, "total": 0.0} | rest
    return Incident(
        metric, "", names["topic"], part, None, None, names["group"], None, start, end,
        round(lead * SECOND), round(tail * SECOND), worst, names["total"], sources,
    )  # fmt: skip


def change(when: int, kind: str, source: str, **rest: Any) -> dict[str, Any]:
    return NOBODY | {"at": when, "kind": kind, "source": source} | rest


def subject(kind: str, **names: str) -> Subject:
    every: dict[str, Any] = dict.fromkeys(("topic", "user", "client_id", "group", "source"))
    every |= names
    return Subject("cluster-a", kind, **every, first_us=START, last_us=END)


def read_well(source: str, family: str, start: int = START, end: int = END) -> Attempt:
    return Attempt(source, family, start, end, "ok", None, 10 * SECOND)


def scope(subject: Subject, *statements: Statement, **rest: Any) -> Scope:
    lives = {f"broker-{number}": (START, END) for number in (1, 2, 3)}
    usual = {"life": (START, END), "lives": lives, "now_us": END + DAY}
    return Scope(
        subject=subject, period=WEEK, window_us=WINDOW, watched=WATCHED_OF[subject.kind],
        statements=statements, **{**usual, **rest},
    )  # fmt: skip


EVENT = {
    "number": 2,
    "parts": [{"start": periods.iso(at(1, 9, 30, 2)), "end": periods.iso(at(1, 10, 12, 30))}],
    "words": {
        "title": "An outage of broker-3 hit orders",
        "time": "Tue 17 Nov 09:30 to 10:12, 42 min 28 s, happened 3 weeks in a row",
        "impact": "2 of 12 partitions of orders rejected acks=all writes.",
        "cause": "Likely broker-3, down 09:30 to 10:12 until the restart.",
        "owner": "Owner: Kafka platform, affects Commerce.",
        "next_step": "Find why broker-3 stopped on Tue 17 Nov at 09:30.",
        "used": "421 % of min-ISR budget",
    },
}


def story(of: Scope, evidence: Evidence, events: Events = NO_EVENTS) -> dict[str, Any]:
    """The story in the JSON that the command prints."""
    return {**HEAD, **stories.story(of, evidence, events=events)}


def topic() -> dict[str, Any]:
    """Broker 3 died on Tuesday, which nobody saw the end of; on Friday an upload lagged."""
    orders = subject("topic", topic="orders")
    attempts = [
        *(read_well(f"broker-{n}", family) for n in (1, 2) for family in ("min_isr", "tiered")),
        read_well("broker-3", "min_isr", START, at(1, 9, 30)),
        read_well("broker-3", "min_isr", at(1, 10, 15), END),
        Attempt("broker-3", "min_isr", at(1, 9, 30), at(1, 10, 5), "refused",
                "connection refused by 10.0.0.3:9999; is the broker running?"),
    ]  # fmt: skip
    incidents = [
        bad(LEADERLESS, at(1, 9, 30, 2), at(1, 9, 30, 12), 3, "broker-1"),
        bad(UNDER_MIN_ISR, at(1, 9, 30, 4), at(1, 10, 12, 4), 0, "broker-1"),
        bad(UNDER_MIN_ISR, at(1, 9, 30, 9), at(1, 10, 12, 30), 7, "broker-2", lead=0, tail=0),
        bad(LAG, at(4, 2), at(4, 14), None, "broker-1", "broker-2", worst=30e6),
    ]
    windows = range(START, END, WINDOW)
    dark = range(at(1, 9, 30), at(1, 10, 15))
    times = {
        "min-isr": {w: Times(0 if w in dark else WINDOW) for w in windows},
        "copy-lag": {w: Times(WINDOW) for w in windows if not at(4, 2) <= w < at(4, 14)}
        | {w: Times(0, WINDOW, WINDOW, WINDOW) for w in range(at(4, 2), at(4, 14), WINDOW)},
    }
    lost = at(1, 10, 12, 30) - at(1, 9, 30, 2)
    isr = Times(7 * DAY - len(dark), lost, lost - 20 * SECOND, lost + 10 * SECOND)
    lag = Times(7 * DAY - DAY // 2, DAY // 2, DAY // 2 - 10 * SECOND, DAY // 2 + 10 * SECOND)
    stated = [
        Statement(OBJECTIVES["min-isr"], orders, 7 * DAY, isr),
        Statement(OBJECTIVES["copy-lag"], orders, 7 * DAY, lag),
    ]
    changes = [
        change(at(1, 9, 30, 8), "leader_change", "broker-1", topic="orders", partition=0,
               old="broker-3", new="broker-1"),
        change(at(1, 9, 30, 8), "leader_change", "broker-1", topic="orders", partition=7,
               old="broker-3", new="broker-2"),
        change(at(1, 10, 13), "source_restart", "broker-3", old=str(START), new=str(at(1, 10, 12))),
        change(at(3, 12), "config_change", "broker-1", topic="orders",
              old="retention.ms=1", new="retention.ms=2"),
    ]  # fmt: skip
    totals = [Total(LAG, at(4, 5), at(4, 6), 40e6)]
    evidence = Evidence(incidents, totals, attempts, READ, changes, times)
    return story(scope(orders, *stated), evidence, events=Events([EVENT], 9))


def group() -> dict[str, Any]:
    """A group that came on Wednesday and lost offsets of two partitions."""
    nightly = subject("group", group="nightly")
    incidents = [
        bad(f"{LOST}.{end}", at(3, 1), at(3, 1, 10), part, "broker-2", worst=total, total=total,
            topic="clicks", group="nightly")
        for part, low, high in ((0, 12_000.0, 12_400.0), (11, 0.0, 31.0))
        for end, total in (("low", low), ("high", high))
        if total
    ]  # fmt: skip
    attempts = [read_well(f"broker-{number}", "offsets") for number in (1, 2, 3)]
    life = (at(2, 12), END)
    evidence = Evidence(incidents, [], attempts, READ, [], {})
    return story(scope(nightly, life=life), evidence, events=Events([], 9))


def broker() -> dict[str, Any]:
    """A broker that was never read until Thursday, and refused some writes then."""
    source = subject("source", source="broker-3")
    errors = "kafka.broker.produce_errors.not_enough_replicas"
    rest: dict[str, Any] = {"topic": None, "worst": 17.0, "total": 17.0}
    incidents = [bad(errors, at(3, 8), at(3, 8, 5), None, "broker-3", **rest)]
    attempts = [read_well("broker-3", "min_isr", at(3, 6))]
    lives = {"broker-3": (START, END)}
    evidence = Evidence(incidents, [], attempts, READ, [], {})
    return story(
        scope(source, lives=lives), evidence, events=Events(reason="Not known: too little.")
    )


VIEWS = {
    "explain-topic-100.txt": (topic, 100),
    "explain-topic-44.txt": (topic, 44),
    "explain-group-100.txt": (group, 100),
    "explain-broker-100.txt": (broker, 100),
}


@pytest.mark.parametrize("name", VIEWS)
def test_the_view_is_the_golden_one(name: str) -> None:
    make, width = VIEWS[name]
    text = view(make(), terminal=False, width=width)
    assert text == (GOLDEN / name).read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) <= width


def test_the_documentation_names_every_key_of_the_facts() -> None:
    docs = (GOLDEN.parents[1] / "docs" / "tools" / "explain_json.md").read_text(encoding="utf-8")
    made: Any = topic()
    words: Any = EVENT["words"]
    known = set(made) | set(made["subject"]) | set(made["answers"][0]) | set(words)
    known |= {key for row in made["intervals"] for key in row}
    known |= {key for row in made["gaps"] for key in row}
    assert not {key for key in known if f'"{key}"' not in docs}


def test_the_facts_are_the_golden_ones() -> None:
    wanted = json.loads((GOLDEN / "explain-topic.json").read_text(encoding="utf-8"))
    assert json.loads(json.dumps(topic())) == wanted


def test_a_terminal_gets_colour_and_a_pipe_none() -> None:
    assert "\x1b[" in view(topic(), terminal=True, width=100)
    assert "\x1b" not in view(topic(), terminal=False)


def test_gap_leaves_worst_value_open() -> None:
    found = {row["title"]: row["worst_high"] for row in topic()["intervals"]}
    assert found["Under min ISR"] is None, "broker-3 was not read"
    assert found["Tiered-storage upload lag"] == 40e6, "broker-3 does not report it"


def test_changes_near_bad_time_have_priority() -> None:
    far = [change(at(0, hour), "config_change", "b", topic="orders", new="x") for hour in range(23)]
    incidents = [bad(UNDER_MIN_ISR, at(2, 0), at(2, 1), 0, "b")]
    near = change(at(2, 1), "leader_change", "b", topic="orders", partition=0, new="b")
    evidence = Evidence(incidents, [], [], READ, [*far, near], {})
    text = view(story(scope(subject("topic", topic="orders")), evidence), terminal=False)
    assert "Wed 18 Nov 01:00:00  leader change of orders-0: b" in text
    assert text.count("config change of orders: x") == 19
    assert "4 more changes: see --json" in text


def test_changes_and_gaps_of_one_time_are_one_line() -> None:
    changes = [
        change(
            at(1, 1), "leader_change", "broker-1", topic="orders", partition=part, old="b", new="c"
        )
        for part in range(12)
    ]
    attempts = [
        Attempt("broker-1", family, at(1, 1), at(1, 2), "down", "nothing there; is it up?")
        for family in ("leaders", "min_isr")
    ]
    read = [
        read_well("broker-1", one.family, *span)
        for one in attempts for span in ((START, at(1, 1)), (at(1, 2), END))
    ]  # fmt: skip
    lives = {"broker-1": (START, END)}
    evidence = Evidence([], [], [*attempts, *read], READ, changes, {})
    orders = subject("topic", topic="orders")
    text = " ".join(view(story(scope(orders, lives=lives), evidence), terminal=False).split())
    assert "12 leader changes of orders-0, orders-1, " in text
    assert "orders-7 and 4 more: b to c (reported by broker-1)" in text
    assert "01:00:00 broker-1, 2 families: 1 h, not running: nothing there" in text


@pytest.mark.parametrize("kind", ["source_restart", "clock_step"])
def test_instants_are_not_microseconds(kind: str) -> None:
    row = change(at(1, 1), kind, "broker-1", old=str(at(0, 1)), new=str(at(1, 1)))
    evidence = Evidence([], [], [], READ, [row], {})
    told = story(scope(subject("source", source="broker-1")), evidence)
    text = view(told | {"time_zone": "Europe/Berlin"}, terminal=False)
    assert "of broker-1: Mon 16 Nov 02:00:00 to Tue 17 Nov 02:00:00" in text
    assert not re.search("[0-9]{13}", text)
    assert told["changes"][0]["old"] == str(at(0, 1)), "a program reads what the lake has"


def test_a_total_of_brokers_is_bounded_by_what_gold_saw_at_one_instant() -> None:
    (lag,) = (row for row in topic()["intervals"] if row["metric"] == LAG)
    assert (lag["worst_low"], lag["worst_high"]) == (30e6, 40e6)


@pytest.mark.edge(6)
def test_an_undecided_objective_says_what_would_decide_it_and_what_hid_it() -> None:
    """Broker 3 was not read for 35 minutes, of which the budget of 99.9 % allows ten."""
    orders = subject("topic", topic="orders")
    gap = (at(1, 9, 30), at(1, 10, 5))
    attempts = [
        *(read_well(f"broker-{n}", "min_isr") for n in (1, 2)),
        read_well("broker-3", "min_isr", START, gap[0]),
        Attempt("broker-3", "min_isr", *gap, "timeout", "no answer within 5 s"),
        read_well("broker-3", "min_isr", gap[1], END),
        read_well("broker-3", "quotas", START, at(5, 0)),
    ]
    good = {w: Times(0 if gap[0] <= w < gap[1] else WINDOW) for w in range(START, END, WINDOW)}
    seen = Times(7 * DAY - (gap[1] - gap[0]))
    statement = Statement(OBJECTIVES["min-isr"], orders, 7 * DAY, seen)
    evidence = Evidence([], [], attempts, READ, [], {"min-isr": good})
    told_of = story(scope(orders, statement), evidence)
    (row,) = told_of["objectives"]
    assert row["verdict"] == "uncertain"
    assert row["undecided_us"] == gap[1] - gap[0] - 7 * DAY // 1000
    assert [(one["source"], one["family"], one["outcome"]) for one in row["gaps"]] == [
        ("broker-3", "min_isr", "timeout")
    ]
    text = " ".join(view(told_of, terminal=False).split())
    assert (
        "Undecided: met if 24 min 56 s more were known to be good. "
        "Tue 17 Nov 09:30:00 broker-3, min_isr: 35 min, no answer in time: no answer within 5 s"
    ) in text
    assert "; 0 to 348 % of its error budget used" in text, "as in the report"


def test_unknown_time_without_a_gap_is_not_called_a_moment() -> None:
    # An agent read the family for half an hour without the metric.
    client = subject("client", user="u", client_id="c")
    attempts = [read_well("broker-1", "quotas")]
    seen = Times(7 * DAY - 1_800 * SECOND)
    statement = Statement(OBJECTIVES["produce-throttling"], client, 7 * DAY, seen)
    told_of = story(scope(client, statement), Evidence([], [], attempts, READ, [], {}))
    told_of["objectives"][0] |= {"undecided_us": SECOND, "gaps": []}
    text = " ".join(view(told_of, terminal=False).split())
    assert "Leaders were moving, the metric was not in the responses" in text


def test_an_objective_with_a_threshold_is_told_by_windows() -> None:
    orders = subject("topic", topic="orders")
    lag = replace(OBJECTIVES["copy-lag"], threshold=1e9)
    half = Times(0, WINDOW // 2, WINDOW // 4, WINDOW)
    windows = {at(2, 0): half, at(2, 0, 5): half, at(2, 1): half, at(3, 0): Times(WINDOW)}
    sums = Times(WINDOW, 3 * half.bad_us, 3 * half.bad_low_us, 3 * half.bad_high_us)
    evidence = Evidence([], [], [], READ, [], {"copy-lag": windows})
    made = story(scope(orders, Statement(lag, orders, 7 * DAY, sums)), evidence)
    text = " ".join(view(made, terminal=False).split())
    assert "Wed 18 Nov 00:00:00 to 00:10:00 bad for 5 min (2 min 30 s to 10 min)" in text
    assert text.count(" bad for ") == 2


def test_where_no_source_was_read_nothing_is_called_good() -> None:
    orders = subject("topic", topic="orders")
    silent = story(scope(orders), Evidence([], [], [], frozenset(), [], {}))
    text = view(silent, terminal=False)
    assert "Not known: no agent observed it in this period." in text
    assert GOOD not in text.replace(LEGEND, "")
    assert text.count("any: 7 d, no attempt reported") == 3


def test_a_story_that_is_too_long_says_where_it_ends() -> None:
    orders = subject("topic", topic="orders")
    cut = Evidence([], [], [], frozenset(), [], {}, until=at(2, 0))
    text = view(story(scope(orders), cut), terminal=False)
    assert "The story ends at Wed 18 Nov 00:00:00: the rest has too many rows." in text


def test_of_many_incidents_the_longest_are_shown_and_the_rest_counted() -> None:
    incidents = [
        bad(UNDER_MIN_ISR, at(2, 0, number), at(2, 0, number, 11 + number), 0, "b", tail=0)
        for number in range(30)
    ]
    orders = subject("topic", topic="orders")
    evidence = Evidence(incidents, [], [], READ, [], {})
    text = view(story(scope(orders), evidence), terminal=False)
    assert text.count("Under min ISR  Wed") == 20
    assert ", 40 s (40 s to 50 s)" in text
    assert ", 11 s (" not in text
    assert "10 shorter incidents more: see --json." in text


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("width", [20, 44, 100, 300])
def test_hostile_names_are_spelt_out_and_nothing_breaks(*, terminal: bool, width: int) -> None:
    for evil in EVIL:
        hostile = subject("topic", topic=evil)
        incidents = [bad(LOST + ".low", at(1, 1), at(1, 2), 3, evil, topic=evil, group=evil)]
        incidents.append(bad(UNDER_MIN_ISR, at(1, 1), at(1, 2), 3, evil))
        changes = [change(at(1, 1), evil, evil, topic="x", old=evil, new=evil, partition=3)]
        attempts = [Attempt("broker-1", evil, START, END, evil, evil)]
        made = story(scope(hostile), Evidence(incidents, [], attempts, READ, changes, {}))
        text = view(made, terminal=terminal, width=width)
        plain = re.sub(r"\x1b\[[\d;]*m", "", text)
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800]", plain)
        assert len(text) < 20_000
        json.dumps(made)


if __name__ == "__main__":
    for file, (maker, columns) in VIEWS.items():
        (GOLDEN / file).write_text(view(maker(), terminal=False, width=columns), encoding="utf-8")
    facts = json.dumps(topic(), indent=1) + "\n"
    (GOLDEN / "explain-topic.json").write_text(facts, encoding="utf-8")


@pytest.mark.edge(6)
@pytest.mark.parametrize("share", [0.0043, 0.3, 0.499])
def test_story_hardly_observed_states_nothing_good(share: float) -> None:
    until = START + round(share * (END - START))
    attempts = [
        read_well(f"broker-{n}", family, START, until)
        for n in (1, 2, 3) for family in ("min_isr", "leaders", "tiered")
    ]  # fmt: skip
    found = story(scope(subject("topic", topic="t")), Evidence([], [], attempts, READ, [], {}))
    assert {row["state"] for row in found["answers"]} == {"not_known"}
    text = view(found, terminal=False)
    assert "0 incidents" not in text
    assert f"Not known: only {100 * share:.3g}\u00a0% of this period".replace("\u00a0", " ") in text


@pytest.mark.edge(6)
@pytest.mark.parametrize(
    ("share", "said"), [(0.8, "0 incidents. Coverage 80 %."), (1.0, "0 incidents.")]
)
def test_story_without_incidents_states_coverage(share: float, said: str) -> None:
    until = START + round(share * (END - START))
    attempts = [
        read_well(f"broker-{n}", family, START, until)
        for n in (1, 2, 3) for family in ("min_isr", "leaders", "tiered")
    ]  # fmt: skip
    found = story(scope(subject("topic", topic="t")), Evidence([], [], attempts, READ, [], {}))
    assert said in view(found, terminal=False)


@pytest.mark.edge(8)
@pytest.mark.parametrize(
    ("families", "collected", "state"),
    [
        (("offsets",), {"kafka.group.non_consumed.low"}, "not_collected"),
        ((), set(), "not_collected"),
        (("offsets",), {"kafka.group.non_consumed.low", "kafka.group.lag"}, "good"),
    ],
)
def test_story_lag_never_read_is_not_collected(
    families: tuple[str, ...], collected: set[str], state: str
) -> None:
    attempts = [read_well(f"broker-{n}", family) for n in (1, 2, 3) for family in families]
    evidence = Evidence([], [], attempts, READ, [], {}, None, frozenset(collected))
    found = story(scope(subject("group", group="g")), evidence)
    (lag,) = (row for row in found["answers"] if row["metric"] == "kafka.group.partition_lag")
    assert lag["state"] == state
    text = view(found, terminal=False)
    line = next(one for one in text.splitlines() if "Consumer lag above" in one)
    assert (GOOD in line) == (state == "good"), "what was never read is not drawn as good"


@pytest.mark.edge(2)
@pytest.mark.parametrize("table", ["incidents", "gold/incidents"])
def test_story_of_an_incomplete_table_is_not_known(table: str) -> None:
    rows = [{"table": table, "from": periods.iso(START), "to": periods.iso(END), "reason": "lost"}]
    attempts = [
        read_well(f"broker-{n}", family)
        for n in (1, 2, 3) for family in ("min_isr", "leaders", "tiered")
    ]  # fmt: skip
    evidence = Evidence([], [], attempts, READ, [], {}, None, None, rows)
    found = story(scope(subject("topic", topic="t")), evidence)
    assert {row["state"] for row in found["answers"]} == {"not_known"}
