"""Small clusters with one case each; the tests of this folder define the expected gold.

Seconds count from midnight of Monday, 4 January 2021, the first of that year's first week. A story
is a function named as its cluster.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from lakehouse import tables
from tests.lake_builder import BASE, Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ISR = "kafka.partition.under_min_isr"
LEADERLESS = "kafka.partition.leaderless"
THROTTLE = "kafka.client.produce.throttle_time"
FENCED = "kafka.cluster.node.fenced"
TOLD = "kafka.topic.partitions"
FETCHED = "kafka.topic.remote_fetch.bytes"
LOST = "kafka.group.non_consumed"
DAY = 86_400.0
MONDAY = dt.datetime(2021, 1, 4, tzinfo=dt.UTC)
_ORIGIN = (MONDAY - BASE).total_seconds()


class Story:
    """A batch with rows of one cluster, at seconds after that Monday."""

    def __init__(self, cluster: str) -> None:
        self.batch, self.where = Batch(), {"cluster": cluster}

    def run(self, metric: str, start: float, end: float, value: float | None, **rest: Any) -> None:
        self.batch.run(metric, _ORIGIN + start, _ORIGIN + end, value, **self.where, **rest)

    def bad(self, start: float, end: float, partition: int = 0, **rest: Any) -> None:
        self.run(ISR, start, end, 1.0, topic="t", partition=partition, **rest)

    def zeros(self, start: float, end: float, *partitions: int, **rest: Any) -> None:
        span = (_ORIGIN + start, _ORIGIN + end)
        self.batch.zeros(ISR, *span, "t", list(partitions), **self.where, **rest)

    def counter(self, start: float, end: float, value: float | None, **rest: Any) -> None:
        self.run(FETCHED, start, end, value, topic="t", flags=(tables.FLAG_INCREASE,), **rest)

    def lost(self, start: float, low: float | None, high: float | None, **rest: Any) -> None:
        """Add bounds of the offsets that a group lost in the window from a start."""
        for bound, value in (("low", low), ("high", high)):
            flags = (tables.FLAG_INCREASE,)
            self.run(f"{LOST}.{bound}", start, start + 300, value, flags=flags, **rest)

    def idle(self, start: float, end: float, *clients: str, **rest: Any) -> None:
        pairs: list[tuple[str | None, str | None]] = [("u", client) for client in clients]
        span = (_ORIGIN + start, _ORIGIN + end)
        self.batch.idle(THROTTLE, *span, pairs, **self.where, **rest)

    def topology(self, start: float, end: float, partitions: int, topic: str = "t") -> None:
        """Add reports on a topic, per window."""
        for first, last in windows(start, end):
            self.run(TOLD, first, last, float(partitions), topic=topic)

    def scrape(self, start: float, end: float, outcome: str = "ok", **rest: Any) -> None:
        for first, last in windows(start, end):
            family = rest.get("family", "min_isr")
            further = {name: value for name, value in rest.items() if name != "family"}
            span = (_ORIGIN + first, _ORIGIN + last)
            self.batch.scrape(family, *span, outcome, **self.where, **further)


def windows(start: float, end: float) -> Iterator[tuple[float, float]]:
    """Yield the parts of a span per window."""
    while start < end:
        cut = min(end, start - start % 300 + 300)
        yield start, cut
        start = cut


def all_stories() -> list[Batch]:
    """Return the rows of every story."""
    found = []
    for tell in STORIES:
        story = Story(tell.__name__)
        tell(story)
        found.append(story.batch)
    return found


def unknown_time(it: Story) -> None:
    """Leave out one minute of scrapes in a good window."""
    it.topology(0, 300, 1)
    for start, end in ((0, 120), (180, 300)):
        it.zeros(start, end, 0)
        it.scrape(start, end)
    it.scrape(120, 180, "refused", error="connection refused")


def agent_never_installed(it: Story) -> None:
    """Name broker-9 in the cluster without any scrape of it."""
    for start in (0, 300):
        for node in ("broker-1", "broker-9"):
            it.run(FENCED, start, start + 300, 0.0, labels=[("node", node)])
    it.scrape(0, 600)


def decommissioned(it: Story) -> None:
    """Name and scrape broker-3 for one window only."""
    for start in (0, 300, 600, 900):
        for node in ("broker-1", "broker-3")[: 2 if start == 0 else 1]:
            it.run(FENCED, start, start + 300, 0.0, labels=[("node", node)])
    it.scrape(0, 1200)
    it.scrape(0, 300, source="broker-3")


def silent_week(it: Story) -> None:
    """Report a good week, then nothing."""
    start, end = -7 * DAY, -7 * DAY + 300
    it.topology(start, end, 1)
    it.zeros(start, end, 0)
    it.scrape(start, end)


def edges(it: Story) -> None:
    """Add an incident of a minute with start and end between two scrapes."""
    it.topology(0, 300, 2)
    it.zeros(0, 300, 1)
    it.zeros(0, 100, 0)
    it.bad(100, 160, lead=10, tail=15)
    it.zeros(160, 300, 0)


def edges_over_a_cut(it: Story) -> None:
    """Add an incident across two windows, and an incident with a lead before its window."""
    it.bad(290, 300, lead=5)
    it.bad(300, 340, tail=20)
    it.bad(603, 613, lead=10)


def value_changes_while_bad(it: Story) -> None:
    """Change 5 to 7: the value has an edge, the interval above zero does not."""
    lag, of_topic = "kafka.topic.remote_copy_lag.bytes", {"topic": "t"}
    it.run(lag, 0, 100, 5.0, tail=10, flags=(tables.FLAG_NEXT_POSITIVE,), **of_topic)
    it.run(lag, 100, 200, 7.0, lead=10, flags=(tables.FLAG_PREVIOUS_POSITIVE,), **of_topic)


def bad_wins(it: Story) -> None:
    """Report 0 from the old leader of a partition and 1 from the new leader."""
    it.topology(0, 300, 2)
    it.zeros(0, 300, 0, 1)
    it.bad(100, 200, source="broker-2")


def two_brokers(it: Story) -> None:
    """Let two brokers claim the same healthy partitions."""
    it.topology(0, 300, 3)
    it.zeros(0, 300, 0, 1, 2)
    it.zeros(0, 300, 0, 1, 2, source="broker-2")


def two_agents(it: Story) -> None:
    """Let two agents scrape one broker and group the same partitions."""
    it.topology(0, 300, 3)
    it.zeros(0, 300, 0, 1, 2)
    it.zeros(0, 300, 0, 1, 2, agent="agent-2")


def leader_moves(it: Story) -> None:
    """Move the leader within a window; the partition is bad during the move."""
    it.topology(0, 300, 1)
    it.zeros(0, 140, 0)
    it.bad(140, 150, tail=4)
    it.bad(150, 170, source="broker-2", lead=8)
    it.zeros(170, 300, 0, source="broker-2")


def folded_and_not(it: Story) -> None:
    """Report some partitions of a topic as a group and others in single rows."""
    it.topology(0, 300, 4)
    it.zeros(0, 300, 0, 1)
    it.zeros(0, 300, 2, source="broker-2")
    it.bad(0, 100, 3, source="broker-2")
    it.zeros(100, 300, 3, source="broker-2")


def unavailable(it: Story) -> None:
    """Report under min ISR, then offline, which only the Admin API reports."""
    it.topology(0, 300, 1)
    it.bad(0, 100)
    it.run(LEADERLESS, 90, 200, 1.0, topic="t", partition=0)
    it.zeros(200, 300, 0)


def bad_and_unseen(it: Story) -> None:
    """Leave out scrapes of one leader while a partition of another leader is bad."""
    it.topology(0, 300, 2)
    it.zeros(0, 100, 0)
    it.bad(100, 200)
    it.zeros(200, 300, 0)
    it.zeros(0, 150, 1, source="broker-2")
    it.zeros(220, 300, 1, source="broker-2")


def tier_not_read(it: Story) -> None:
    """Let two brokers lead a topic; the lags of one are not scraped for a minute, and later never.

    A third broker leads no partition of the topic, and its lags are never scraped.
    """
    it.topology(0, 600, 2)
    for window in (0, 300):
        until = window + 300
        it.run("kafka.topic.remote_storage_enabled", window, until, 1.0, topic="t")
        for lag in ("copy_lag.bytes", "delete_lag.segments"):
            it.run(f"kafka.topic.remote_{lag}", window, until, 0.0, topic="t")
        it.zeros(window, until, 0)
        it.zeros(window, until, 1, source="broker-2")
        for source in ("broker-1", "broker-2", "broker-3"):
            it.scrape(window, until, source=source)
    it.scrape(0, 600, family="tiered")
    it.scrape(0, 40, family="tiered", source="broker-2")
    it.scrape(40, 100, "timeout", family="tiered", source="broker-2")
    it.scrape(100, 300, family="tiered", source="broker-2")


def isolated_leader(it: Story) -> None:
    """Cut off a broker that still claims its partitions; the new leader is not scraped.

    Another broker reports it as fenced from 160 s, and as not fenced a minute before.
    """
    it.topology(0, 300, 1)
    it.zeros(0, 300, 0)
    it.scrape(0, 300)
    it.run(FENCED, 0, 160, 0.0, labels=[("node", "broker-1")], source="broker-2")
    it.run(FENCED, 160, 300, 1.0, lead=60, labels=[("node", "broker-1")], source="broker-2")


def broker_not_read(it: Story) -> None:
    """Report a client by one broker; scrape another for a while, and only name a third as live.

    A fourth broker is fenced and refuses connections; others respond to its agent.
    """
    for window in (0, 300, 3600, 7200):
        it.idle(window, window + 300, "c")
        it.scrape(window, window + 300, family="quotas")
        it.scrape(window, window + 300, family="client", source="client-c")
        it.scrape(window, window + 300, source="controller-9")
    it.scrape(0, 250, family="quotas", source="broker-2")
    it.run(FENCED, 3600, 3900, 0.0, labels=[("node", "broker-3")])
    it.idle(10800, 11100, "c")
    it.scrape(10800, 11100, family="quotas")
    it.idle(10800, 10900, "c", source="broker-2")
    it.scrape(10800, 10900, family="quotas", source="broker-2")
    it.scrape(10900, 10990, "down", family="quotas", source="broker-2")
    it.scrape(10990, 11000, "refused", family="quotas", source="broker-2")
    it.idle(11000, 11100, "c", source="broker-2")
    it.scrape(11000, 11100, family="quotas", source="broker-2")
    it.run(FENCED, 7200, 7500, 1.0, labels=[("node", "broker-4")])
    it.scrape(7200, 7500, "refused", family="quotas", source="broker-4")
    it.scrape(7200, 7500, family="topology", source="broker-4")


def counter_reset(it: Story) -> None:
    """Reset a counter: its increase in that window is unknown."""
    for start, value in ((0, 100.0), (300, None), (600, 50.0)):
        it.counter(start, start + 300, value)


def agent_restart(it: Story) -> None:
    """Report a counter by an agent and, after a restart, by another agent."""
    it.counter(0, 140, 30.0)
    it.counter(140, 300, 12.0, agent="agent-2")


def clients_come_and_go(it: Story) -> None:
    """Let an idle client disappear; a new client is throttled by two brokers."""
    it.idle(0, 300, "gone", "other")
    it.run(THROTTLE, 300, 400, 500.0, user="u", client_id="comes", tail=60)
    it.run(THROTTLE, 350, 450, 250.0, user="u", client_id="comes", source="broker-2")
    it.idle(400, 600, "comes")
    it.idle(450, 600, "comes", source="broker-2")


def topic_made_again(it: Story) -> None:
    """Delete a topic after a window and create it again half an hour later."""
    it.scrape(0, 3600, family="topology")
    for start, end in ((0, 300), (2100, 3600)):
        it.topology(start, end, 1)
        for first, last in windows(start, end):
            it.zeros(first, last, 0)


def topic_deleted(it: Story) -> None:
    """Delete a topic after a window; the source still reports the other topics."""
    it.scrape(0, 1200, family="topology")
    it.topology(0, 1200, 1, "other")
    it.topology(0, 300, 1)
    it.zeros(0, 300, 0)


def topic_deleted_after_a_broker_left(it: Story) -> None:
    """Remove broker-3 from the cluster; later delete a topic."""
    for start in (0, 300, 600, 900):
        for node in ("broker-1", "broker-3")[: 2 if start == 0 else 1]:
            it.run(FENCED, start, start + 300, 0.0, labels=[("node", node)])
    it.scrape(0, 1200, family="topology")
    it.scrape(0, 300, family="topology", source="broker-3")
    it.topology(0, 600, 1)
    for start in (0, 300):
        it.zeros(start, start + 300, 0)


def new_year(it: Story) -> None:
    """Add ten seconds before and after midnight on New Year's Eve."""
    midnight = -3 * DAY
    it.bad(midnight - 10, midnight)
    it.bad(midnight, midnight + 10)


