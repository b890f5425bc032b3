"""A fleet's bronze with something of everything; the same at every call."""

from __future__ import annotations

import datetime as dt
import random
from typing import TYPE_CHECKING, Any

from lakehouse import tables
from tests.lake_builder import Batch
from tests.sql_views import jmxlake

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

ISR, LEADERLESS = "kafka.partition.under_min_isr", "kafka.partition.leaderless"
LAG, FETCHED = "kafka.topic.remote_copy_lag.bytes", "kafka.topic.remote_fetch.bytes"
THROTTLE, QUOTA = "kafka.client.produce.throttle_time", "kafka.quota.produce.byte_rate"
LOST = "kafka.group.non_consumed"
ANSWERS = "kafka.broker.produce.answers"
HOSTILE = ("o'hara", "<script>alert(1)</script>")
"""A user and a client id that want to be SQL and markup."""
ASKED_FOR = (tables.FLAG_DISTRIBUTION,)
WINDOW, HOUR, WEEK = 300, 3600, 7 * 86400
SPAN = ("2026-11-09T10:00:00Z", "2026-11-09T14:00:00Z")
"""Four hours with two of data, the week before the builder's base: past, whenever a test runs."""
ISO_WEEK = "2026-W46"


def batches(topics: int = 3, partitions: int = 6, windows: int = 12) -> tuple[Batch, Batch]:
    """What two agents deliver of three brokers, one of which dies; the second is late."""
    drawn = random.Random(16)
    first, second = Batch(agent="agent-1"), Batch(agent="agent-2", number=7)
    for number in range(windows):
        # The second hour begins an hour late: a silent one lies between.
        at = float(number * WINDOW + (HOUR if number * 2 >= windows else 0) - WEEK)
        batch = first if number % 2 else second
        for topic in range(topics):
            _topic(batch, drawn, at, f"topic-{topic}", partitions)
        _clients(batch, drawn, at)
        _account(batch, at, alive=number < windows - 2)
    _wrong(first)
    return first, second


def stated(root: Path) -> Path:
    """A lake of theirs, rolled up without Spark, with its week stated."""
    for batch in batches():
        batch.commit(root)
    jmxlake("rollup", str(root), "--engine", "local")
    jmxlake("slo", "publish", str(root), "--week", ISO_WEEK)
    return root


