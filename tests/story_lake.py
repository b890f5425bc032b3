"""The lake of an invented cluster: three brokers in three racks, and what went wrong there.

It is made by hand, row by row, as agents write bronze. Golden files and the pictures of
docs/report.md come from it: it has something of everything that the page shows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from deltalake import write_deltalake

from collector.delivery import arrow
from lakehouse import tables
from tests.lake_builder import CLUSTER, Batch, made, micros

if TYPE_CHECKING:
    from pathlib import Path

BROKERS: Final = {"broker-1": "eu-1a", "broker-2": "eu-1b", "broker-3": "eu-1c"}
TOPICS: Final = {"orders": 6, "payments": 6, "shipments": 3, "clicks": 6, "archive": 3}
FAMILIES: Final = (
    "min_isr", "topology", "quotas", "client_rates", "quota_limits", "offsets", "tiered",
    "remote_reads", "leaders", "log", "tiered_offsets", "acme", "requests",
    "traffic",
)  # fmt: skip
OTHERS: Final = {"controller-100": "controller", "client-loader": "client"}
STORED: Final = {"orders": 400.0, "archive": 64.0}
"""Topics of which the size of replicas was read: MiB of each at first."""
ISR: Final = "kafka.partition.under_min_isr"
UNDER: Final = "kafka.broker.under_min_isr"
LEADERLESS: Final = "kafka.partition.leaderless"
MISSING: Final = "kafka.partition.under_replicated"
THROTTLE: Final = "kafka.client.produce.throttle_time"
RATE: Final = "kafka.client.produce.byte_rate"
COPY_LAG: Final = "kafka.topic.remote_copy_lag.bytes"
FETCH: Final = "kafka.topic.remote_fetch"
LOST: Final = "kafka.group.non_consumed"
ANSWERS: Final = "kafka.broker.{}.answers"
P99: Final = "kafka.broker.{}.time.p99"
RECORDS: Final = {"orders": 12_000, "payments": 3_000, "clicks": 90_000}
"""Records that each broker takes in a window, by topic."""
RECORD_BYTES: Final = 400
MEBI: Final = 1024.0 * 1024.0
WINDOW: Final = 300.0
HOUR: Final = 3600.0
ELECTED: Final = 9.0
"""Seconds until the partitions of a broker that died have another leader."""
OWN: Final = (
    ("queue", "gauge", "{call}", "Calls that wait for the gateway."),
    ("calls", "counter", "{call}", "Calls of the gateway, by error code."),
)
NOBODY: Final = dict.fromkeys(("topic", "partition", "user", "client_id", "group", "old", "new"))


@dataclass
class Story:
    """What happened, at seconds after a first instant.

    Args:
        hours: How long it lasts.
        first: When it begins, seconds after ``BASE``.
    """

    hours: int
    first: float = 0.0
    batch: Batch = field(default_factory=Batch)
    events: list[dict[str, Any]] = field(default_factory=list)

    def at(self, part: float) -> float:
        """The window that begins a part of the story after its beginning."""
        return self.first + int(part * self.hours * HOUR / WINDOW) * WINDOW

    @property
    def maintenance(self) -> tuple[float, float]:
        """When the disks of broker 3 were exchanged, as planned: seconds after ``BASE``."""
        start = self.at(0.6)
        return start, start + 6 * WINDOW

    @property
    def outage(self) -> tuple[float, float]:
        """When broker 2 was dead: seconds after ``BASE``."""
        return self.at(0.3) + 100.0, self.at(0.3) + 172.0

    @property
    def throttled(self) -> tuple[tuple[float, float], ...]:
        """When the bulk loader was slowed down: seconds after ``BASE``."""
        return (self.at(0.45), self.at(0.5)), (self.at(0.9), self.at(0.93))

    def tell(self) -> Story:
        """All of it, window by window."""
        down, back = self.outage
        for number in range(int(self.hours * HOUR / WINDOW)):
            start = self.first + number * WINDOW
            self._topics(start, down, back)
            self._clients(start)
            self._brokers(start, down, back)
            self._tiers(start)
            self._uploads(start)
            self._stored(start)
            self._own(start)
            self._groups(start)
            for source in BROKERS:
                self._seen(start, source, down, back)
                self._served(number, start, source, down, back)
            for source, family in OTHERS.items():
                self.batch.scrape(family, start, start + WINDOW, source=source)
            if start % HOUR == 0:
                self._described(start)
        self._happened(down, back)
        for source in BROKERS:  # what the period's last readings did not count
            self._served(0, self.first + self.hours * HOUR, source, down, back)
            for family in ("requests", "traffic"):
                start = self.first + self.hours * HOUR
                self.batch.scrape(family, start, start + WINDOW, source=source)
        return self

    def _topics(self, start: float, down: float, back: float) -> None:
        """Partitions; each is led by a broker, and broker 2 dies once."""
        bad = self._bad(start, down, back)
        for topic, partitions in TOPICS.items():
            for number, source in enumerate(BROKERS):
                own = [one for one in range(partitions) if one % len(BROKERS) == number]
                well = [one for one in own if (topic, one) not in bad]
                for first, last, teller in _tellers(start, source, down, back):
                    self.batch.zeros(ISR, first, last, topic, well, source=teller)
                    self.batch.zeros(LEADERLESS, first, last, topic, own, source=teller)
                for one in own:
                    for since, until in bad.get((topic, one), ()):
                        self._ill(start, topic, one, source, since, until)
                    if source == "broker-2" and start <= down < start + WINDOW:
                        self._headless(topic, one, down)

    def _headless(self, topic: str, one: int, down: float) -> None:
        """A partition of the broker that died, until the controller has elected another leader."""
        for teller in ("broker-1", "broker-3"):
            self.batch.run(LEADERLESS, down, down + ELECTED, 1.0, topic=topic, partition=one,
                           source=teller, lead=2.0, tail=2.0)  # fmt: skip

    def _bad(self, start: float, down: float, back: float) -> dict[tuple[str, int], Any]:
        spans = {("orders", 0): [(down, back)], ("orders", 3): [(down, back)]}
        spans[("payments", 2)] = [(down + 4, back - 10)]
        since, until = self.maintenance
        spans[("shipments", 0)] = [(since + 60, until - 60)]
        spans[("clicks", 4)] = [(self.at(0.8) + 30, self.at(0.8) + 75)]
        cut = {
            key: [(max(a, start), min(b, start + WINDOW)) for a, b in found
                  if a < start + WINDOW and b > start]
            for key, found in spans.items()
        }  # fmt: skip
        return {key: found for key, found in cut.items() if found}

    def _ill(
        self, start: float, topic: str, one: int, source: str, since: float, until: float
    ) -> None:
        zeros = ((start, since), (until, start + WINDOW))
        for first, last in zeros:
            if first < last:
                self.batch.zeros(ISR, first, last, topic, [one], source=source)
        whole = {"topic": topic, "partition": one, "source": source}
        lead, tail = 2.0 * (since > start), 2.0 * (until < start + WINDOW)
        self.batch.run(ISR, since, until, 1.0, lead=lead, tail=tail, **whole)
        self.batch.run(MISSING, since, until, 1.0, lead=lead, tail=tail, **whole)

    def _clients(self, start: float) -> None:
        """The bulk loader is slowed down for a part of each load; billing never."""
        end = start + WINDOW
        slow = self._slow(start)
        loader = {"user": "loader", "client_id": "bulk-loader"}
        if slow:
            self.batch.run(THROTTLE, start, end, 420.0, tail=2.0, **loader)
            self.batch.run(RATE, start, end, 1.1 * MEBI, **loader)
            for kind, waits in (("avg", 410.0), ("max", 930.0)):
                self.batch.run(f"kafka.producer.produce_throttle_time.{kind}", start, end, waits,
                               source="client-loader", client_id="bulk-loader")  # fmt: skip
        else:
            self.batch.idle(THROTTLE, start, end, [("loader", "bulk-loader")])
        self.batch.idle(THROTTLE, start, end, [("alice", "billing")])
        self.batch.run(RATE, start, end, 0.2 * MEBI, user="alice", client_id="billing")

    def _slow(self, start: float) -> bool:
        return any(first <= start < last for first, last in self.throttled)

    def _brokers(self, start: float, down: float, back: float) -> None:
        """What brokers and the controller count of themselves."""
        end, refused = start + WINDOW, "kafka.broker.produce_errors.not_enough_replicas"
        bad = self._bad(start, down, back)
        for number, (source, led) in enumerate(zip(BROKERS, (9, 8, 7), strict=True)):
            spans = [span for (_, one), found in bad.items() if one % 3 == number for span in found]
            under = sum(until - since for since, until in spans) / WINDOW
            self.batch.run(f"{UNDER}_partitions", start, end, under, source=source)
            self.batch.run("kafka.broker.led_partitions", start, end, led, source=source)
            shrunk = float(source == "broker-1" and start <= down < end)
            for what in ("shrinks", "expands"):
                self.batch.counter(f"kafka.broker.isr_{what}", start, end, shrunk, source=source)
            waits = 3.0 * (source == "broker-1" and self._slow(start))
            for kind in ("produce", "fetch", "request", "controller_mutation"):
                wait = waits if kind == "produce" else 0.0
                name = f"kafka.broker.{kind}.queue_size"
                self.batch.run(name, start, end, wait, source=source)
            self.batch.run("kafka.broker.request.exempt_time", start, end, 11.5, source=source)
        if start <= down < end:
            self.batch.counter(refused, start, end, 131.0)
        for metric, value in (("active", 1.0), ("offline_partitions", 0.0), ("active_brokers", 3.0),
                              ("fenced_brokers", float(start <= back < end))):  # fmt: skip
            self.batch.run(f"kafka.controller.{metric}", start, end, value, source="controller-100")

    def _uploads(self, start: float) -> None:
        """Broker 1 leads the archive; its quota holds uploads back, and some fail."""
        end, until = start + WINDOW, self.at(0.3) + 3 * WINDOW
        held = self.at(0.3) <= start < until
        for kind, waits in (("avg", 700.0), ("max", 1900.0)):
            name = f"kafka.broker.remote_copy.throttle_time.{kind}"
            self.batch.run(name, start, end, waits if held else None, tail=60.0 * (end == until))
        self.batch.run("kafka.broker.remote_copy.byte_rate", start, end, 0.3 * MEBI)
        self.batch.run("kafka.broker.remote_log_manager.tasks_idle", start, end, 0.9 - 0.6 * held)
        for what, errors in (("copy", 2.0 * (start == self.at(0.3))), ("delete", 0.0)):
            for name, value in (("requests", 4.0), ("errors", errors)):
                self.batch.counter(f"kafka.topic.remote_{what}.{name}", start, end, value,
                                   topic="archive")  # fmt: skip
        for partition in range(TOPICS["archive"]):
            self.batch.run(
                "kafka.partition.untiered_records",
                start,
                end,
                1_000.0 * (1 + 30 * held),
                topic="archive",
                partition=partition,
            )

    def _stored(self, start: float) -> None:
        """Replicas; those of orders grow by a MiB an hour."""
        end, hours = start + WINDOW, (start - self.first) / HOUR
        for topic, mebis in STORED.items():
            grown = mebis + (hours if topic == "orders" else 0.0)
            for partition in range(TOPICS[topic]):
                for source in BROKERS:
                    one = {"topic": topic, "partition": partition, "source": source}
                    size = (grown + 2.0 * partition) * MEBI
                    self.batch.run("kafka.log.size", start, end, size, **one)
                    self.batch.run("kafka.log.segments", start, end, 3.0, **one)

    def _tiers(self, start: float) -> None:
        end = start + WINDOW
        behind = start - self.at(0.3)
        waits = max(0.0, 45.0 - abs(behind - 6 * WINDOW) / 60) if 0 <= behind < 14 * WINDOW else 0.0
        self.batch.run(COPY_LAG, start, end, waits * MEBI, topic="archive")
        for unit in ("bytes", "segments"):
            lag = f"kafka.topic.remote_delete_lag.{unit}"
            self.batch.run(lag, start, end, 0.0, topic="archive")
        reads = self.at(0.7) <= start < self.at(0.74)
        for name, value in (("requests", 40.0), ("bytes", 12 * MEBI), ("errors", 0.0)):
            self.batch.counter(f"{FETCH}.{name}", start, end, value * reads, topic="archive")

    def _groups(self, start: float) -> None:
        """The nightly job falls behind, loses what it has not read in time, and catches up."""
        end = start + WINDOW
        since = start - self.at(0.7)
        behind = since / WINDOW + 1 if since >= 0 and start < self.at(0.9) else 0.0
        nightly: dict[str, Any] = {"group": "nightly", "topic": "clicks"}
        nightly |= {"lead": 30.0, "tail": 30.0}
        low, high = behind * WINDOW, (behind + 1) * WINDOW if behind else 75.0
        self.batch.run("kafka.group.lag", start, end, behind * 4_096.0, **nightly)
        self.batch.run("kafka.group.time_lag.low", start, end, low, **nightly)
        self.batch.run("kafka.group.time_lag.high", start, end, high, **nightly)
        if behind * 4_096 > 10_000:
            nightly |= {"partition": 0}
            self.batch.run("kafka.group.partition_lag", start, end, behind * 4_096.0, **nightly)
        lost = start == self.at(0.85)
        for bound, value in (("low", 12_400.0), ("high", 12_431.0)):
            self.batch.counter(f"{LOST}.{bound}", start, end, value * lost, group="nightly",
                               topic="clicks", partition=0)  # fmt: skip

    def _own(self, start: float) -> None:
        """Metrics of an own catalogue, and one of the shipped one that no question is about."""
        end = start + WINDOW
        for number, source in enumerate(BROKERS):
            busy = 12.0 * (number == 1 and self.at(0.45) <= start < self.at(0.5))
            self.batch.run(
                "acme.gateway.queue", start, end, busy, source=source, tail=2.0 * bool(busy)
            )
            for code, calls in (("NONE", 300.0), ("TIMEOUT", busy)):
                self.batch.counter(
                    "acme.gateway.calls", start, end, calls, source=source,
                    labels=[("error", code)],
                )  # fmt: skip
            self.batch.run("kafka.controller.active_brokers", start, end, 3.0, source=source)

    def _seen(self, start: float, source: str, down: float, back: float) -> None:
        end = start + WINDOW
        error = "connection refused by broker-2:9102; is the broker running?"
        for family in FAMILIES:
            if source != "broker-2" or end <= down or start >= back:
                self.batch.scrape(family, start, end, source=source)
                continue
            self.batch.scrape(family, start, down, source=source)
            self.batch.scrape(family, down, back, "refused", source=source, error=error)
            self.batch.scrape(family, back, end, source=source)

    def _served(self, number: int, start: float, source: str, down: float, back: float) -> None:
        """What a broker answered, how fast, and how much went through it."""
        end = start + WINDOW
        if source == "broker-2" and start < back and end > down:
            return  # it was counted last before it died, and begins again at zero
        self._measured(start, source)
        died, load = start <= down < end, 0.7 + 0.05 * (number % 12)
        refused = 420.0 if died and source == "broker-1" else 0.0
        large = 3.0 if start == self.at(0.55) and source == "broker-3" else 0.0
        for request, error, answers in (
            ("produce", "NONE", 60_000.0), ("fetch", "NONE", 240_000.0),
            ("produce", "NOT_ENOUGH_REPLICAS", refused), ("produce", "MESSAGE_TOO_LARGE", large),
        ):  # fmt: skip
            many = round(answers * load) if error == "NONE" else answers
            if many:
                metric = ANSWERS.format(request)
                self.batch.counter(metric, start, end, many, source=source,
                                   labels=[("error", error)])  # fmt: skip
        for topic, records in RECORDS.items():
            many = float(round(records * load))
            for name, value in (
                ("messages_in", many), ("bytes_in", many * RECORD_BYTES),
                ("bytes_out", 2 * many * RECORD_BYTES),
            ):  # fmt: skip
                self.batch.counter(f"kafka.topic.{name}", start, end, value, topic=topic,
                                   source=source)  # fmt: skip

    def _measured(self, start: float, source: str) -> None:
        """How fast a broker answered; broker 1 was slow for a while."""
        end = start + WINDOW
        self.batch.run(P99.format("fetch_consumer"), start, end, 505.0, source=source)
        since, until = self.at(0.3) + 70, self.at(0.4) + 100
        if source != "broker-1":
            since = until = end
        spans = ((start, since, 14.0), (since, until, 2_300.0), (until, end, 14.0))
        for first, last, time in ((max(start, a), min(end, b), t) for a, b, t in spans):
            if first < last:
                self.batch.run(
                    P99.format("produce"), first, last, time, source=source,
                    lead=30.0 * (first > start), tail=30.0 * (last < end),
                )  # fmt: skip

    def _described(self, start: float) -> None:
        end = start + WINDOW
        for topic, partitions in TOPICS.items():
            for metric, value in (
                ("partitions", partitions), ("replication_factor", 3), ("min_insync_replicas", 2),
                ("remote_storage_enabled", topic == "archive"), ("retention_time", 7 * 24 * 36e5),
                ("retention_bytes", 1024 * MEBI if topic == "orders" else -1),
            ):  # fmt: skip
                self.batch.run(f"kafka.topic.{metric}", start, end, float(value), topic=topic)
        for node, rack in BROKERS.items():
            self.batch.run("kafka.cluster.node.fenced", start, end, 0.0,
                           labels=[("node", node), ("rack", rack)])  # fmt: skip
        quota = {"user": "loader", "client_id": "bulk-loader"}
        self.batch.run("kafka.quota.produce.byte_rate", start, end, MEBI, **quota)

    def _happened(self, down: float, back: float) -> None:
        for partition in (0, 3):
            self._event(down + 3, "leader_change", "broker-1", topic="orders",
                        partition=partition, old="broker-2", new="broker-1")  # fmt: skip
        self._event(back, "source_restart", "broker-2")
        self._event(self.at(0.5), "quota_change", "broker-1", user="loader",
                    client_id="bulk-loader", old="524288", new="1048576")  # fmt: skip
        self._event(self.maintenance[0] + 60, "source_restart", "broker-3")
        self._event(self.at(0.75), "agent_start", "broker-1")

    def _event(self, at: float, kind: str, source: str, **subject: Any) -> None:
        who = {"agent": self.batch.agent, "batch": self.batch.number}
        self.events.append(
            {"date": micros(at) // 86_400_000_000, "cluster": CLUSTER, "source": source,
             "at": micros(at), "kind": kind, **NOBODY, **subject, **who}
        )  # fmt: skip

    def commit(self, lake: Path) -> None:
        """Write it all to bronze."""
        self.batch.commit(lake)
        columns = tables.EVENTS.column_names
        rows = [tuple(row.get(name) for name in columns) for row in self.events]
        write_deltalake(
            made(lake, tables.EVENTS), arrow.to_arrow(tables.EVENTS, rows), mode="append"
        )
        defined = [
            ("story", f"acme.gateway.{name}", "acme", ["broker"], kind, unit, "zero", 0, 0, text,
             self.batch.agent)
            for name, kind, unit, text in OWN
        ]  # fmt: skip
        write_deltalake(
            made(lake, tables.METRIC_DEFINITIONS),
            arrow.to_arrow(tables.METRIC_DEFINITIONS, defined), mode="append",
        )  # fmt: skip


def _tellers(start: float, source: str, down: float, back: float) -> list[tuple[float, float, str]]:
    """Who tells in a window of the partitions that a broker leads, from when to when."""
    end = start + WINDOW
    if source != "broker-2" or end <= down or start >= back:
        return [(start, end, source)]
    return [(start, down, source), (down + ELECTED, back, "broker-3"), (back, end, source)]