def one_row(it: Story) -> None:
    """Add a single run."""
    it.bad(0, 10)


def offsets_lost(it: Story) -> None:
    """Add certain, possible and unknown losses (a rewind)."""
    for start, low, high in ((0, 5.0, 15.0), (300, 0.0, 4.0), (600, None, None)):
        it.lost(start, low, high, group="g", topic="t", partition=0)


def users_own_bean(it: Story) -> None:
    """Add a user's own metrics with labels."""
    it.run("acme.cache.misses", 0, 300, 6.0, labels=[("cache", "a")])
    it.run("acme.cache.misses", 0, 300, 12.0, labels=[("cache", "b")])
    it.run("acme.group.members", 0, 300, 3.0, group="g")
    long = [("cache", "a" * 1024), ("shard", "b" * 1024)]
    it.run("acme.cache.hits", 0, 300, 18.0, labels=long)
    it.run(
        "acme.cache.loads", 0, 300, 5.0, labels=[("b", "x,y=\\z"), ("a", "")], flags=["increase"]
    )


def beyond_the_cap(it: Story) -> None:
    """Add the overflow series of groups, which has no partition."""
    it.lost(0, 7.0, 7.0, topic=tables.OTHER, group=tables.OTHER)


def in_the_future(it: Story) -> None:
    """Add a run of an agent with a clock that is years ahead."""
    it.bad(0, 10)
    it.bad(36_500 * DAY, 36_500 * DAY + 10)


