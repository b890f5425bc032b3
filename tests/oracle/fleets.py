"""Random fleets, each a cluster of one lake: the cases that a rollup must handle.

A fleet is a function of its seed. Its rows can differ from those of an agent: claims contradict
each other, leads carry over, and tails are longer than their runs. They only follow the comments of
bronze's columns. Values are multiples of 6, so every mean of them is a whole number.
"""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from lakehouse import tables
from tests.lake_builder import BASE, Batch, micros
from tests.oracle import bad_rows

WINDOW = 300.0
_DAY_US = 86_400_000_000
# From Sunday night to Monday morning: an hour, a day, a week and the year of its weeks end between.
SUNDAY = dt.datetime(2021, 1, 3, 23, 50, tzinfo=dt.UTC)
WINDOWS = tuple((SUNDAY - BASE).total_seconds() + WINDOW * number for number in range(4))
SOURCES = ("broker-1", "broker-2", "broker-3")
TOPICS = ("t", "größe ß \u202e", "a\x00b'\"`\\%_", "null")
CLIENTS = (
    (None, "c1"),
    ("u1", None),
    ("u1", "c1"),
    ("", ""),
    ("é\n\x1b[2J", "NULL"),
    ("NULL", None),
)
VALUES = (6.0, 6.0, 12.0, 600.0, 6e12, 6.0 * 2**40)
_OF_PARTITIONS = {"my.app.read_offset": 6e12, "my.log.place": 7e15, "my.disk.used": 60.0}
"""Own metrics of a partition: a figure in spite of its name, a place, and what replicas report."""
STEADY = frozenset(
    {"my.app.read_offset", "my.disk.used", "my.topic.tier", "my.group.least", "my.group.most"}
)
"""Metrics that variants of fleets leave as they are, without a random number."""
EDGES = (0.0, 0.0, 7.25, 12.000001, 40.0, 400.0)


@dataclass
class Fleet:
    """Rows of one seed, in a batch of its own."""

    seed: int
    rng: random.Random
    batch: Batch

    @property
    def cluster(self) -> str:
        return f"fleet-{self.seed:03}"

    def windows(self) -> list[float]:
        chosen = self.rng.sample(WINDOWS, self.rng.choice((1, 2, 3)))
        return sorted(chosen)

    def spans(self, window: float, most: int = 4) -> list[tuple[float, float]]:
        """Return a window as intervals, at whole seconds or microseconds."""
        instant = self.rng.choice((lambda: float(self.rng.randint(1, 299)), self._instant))
        inner = sorted({instant() for _ in range(self.rng.randint(0, most))})
        edges = [window, *(window + at for at in inner), window + WINDOW]
        return list(pairwise(edges))

    def _instant(self) -> float:
        return self.rng.randint(1, 299_999_999) / 1e6

    def edges(self) -> dict[str, Any]:
        flags = tuple(
            flag
            for flag, odds in (
                (tables.FLAG_PREVIOUS_POSITIVE, 0.15),
                (tables.FLAG_NEXT_POSITIVE, 0.15),
                (tables.FLAG_KNOWN_WRONG, 0.02),
                (tables.FLAG_DISTRIBUTION, 0.5),
            )
            if self.rng.random() < odds
        )
        return {
            "lead": self.rng.choice(EDGES), "tail": self.rng.choice(EDGES), "flags": flags
        }  # fmt: skip


def fleet(seed: int) -> Batch:
    """Return the rows of a fleet."""
    made = Fleet(seed, random.Random(seed), Batch(agent=f"agent-{seed}"))
    wanted = made.rng.sample(_PARTS, made.rng.randint(3, len(_PARTS)))
    for window in made.windows():
        for number, part in enumerate(wanted):
            # No agent tells of one instant twice; several agents do.
            made.batch.agent = f"agent-{seed}-{number}"
            if made.rng.random() < 0.9:
                part(made, window)
    return made.batch