def events_of(rows: Iterable[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Rows of a table of events on a dashboard: start, microseconds, kind, cause and incidents."""
    return sorted(
        (
            str(row["start"]), round(row["duration_minutes"] * 6e7),
            round(row["bad_minutes"] * 6e7), row["kind"],
            str(row["likely_cause"]).partition(":")[0], row["incidents"],
        )
        for row in rows
    )  # fmt: skip


def events_told(report: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The same of a report's events."""
    told = []
    for event in report["events"]:
        start, end = (dt.datetime.fromisoformat(event[name]) for name in ("from", "to"))
        kind, cause = (one.replace("_", " ") for one in (event["kind"], event["cause"]["kind"]))
        told.append((
            f"{start:%Y-%m-%d %H:%M:%S}", round((end - start).total_seconds() * 1e6),
            event["bad_us"], ": ".join(filter(None, (kind, event["of"]))), cause,
            event["incidents"],
        ))  # fmt: skip
    return sorted(told)


def _topic(batch: Batch, drawn: random.Random, at: float, topic: str, partitions: int) -> None:
    bad = set(drawn.sample(range(partitions), partitions // 3))
    end = at + WINDOW
    batch.zeros(ISR, at, end, topic, sorted({*range(partitions)} - bad))
    for partition in bad:
        begun = at + drawn.randrange(10, 150)
        over = begun + drawn.randrange(10, 140)
        source = f"broker-{1 + partition % 2}"
        named = {"topic": topic, "partition": partition, "source": source}
        batch.run(ISR, at, begun, 0.0, **named)
        batch.run(ISR, begun, over, 1.0, lead=drawn.uniform(0, 10), tail=10, **named)
        batch.run(ISR, over, end, 0.0, **named)
        if partition == 0:
            batch.run(LEADERLESS, begun, over, 1.0, topic=topic, partition=0, tail=5)
            batch.run(LEADERLESS, begun + 3, over, 1.0, source="broker-2", topic=topic, partition=0)
    for source in ("broker-1", "broker-2"):
        lag = drawn.uniform(0, 1e9)
        batch.run(LAG, at, end, lag, topic=topic, source=source, flags=ASKED_FOR)
        batch.counter(FETCHED, at, end, float(drawn.randrange(1000)), topic=topic, source=source)
        size = {"topic": topic, "partition": 0, "source": source}
        batch.run("kafka.log.size", at, end, 5e8 + at + WEEK, **size)
    waiting = {"topic": topic, "partition": 1, "source": "broker-1"}
    batch.run("kafka.partition.upload_lag.records", at, end, 40.0, **waiting)
    batch.run("kafka.partition.upload_lag.bytes", at, end, 4e6, **waiting)
    batch.run("kafka.topic.partitions", at, end, float(partitions), topic=topic)
    batch.run("kafka.topic.remote_storage_enabled", at, end, 1.0, topic=topic)
    for bound, lost in (("low", 3), ("high", 9)):
        value = None if at % 900 else float(lost * drawn.randrange(3))
        batch.counter(f"{LOST}.{bound}", at, end, value, group="g", topic=topic, partition=0)
    unread = float(drawn.randrange(50))
    batch.run("kafka.group.lag", at, end, unread, group="g", topic=topic, tail=7)
    for bound, seconds in (("low", unread), ("high", unread + 30 if unread else None)):
        batch.run(f"kafka.group.time_lag.{bound}", at, end, seconds, group="g", topic=topic)


def _clients(batch: Batch, drawn: random.Random, at: float) -> None:
    batch.idle(THROTTLE, at, at + WINDOW, [("u-2", None), (None, "c-2")])
    batch.run(QUOTA, at, at + WINDOW, 1e6, user="u-1")
    begun = at + drawn.randrange(0, 200)
    for source in ("broker-1", "broker-2"):
        over = begun + drawn.randrange(20, 90)
        batch.run(THROTTLE, begun, over, drawn.uniform(1, 900), user="u-1", source=source, tail=20)
    user, client_id = HOSTILE
    batch.run(
        THROTTLE, at + 20, at + 100, 250.0, user=user, client_id=client_id, source="broker-1",
        tail=20,
    )  # fmt: skip


def _account(batch: Batch, at: float, *, alive: bool) -> None:
    end = at + WINDOW
    for source in ("broker-1", "broker-2"):
        batch.scrape("min_isr", at, end, source=source)
        batch.scrape("topology", at, end, source=source)
        for code in ("NONE", HOSTILE[1]):
            labels = [("error", code)]
            batch.counter(ANSWERS, at, end, float(at % 7), source=source, labels=labels)
        batch.scrape("quotas", at, end, source=source)
        batch.scrape("log", at, end, source=source)
    outcome = ("ok", None) if alive else ("refused", "connection refused")
    for family in ("min_isr", "quotas"):
        batch.scrape(family, at, end, outcome[0], source="broker-3", error=outcome[1])
    for node, fenced in (("broker-1", 0.0), ("broker-2", 0.0), ("broker-3", float(not alive))):
        batch.run("kafka.cluster.node.fenced", at, end, fenced, labels=[("node", node)])


def _wrong(batch: Batch) -> None:
    at = float(50 - WEEK)
    batch.run(ISR, at, at, 1.0, topic="topic-0", partition=0)
    batch.run(ISR, at, at + WINDOW, 1.0, topic="topic-0", partition=0)
    batch.run(ISR, at, at + 10, float("nan"), topic="topic-0", partition=1)
    batch.run(ISR, at, at + 10, 1.0, partition=1)