def bad_input(it: Story) -> None:
    """Add a row for each reason of rejection, and three good partitions."""
    it.topology(0, 300, 3)
    it.zeros(0, 300, 0, 1, 2)
    it.bad(50, 50)
    it.bad(290, 310)
    it.bad(50, 60)
    it.batch.runs[-1]["date"] -= 1
    it.bad(50, 60, lead=-1)
    it.bad(50, 60, tail=86_401)
    it.run(ISR, 50, 60, float("nan"), topic="t", partition=0)
    it.run("kafka.topic.bytes_in", 50, 60, -5.0, topic="t", flags=(tables.FLAG_INCREASE,))
    it.run("Kafka\x00", 50, 60, 1.0, topic="t", partition=0)
    it.run(ISR, 50, 60, 1.0, topic="t" * 32_768, partition=0)
    it.run(ISR, 50, 60, 1.0, partition=0)
    it.bad(50, 60, -1)
    it.bad(50, 60, series=0)
    it.run(ISR, 50, 60, 0.0, topic="t", series=2)
    it.run(ISR, 50, 60, 0.0, topic="t", series=2, members="unheard of")
    it.run(ISR, 50, 60, 0.0, topic="t", series=2, members=_told_twice(it))
    three = it.batch.set_of("partitions", "t", [0, 1, 2], None, it.where["cluster"])
    it.run(ISR, 50, 60, 0.0, topic="t", series=2, members=three)
    it.run(ISR, 50, 60, 1.0, topic="t", series=3, members=three)
    it.batch.scrape("min_isr", _ORIGIN + 60, _ORIGIN + 50, **it.where)