def faster(batch: Batch, times: int) -> Batch:
    """Return the same rows in windows that are shorter by a factor."""
    origin = micros(WINDOWS[0])

    def sooner(row: dict[str, Any]) -> dict[str, Any]:
        start, end = (origin + (row[name] - origin) // times for name in ("start", "end"))
        off = row["date"] - row["start"] // _DAY_US
        edges = {name: row[name] // times for name in ("lead_us", "tail_us") if name in row}
        return {**row, **edges, "start": start, "end": end, "date": start // _DAY_US + off}

    return replace(
        batch,
        runs=[sooner(row) for row in batch.runs],
        scrapes=[sooner(row) for row in batch.scrapes],
    )


def _partitions(made: Fleet, window: float) -> None:
    """Add gauges of partitions: leader moves, stale zeros, gaps, grouped and single rows."""
    rng = made.rng
    topic = rng.choice(TOPICS)
    metric = rng.choice(
        ("kafka.partition.under_min_isr",) * 3
        + ("kafka.partition.leaderless", "kafka.partition.lag", "my.own.bean")
    )
    healthy: dict[tuple[Any, ...], list[int]] = {}
    for partition in range(rng.choice((1, 2, 5))):
        bad = rng.random() < 0.6
        for source in rng.sample(SOURCES, rng.choice((1, 1, 1, 2))):
            for start, end in made.spans(window):
                state = rng.choice(
                    ["gap", "zero", "zero", "bad"] if bad else ["gap", "zero", "zero", "idle"]
                )
                if state == "bad":
                    value = rng.choice((*VALUES, 1.0, -6.0))
                    made.batch.run(
                        metric, start, end, value, source=source, cluster=made.cluster,
                        topic=topic, partition=partition, **made.edges(),
                    )  # fmt: skip
                elif state != "gap":
                    value = None if state == "idle" else 0.0
                    healthy.setdefault((source, start, end, value), []).append(partition)
    for (source, start, end, value), partitions in healthy.items():
        _healthy(made, metric, topic, source, (start, end), value, partitions)
    if rng.random() < 0.7:
        until, told = window + rng.choice((60, 300)), float(rng.choice((2, 5)))
        made.batch.run(
            "kafka.topic.partitions", window, until, told,
            source=rng.choice(SOURCES), cluster=made.cluster, topic=topic,
        )  # fmt: skip


def _healthy(
    made: Fleet, metric: str, topic: str, source: str, span: tuple[float, float],
    value: float | None, partitions: list[int],
) -> None:  # fmt: skip
    """Add zeros, grouped as agents do, or in single rows."""
    flags = made.rng.choice(((), (tables.FLAG_DISTRIBUTION,)))
    where = {"source": source, "cluster": made.cluster, "flags": flags}
    if len(partitions) > 1 and made.rng.random() < 0.8:
        name = made.batch.set_of("partitions", topic, sorted(partitions), None, made.cluster)
        made.batch.run(
            metric, *span, value, topic=topic, series=len(partitions), members=name, **where
        )
        return
    for partition in partitions:
        made.batch.run(metric, *span, value, topic=topic, partition=partition, **where)


def _whole_window(made: Fleet, window: float) -> None:
    """Add a usual window: one or two brokers claim every partition, all zero."""
    topic, sources = made.rng.choice(TOPICS), made.rng.sample(SOURCES, made.rng.choice((1, 1, 2)))
    shared = made.rng.random() < 0.3
    for number, source in enumerate(sources):
        partitions = [0, 1, 2] if shared else [number * 3, number * 3 + 1, number * 3 + 2]
        made.batch.zeros(
            "kafka.partition.under_min_isr", window, window + WINDOW, topic, partitions,
            source=source, cluster=made.cluster,
        )  # fmt: skip
    told = 3.0 if shared else 3.0 * len(sources)
    made.batch.run(
        "kafka.topic.partitions", window, window + WINDOW, told, cluster=made.cluster, topic=topic
    )
    if made.rng.random() < 0.5:
        start, end = made.rng.choice(made.spans(window))
        made.batch.run(
            "kafka.partition.leaderless", start, end, 1.0, cluster=made.cluster, topic=topic,
            partition=made.rng.choice((0, 7)), source=made.rng.choice(SOURCES), **made.edges(),
        )  # fmt: skip


def _topic_gauges(made: Fleet, window: float) -> None:
    """Add lags per topic and broker that add up, also at different times."""
    topic = made.rng.choice(TOPICS)
    metric = made.rng.choice(
        ("kafka.topic.remote_copy_lag.bytes", "kafka.topic.remote_delete_lag.bytes")
    )
    if made.rng.random() < 0.6:
        made.batch.run(
            "kafka.topic.remote_storage_enabled", window, window + WINDOW,
            made.rng.choice((0.0, 1.0)), cluster=made.cluster, topic=topic,
        )  # fmt: skip
    for source in made.rng.sample(SOURCES, made.rng.choice((1, 2, 3))):
        for start, end in made.spans(window):
            if made.rng.random() < 0.85:
                made.batch.run(
                    metric, start, end, made.rng.choice((0.0, None, -6.0, *VALUES)), source=source,
                    cluster=made.cluster, topic=topic,
                    labels=made.rng.choice((None, [("tier", "a"), ("b", "ü")])), **made.edges(),
                )  # fmt: skip


def _clients(made: Fleet, window: float) -> None:
    """Add clients: idle in sets, throttled on several brokers, with tokens below zero."""
    rng = made.rng
    metric = rng.choice(
        ("kafka.client.produce.throttle_time", "kafka.client.fetch.throttle_time",
         "kafka.client.controller_mutation.tokens")
    )  # fmt: skip
    for source in rng.sample(SOURCES, rng.choice((1, 2))):
        for start, end in made.spans(window, 2):
            named = rng.sample(CLIENTS, rng.randint(1, len(CLIENTS)))
            busy = [client for client in named if rng.random() < 0.4]
            idle = sorted(set(named) - set(busy), key=repr)
            where = {"source": source, "cluster": made.cluster}
            for user, client_id in busy:
                made.batch.run(
                    metric, start, end, rng.choice((*VALUES, -6.0, 0.0, None)), user=user,
                    client_id=client_id, **made.edges(), **where,
                )  # fmt: skip
            if idle:
                made.batch.idle(metric, start, end, idle, **where)


def _counters(made: Fleet, window: float) -> None:
    """Add counters: unknown resets, increases over gaps, several rows of one series."""
    for _ in range(made.rng.randint(1, 4)):
        subject = made.rng.choice(
            (
                {"topic": made.rng.choice(TOPICS)},
                {"topic": "t", "partition": made.rng.randint(0, 2)},
                {"user": "u1"},
                {},
            )
        )
        start, end = made.rng.choice(made.spans(window))
        flags = (tables.FLAG_INCREASE, *made.rng.choice(((), (tables.FLAG_GAP,))))
        made.batch.run(
            "kafka.topic.remote_fetch.bytes", start, end, made.rng.choice((None, 0.0, 5.0, 7e9)),
            source=made.rng.choice(SOURCES), cluster=made.cluster, flags=flags, **subject,
        )  # fmt: skip


def _groups(made: Fleet, window: float) -> None:
    """Add groups: lag as a gauge, lost offsets as two counters, some unknown, some in sets."""
    rng, where = made.rng, {"cluster": made.cluster, "group": made.rng.choice(("g", "g'\u0000"))}
    for start, end in made.spans(window, 2):
        source = rng.choice(SOURCES)
        for partition in range(2):
            low, more = rng.choice((0.0, 0.0, 3.0)), rng.choice((0.0, 4.0))
            unknown = rng.random() < 0.2
            for name, value in (("low", low), ("high", low + more)):
                made.batch.counter(
                    f"kafka.group.non_consumed.{name}", start, end, None if unknown else value,
                    source=source, topic="t", partition=partition, **where,
                )  # fmt: skip
        name = made.batch.set_of("partitions", "t", [2, 3], None, made.cluster)
        for bound in ("low", "high"):
            made.batch.counter(
                f"kafka.group.non_consumed.{bound}", start, end, rng.choice((0.0, None)),
                source=source, topic="t", series=2, members=name, **where,
            )  # fmt: skip
        made.batch.run(
            "kafka.group.lag", start, end, rng.choice((0.0, *VALUES)), source=source, topic="t",
            partition=0, **where, **made.edges(),
        )  # fmt: skip
        behind = rng.choice((0.0, 6.0, 12.0, None))
        for bound, more in (("low", 0.0), ("high", rng.choice((0.0, 6.0)))):
            made.batch.run(
                f"my.group.behind.{bound}", start, end, None if behind is None else behind + more,
                source=source, topic="t", partition=rng.randint(0, 1), **where, **made.edges(),
            )  # fmt: skip
        _behind(made, start, end, {**where, "topic": "t", "source": source})
        if rng.random() < 0.3:
            made.batch.run("my.group.members", start, end, 6.0, source=source, **where)


def _behind(made: Fleet, start: float, end: float, where: dict[str, Any]) -> None:
    """Add a broker's report on a group's whole topic: records, and bounds of the age."""
    rng, low = made.rng, made.rng.choice((0.0, 5.0, 12.0))
    high = rng.choice((low, low + 6.0, None))
    for name, value in (("lag", rng.choice((0.0, 0.0, *VALUES, None))), ("time_lag.low", low)):
        made.batch.run(f"kafka.group.{name}", start, end, value, **where, **made.edges())
    for name, value in (("least", low), ("most", high)):
        made.batch.run(f"my.group.{name}", start, end, value, **where)
    if rng.random() < 0.9:
        made.batch.run("kafka.group.time_lag.high", start, end, high, **where, **made.edges())


def _changing(made: Fleet, window: float) -> None:
    """Add values that change in each scrape, flagged as agents do, with gaps.

    Sometimes a second broker leads from some instant, or claims to lead all the time.
    """
    rng, metric = made.rng, made.rng.choice(("kafka.partition.lag", "kafka.group.lag"))
    more = {"group": "g"} if metric.startswith("kafka.group") else {}
    further = rng.choice(((), (), (tables.FLAG_DISTRIBUTION,), (tables.FLAG_KNOWN_WRONG,)))
    for partition in range(2):
        first, count = rng.choice((0.0, 7.5, 200.0)), rng.randint(2, 10)
        ticks = [window + first + 10.0 * number for number in range(count + 1)]
        away = rng.random() < 0.3 and rng.randint(0, count - 1)
        sources = [rng.choice(SOURCES)] * count
        if rng.random() < 0.3:
            sources[rng.randint(0, count) :] = [rng.choice(SOURCES)] * count
        for number, span in enumerate(pairwise(ticks)):
            if away and number == away:
                continue
            came = number > 0 and not (away and number - 1 == away)
            goes = number + 1 < count and not (away and number + 1 == away)
            flags = [*further]
            flags += [tables.FLAG_PREVIOUS_POSITIVE] * came + [tables.FLAG_NEXT_POSITIVE] * goes
            made.batch.run(
                metric, *span, rng.choice(VALUES), source=sources[number], topic="changing",
                partition=partition, cluster=made.cluster, tail=10.0, flags=tuple(flags),
                lead=rng.choice((7.0, 12.0)) if span[0] > window else 0.0, **more,
            )  # fmt: skip


def _steady(made: Fleet, window: float) -> None:
    """Add the same zeros in each window; sometimes a partition is bad or has two reporters."""
    flags = ((), (tables.FLAG_DISTRIBUTION,), (tables.FLAG_KNOWN_WRONG,))[made.seed % 3]
    value, rng = (0.0, None)[made.seed % 2], made.rng
    where = {"cluster": made.cluster, "flags": flags}
    shared = {"metric": "kafka.partition.at_min_isr", "topic": "steady"}
    partitions = [0, 1] if rng.random() < 0.2 else [0, 1, 2]
    name = made.batch.set_of("partitions", "steady", partitions, None, made.cluster)
    made.batch.run(
        start=window, end=window + WINDOW, value=value, series=len(partitions), members=name,
        source="broker-1", **shared, **where,
    )  # fmt: skip
    for start, end in made.spans(window, 2) if rng.random() < 0.3 else ():
        made.batch.run(
            start=start, end=end, value=rng.choice((0.0, 6.0)), source="broker-2", partition=2,
            **shared, **where,
        )  # fmt: skip
    idle = made.batch.set_of("clients", None, None, list(CLIENTS[:3]), made.cluster)
    made.batch.run(
        "kafka.client.fetch.throttle_time", window, window + WINDOW, None, series=3, members=idle,
        source="broker-3", **where,
    )  # fmt: skip


def _sources(made: Fleet, window: float) -> None:
    """Add attributes of nodes, figures of sources, and own metrics with misleading names."""
    for source in made.rng.sample(SOURCES, 2):
        for start, end in made.spans(window, 2):
            rack = ([], [("rack", "")], [("rack", "a")], [("rack", "b")])[micros(end) % 7 % 4]
            made.batch.run(
                "kafka.cluster.node.fenced", start, end, made.rng.choice((0.0, 1.0, None)),
                source=source, cluster=made.cluster,
                labels=[("node", made.rng.choice(("broker-1", "broker-9"))), *rack],
            )  # fmt: skip
            made.batch.run(
                "kafka.controller.active", start, end, made.rng.choice((0.0, 6.0)), source=source,
                cluster=made.cluster, **made.edges(),
            )  # fmt: skip
            for processor in range(made.rng.choice((1, 2))):
                made.batch.run(
                    "my.own.idle", start, end, made.rng.choice((None, 0.0, *VALUES)),
                    source=source, cluster=made.cluster, labels=[("processor", str(processor))],
                    **made.edges(),
                )  # fmt: skip
            made.batch.run(
                "kafka.log.size", start, end, 60.0, source=source, cluster=made.cluster, topic="t",
                partition=made.rng.randint(0, 1),
            )  # fmt: skip
            of_user = {"source": source, "cluster": made.cluster, "topic": "t"}
            for metric, value in _OF_PARTITIONS.items():
                made.batch.run(metric, start, end, value, partition=0, **of_user)
            made.batch.run("my.topic.tier", start, end, 2.0, **of_user)
    made.batch.run(
        "kafka.quota.produce.byte_rate", window, window + WINDOW, made.rng.choice((6e6, 600.0)),
        cluster=made.cluster, user=made.rng.choice((None, "u1")),
        labels=made.rng.choice(([("default", "client-id")], [("default", "user,client-id")])),
    )  # fmt: skip


def _accounts(made: Fleet, window: float) -> None:
    """Add every outcome of attempts, late families and skipped ticks."""
    for source in made.rng.sample(SOURCES, made.rng.choice((1, 2))):
        for family in made.rng.sample(("min_isr", "topology", "quotas", "tiered", "offsets"), 4):
            for start, end in made.spans(window, 3):
                outcome = made.rng.choice(
                    ("ok", "ok", "ok", "timeout", "refused", "down", "skipped", "dropped", "gap")
                )
                if outcome != "gap":
                    made.batch.scrape(
                        family, start, end, outcome, source=source, cluster=made.cluster
                    )


_PARTS = (
    _partitions, _partitions, _whole_window, _whole_window, _topic_gauges, _clients, _counters,
    _groups, _changing, _steady, _sources, _accounts, bad_rows.sprinkle,
)  # fmt: skip