def powers_of_two(it: Story) -> None:
    """Add values at the end of a bucket, at zero, and below zero."""
    asked = {"topic": "t", "flags": (tables.FLAG_DISTRIBUTION,)}
    for start, value in enumerate((1.0, 2.0, 1024.0, 0.5, 0.0, -4.0, 1e18, 1e-3)):
        it.run("kafka.topic.remote_copy_lag.bytes", start * 10, start * 10 + 10, value, **asked)


def _told_twice(it: Story) -> str:
    """Return a set with two contents in bronze/members."""
    name = it.batch.set_of("partitions", "t", [5, 6], None, it.where["cluster"])
    it.batch.members.append({**it.batch.members[-1], "partitions": [5, 7]})
    return name


def spilled_hours(it: Story) -> None:
    """Add bad partitions early in an hour and in the next hour."""
    for partition, lead in ((0, 11), (1, 12)):
        it.bad(2 + partition * 2, 50, partition, lead=lead)
    it.bad(3600 + 305, 3600 + 310, lead=20)


def good_hour(it: Story) -> None:
    """Add a good hour with a possible loss of offsets in its first window."""
    it.topology(0, 3600, 2)
    it.scrape(0, 3600)
    for start, end in windows(0, 3600):
        it.zeros(start, end, 0, 1)
        high = 4.0 if start == 0 else 0.0
        it.lost(start, 0.0, high, group="g", topic="t", partition=0)


def never_described(it: Story) -> None:
    """Report no topology; one of two partitions is not claimed in the second window."""
    it.zeros(0, 300, 0, 1)
    it.zeros(300, 600, 0)


def attributes_apart(it: Story) -> None:
    """Report one attribute of a topic for longer than another attribute."""
    it.run("kafka.topic.remote_storage_enabled", 0, 100, 1.0, topic="t")
    it.run(TOLD, 0, 300, 3.0, topic="t")


def handlers_busy(it: Story) -> None:
    """Add a gauge that is too low for 40 s, and a controller that is not active."""
    it.run("my.own.idle", 100, 140, 3.0, lead=10.0, tail=10.0)
    it.run("my.own.idle", 140, 200, 12.0, lead=8.0, tail=10.0)
    it.run("my.own.idle", 200, 220, 0.0, lead=10.0, tail=5.0)
    it.run("kafka.controller.active", 0, 300, 0.0, source="controller-9")


def lag_of_two_brokers(it: Story) -> None:
    """Add two lags of one group whose sum is too high for 50 s."""
    for source, start in (("broker-1", 100), ("broker-2", 150)):
        it.run("kafka.group.lag", 0, start, 0.0, group="g", topic="t", source=source)
        over = {"group": "g", "topic": "t", "source": source, "lead": 10.0}
        it.run("kafka.group.lag", start, start + 100, 10.0, tail=10.0, **over)
        it.run("kafka.group.lag", start + 100, 300, 0.0, **over)


def lag_of_a_whole_cluster(it: Story) -> None:
    """Report the lag of a whole cluster, with a failure from 200 to 230 s."""
    for start, end in ((0, 200), (230, 300)):
        it.scrape(start, end, family="offsets", source="cluster-all")
    it.scrape(200, 230, "refused", family="offsets", source="cluster-all")
    over = {"group": "g", "topic": "t", "source": "cluster-all"}
    it.run("kafka.group.lag", 0, 100, 0.0, **over)
    it.run("kafka.group.lag", 100, 150, 20.0, lead=10.0, tail=10.0, **over)
    it.run("kafka.group.lag", 150, 300, 0.0, lead=10.0, **over)


def behind_by_bounds(it: Story) -> None:
    """Add bounds of a lag: surely, possibly and not bad, and unknown."""
    for start, low, high in ((0, 0.0, 6.0), (60, 3.0, 12.0), (120, 8.0, 12.0), (180, None, None)):
        for bound, value in (("low", low), ("high", high)):
            it.run(
                f"my.group.behind.{bound}", start, start + 60, value, group="g", topic="t",
                partition=0,
            )  # fmt: skip


STORIES: tuple[Callable[[Story], None], ...] = (
    unknown_time, agent_never_installed, decommissioned, silent_week, edges, edges_over_a_cut,
    value_changes_while_bad, bad_wins, two_brokers, two_agents, leader_moves, folded_and_not,
    unavailable, bad_and_unseen, tier_not_read, isolated_leader, broker_not_read, counter_reset,
    agent_restart, clients_come_and_go, topic_made_again, topic_deleted,
    topic_deleted_after_a_broker_left, new_year, one_row, offsets_lost, users_own_bean,
    beyond_the_cap, in_the_future, bad_input, powers_of_two, spilled_hours, good_hour,
    never_described, attributes_apart, handlers_busy, lag_of_two_brokers, lag_of_a_whole_cluster,
    behind_by_bounds,
)  # fmt: skip
