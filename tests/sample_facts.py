"""Invented facts for tests of the page: quiet, bad, silent, hostile and many."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

from lakehouse.report.facts.objectives.statement_rows import with_budgets
from lakehouse.report.facts.sections.consumer_groups import group_totals

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
WEEK = 7 * 24 * HOUR

WEEK_START = datetime(2026, 11, 9, tzinfo=UTC)

Facts = dict[str, Any]


def iso(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")


def bounded(stem: str, value: int | None, low: int | None, high: int | None) -> Facts:
    return {f"{stem}_us": value, f"{stem}_low_us": low, f"{stem}_high_us": high}


def exactly(stem: str, value: int | None) -> Facts:
    return bounded(stem, value, value, value)


def points(start: datetime, step: timedelta, values: list[Any]) -> list[Any]:
    """Points of a timeline; a number is a value without doubt."""
    rows = [(value if isinstance(value, tuple) else (value,) * 3) for value in values]
    return [[iso(start + step * index), *row] for index, row in enumerate(rows)]


def topic(name: str, **given: Any) -> Facts:
    nothing = {"topic": name, "partitions": 6, "at_min_us": 0, "max_concurrent": 0, "unknown_us": 0}
    for stem in ("any", "under", "leaderless", "unavailable_any"):
        nothing |= exactly(stem, 0)
    return nothing | given


def late(group: str, topic: str, records: Any, seconds: Any, **given: Any) -> Facts:
    """A group that was behind for half an hour, and still is."""
    keys = ("records_low", "records_high", "seconds_low", "seconds_high")
    behind: Facts = dict(zip(keys, (*records, *seconds), strict=True))
    behind["seconds_unknown_us"] = 30 * SECOND if seconds[1] is None else 0
    return {
        "group": group,
        "topic": topic,
        **bounded("behind", 30 * MINUTE, 29 * MINUTE, 31 * MINUTE),
        "most": behind,
        "last": behind,
        "as_of": iso(WEEK_START + timedelta(days=6)),
        "unknown_us": 0,
        **given,
    }


def indexes(
    source: str, basis: str, trips: Any, at_once: Any, saved: Any, fetches: Any = None
) -> Facts:
    """A broker's fetches of indexes, each round trip of which takes half a second."""

    def times(figure: Any) -> Any:
        return tuple(None if one is None else one / 2 for one in figure)

    row: Facts = {"source": source, "basis": basis, "way": "at once" if fetches else "one by one"}
    each = None if at_once[0] is None else trips[0] / 2 / at_once[0]
    most = None if at_once[1] == 0 else trips[2] / 2 / at_once[1]
    for name, figure in (
        ("fetches", fetches or trips), ("round_trips", trips), ("seconds", times(trips)),
        ("segment_seconds", (each, trips[1] / 2 / at_once[2], most)),
        ("at_once", at_once), ("saved", saved), ("saved_seconds", times(saved)),
        ("requests", fetches or trips), ("requests_saved", (0,) * 3 if fetches else saved),
    ):  # fmt: skip
        row |= dict(zip((name, f"{name}_low", f"{name}_high"), figure, strict=True))
    return row


def client(client_id: str | None, user: str | None, kind: str, **given: Any) -> Facts:
    return {
        "user": user,
        "client_id": client_id,
        "kind": kind,
        **exactly("throttled", 0),
        "throttle_ms_mean": None,
        "throttle_ms_max": None,
        "rate_mean": 210_000.0,
        "rate_max": 524_288.0,
        "rate_unit": "By/s",
        "quota": 1_048_576.0,
        "unknown_us": 0,
        **given,
    }


def judged(
    verdict: str, expected: int, bad: tuple[int, int, int], unknown: int, **who: Any
) -> Facts:
    value, low, high = bad
    seen = expected - unknown
    budget = expected // 100
    return {
        **who,
        "expected_us": expected,
        "good_us": seen - value,
        **bounded("bad", value, low, high),
        "unknown_us": unknown,
        "attainment": (seen - value) / seen if seen else None,
        "attainment_low": (seen - high) / expected if seen else None,
        "attainment_high": (expected - low) / expected if seen else None,
        "budget_us": budget if seen else None,
        "budget_left_us": budget - value if seen else None,
        "verdict": verdict,
    }


def objective(name: str, title: str, level: str, subjects: list[Facts]) -> tuple[Facts, Facts]:
    """An objective and its verdict."""
    counted = {
        key: sum(one["verdict"] == key for one in subjects)
        for key in ("missed", "uncertain", "no_data", "met")
    }
    verdict = next((key for key in counted if counted[key]), "no_data")
    shared = {"title": title, "target": 0.99}
    made = {
        "name": name,
        **shared,
        "description": f"{title}, judged for each {level}.",
        "level": level,
        "window": "7d",
        "history": [],
        "subjects": subjects,
    }
    return (
        with_budgets([made], running=False, floor=0)[0],
        {
            "objective": name,
            **shared,
            "verdict": verdict,
            "subjects": len(subjects),
            **counted,
        },
    )


def facts(
    start: datetime, end: datetime, window_seconds: int, pairs: list[tuple[Facts, Facts]]
) -> Facts:
    order = ("missed", "uncertain", "no_data", "met")
    verdicts = sorted((pair[1] for pair in pairs), key=lambda one: order.index(one["verdict"]))
    return {
        "format": 2,
        "jmxlake": "0.1.0",
        "cluster": "4L6g3nShT-eMCtK--X86sw",
        "from": iso(start),
        "to": iso(end),
        "generated_at": iso(end + timedelta(minutes=6)),
        "running": False,
        "window_seconds": window_seconds,
        "verdicts": verdicts,
        "objectives": [pair[0] for pair in pairs],
        "min_isr": {"topics": [], "partitions": [], "brokers": []},
        "replication": {"topics": []},
        "throttling": {"clients": []},
        "tier_lag": {"topics": []},
        "consumer_lag": {"groups": [], "partitions": []},
        "lost_before_read": {"groups": [], "totals": []},
        "remote_reads": {"topics": [], "brokers": []},
        "coverage": {
            "expected_us": 0,
            "observed_us": 0,
            "unknown_us": 0,
            "percent": None,
            "sources": [],
        },
        "timelines": [],
        "events": [],
        "incidents": [],
        "incidents_omitted": 0,
        "changes": [],
        "rejected": 0,
        "detection_floor_us": 2 * SECOND,
    }


def answered(name: str | None, request: str, good: int, errors: int, unknown: int = 0) -> Facts:
    shares = (good / (good + errors), (good - 40) / (good + errors - 40), good / (good + errors))
    return {
        "source": name,
        "request": request,
        **dict(zip(("answers", "answers_low", "answers_high"), (good + errors,) * 3, strict=True)),
        **dict(zip(("errors", "errors_low", "errors_high"), (errors,) * 3, strict=True)),
        **dict(zip(("good", "good_low", "good_high"), shares, strict=True)),
        "unknown_us": unknown,
    }


def slow(name: str, us: tuple[int, int, int], most: float, unknown: int = 0) -> Facts:
    row = {"source": name, "request": "produce", "threshold_ms": 500.0, **bounded("slow", *us)}
    return row | {"p99_ms_max": most, "unknown_us": unknown}


def moved(name: str, records: int, unknown: int = 0) -> Facts:
    row: Facts = {"topic": name}
    for key, many in (
        ("records_in", records),
        ("bytes_in", 400 * records),
        ("bytes_out", 900 * records),
        ("bytes_rejected", 0),
        ("produce_requests", records // 8),
    ):
        row |= {key: many, f"{key}_low": many, f"{key}_high": many + many // 100}
    return row | {"unknown_us": unknown}


def served(leaderless: tuple[int, int, int], refused: int, unknown: int = 0) -> Facts:
    """Three brokers, of which the second was not read for a while."""
    brokers = [
        answered(f"broker-{n}", request, many, refused * (n == 1), unknown * (n == 2))
        for n in (1, 2, 3)
        for request, many in (("produce", 90_000), ("fetch", 410_000))
    ]
    return {
        **bounded("leaderless", *leaderless),
        "unknown_us": unknown,
        "requests": [
            answered(None, "produce", 270_000, refused, unknown),
            answered(None, "fetch", 1_230_000, refused, unknown),
        ],
        "brokers": brokers,
        "errors": [
            {
                "request": request,
                "error": "NOT_ENOUGH_REPLICAS",
                "answers": refused,
                "answers_low": refused,
                "answers_high": refused,
            }
            for request in ("produce", "fetch")
            if refused
        ],
        "latency": [slow(f"broker-{n}", (0, 0, 0), 14.0, unknown * (n == 2)) for n in (1, 2, 3)],
        "topics": [moved("orders", 240_000, unknown), moved("payments", 30_000, unknown)],
        "clients": [
            {"user": "alice", "client_id": "billing", "bytes_in": 4_000_000.0, "bytes_out": None}
        ],
    }


def source(name: str, family: str, expected: int, unknown: int = 0, **given: Any) -> Facts:
    return {
        "source": name,
        "family": family,
        "expected_us": expected,
        "observed_us": expected - unknown,
        "unknown_us": unknown,
        "percent": 100 * (expected - unknown) / expected,
        "outcomes": {"ok": (expected - unknown) // (2 * SECOND)},
        "interval_us": 2 * SECOND,
        "first_error": None,
        "gaps": [],
        **given,
    }


FAMILIES = ("min_isr", "quotas", "tiered", "offsets", "remote_reads", "requests", "traffic")
"""What must be read to answer the questions."""

TOPICS = ("orders", "payments", "shipments", "clicks", "audit-log", "inventory")


def lag(lagging: tuple[int, int, int] = (0, 0, 0), most: int = 0, segments: int = 0) -> Facts:
    return {
        **bounded("lagging", *lagging),
        "max_bytes": most,
        "max_segments": segments,
        "mean_bytes": most / 3,
        "last_bytes": 0,
    }


def own_metrics(own: int, shipped: int, subjects: int, rows: int) -> Facts:
    """Metrics of an own catalogue and of the shipped one, each second a counter."""
    none = dict.fromkeys(("topic", "user", "client_id", "group", "source", "labels"))
    gauge = {"mean": 0.03, "min": 0.0, "max": 12.0, **bounded("above", HOUR, 0, 2 * HOUR)}
    counter = {"increase": 12_400.0, "per_second": 0.02}
    empty = dict.fromkeys((*gauge, *counter))
    metrics = []
    for number in range(own + shipped):
        kind = ("gauge", "counter")[number % 2]
        figures = {**empty, **(counter if kind == "counter" else gauge)}
        worst = [
            {**none, "source": f"worker-{one}", "labels": f"connector=sink-{one},task=0", **figures,
             "flags": [], "unknown_us": 20 * SECOND}
            for one in range(rows)
        ]  # fmt: skip
        metrics.append(
            {"metric": f"acme.connect.failures_{number}", "families": ["acme"], "level": "series",
             "own": number < own, "kind": kind, "unit": "{failure}", "percent": 99.5,
             "description": "Failures of a connector's task.", "subjects": subjects, "worst": worst}
        )  # fmt: skip
    return {"metrics": metrics, "omitted": 0, "absent": ["acme.connect.restarts"]}


def quiet_week() -> Facts:
    """Nothing went wrong, and all of it was seen."""
    start = datetime(2026, 11, 9, tzinfo=UTC)
    end = start + timedelta(days=7)
    good = [judged("met", WEEK, (0, 0, 0), 0, topic=name) for name in TOPICS]
    calm = [judged("met", WEEK, (0, 0, 0), 0, client_id="billing", user="alice")]
    made = facts(
        start,
        end,
        300,
        [
            objective("min-isr", "Topics can be written to safely", "topic", good),
            objective("throttling", "Clients are not throttled", "client", calm),
        ],
    )
    made["min_isr"]["topics"] = [topic(name) for name in TOPICS]
    made["min_isr"]["brokers"] = [
        {
            "source": f"broker-{n}",
            "under_min_isr_partition_seconds": 0.0,
            "sum_of_partitions_seconds": 0.0,
            "leaderless_partition_seconds": 0.0,
        }
        for n in (1, 2, 3)
    ]
    made["service"] = served((0, 0, 0), 0)
    made["throttling"]["clients"] = [client("billing", "alice", "produce")]
    made["tier_lag"]["topics"] = [
        {"topic": "audit-log", "copy": lag(), "delete": lag(), "unknown_us": 0, "flags": []}
    ]
    sources = [source(f"broker-{n}", family, WEEK) for n in (1, 2, 3) for family in FAMILIES]
    whole = len(sources) * WEEK
    made["coverage"] |= {"expected_us": whole, "observed_us": whole, "percent": 100.0}
    made["coverage"]["sources"] = sources
    hours = timedelta(hours=1)
    made["timelines"] = [
        {
            "name": "under_min_isr",
            "unit": "partitions",
            "subject": None,
            "points": points(start, hours, [0] * 168),
        },
        {
            "name": "coverage",
            "unit": "%",
            "subject": None,
            "points": points(start, hours, [100.0] * 168),
        },
    ]
    return made


def demo() -> Facts:
    """A broker killed, a topic without a leader, throttled clients, tier lag, lost offsets."""
    start = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)
    end = start + timedelta(minutes=6)
    length = 6 * MINUTE
    at = lambda seconds: iso(start + timedelta(seconds=seconds))  # noqa: E731
    whole = (71 * SECOND + 400_000, 70 * SECOND + 100_000, 73 * SECOND + 900_000)
    alone = (64 * SECOND, 62 * SECOND, 66 * SECOND)
    pairs = [
        objective(
            "min-isr",
            "Topics can be written to safely",
            "topic",
            [
                judged("missed", length, whole, 20 * SECOND, topic="orders"),
                judged("missed", length, alone, 20 * SECOND, topic="single"),
                judged("uncertain", length, (0, 0, 0), 20 * SECOND, topic="payments"),
                judged("met", length, (0, 0, 0), 0, topic="audit-log"),
            ],
        ),
        objective(
            "throttling",
            "Clients are not throttled",
            "client",
            [
                judged(
                    "missed",
                    length,
                    (95 * SECOND, 61 * SECOND, 121 * SECOND),
                    0,
                    client_id="bulk-loader",
                ),
                judged("met", length, (0, 0, 0), 0, user="alice", client_id="billing"),
            ],
        ),
        objective(
            "tier-lag",
            "Tiered storage keeps up",
            "topic",
            [judged("uncertain", length, (3 * SECOND, 0, 9 * SECOND), 0, topic="archive")],
        ),
        objective(
            "lost",
            "Nothing is lost before it is read",
            "group",
            [judged("no_data", length, (0, 0, 0), length, group="nightly", topic="clicks")],
        ),
        objective(
            "remote",
            "Remote reads succeed",
            "topic",
            [judged("met", length, (0, 0, 0), 0, topic="archive")],
        ),
    ]
    made = facts(start, end, 30, pairs)
    made["min_isr"] = {
        "topics": [
            topic(
                "orders",
                **bounded("any", *whole),
                **bounded("under", 214 * SECOND, 210 * SECOND, 221 * SECOND),
                **bounded("unavailable_any", *whole),
                at_min_us=2 * MINUTE,
                max_concurrent=3,
                unknown_us=20 * SECOND,
            ),
            topic(
                "single",
                partitions=1,
                **bounded("leaderless", *alone),
                **bounded("unavailable_any", *alone),
                max_concurrent=1,
                unknown_us=20 * SECOND,
            ),
            topic("payments", unknown_us=20 * SECOND),
            topic("audit-log"),
        ],
        "partitions": [
            {
                "topic": "orders",
                "partition": number,
                **bounded("under", *whole),
                **exactly("leaderless", 0),
                "unknown_us": 20 * SECOND,
                "incidents": [
                    {
                        "start": at(100.4 + number / 5),
                        "end": at(171.8 + number / 5),
                        "lead_us": 2_500_000,
                        "tail_us": 1_300_000,
                        "kind": "under_min_isr",
                        "sources": ["broker-1", "broker-3"],
                    }
                ],
            }
            for number in range(3)
        ]
        + [
            {
                "topic": "single",
                "partition": 0,
                **exactly("under", 0),
                **bounded("leaderless", *alone),
                "unknown_us": 20 * SECOND,
                "incidents": [
                    {
                        "start": at(102),
                        "end": at(166),
                        "lead_us": 2 * SECOND,
                        "tail_us": 2 * SECOND,
                        "kind": "leaderless",
                        "sources": ["admin"],
                    }
                ],
            }
        ],
        "brokers": [
            {
                "source": "broker-1",
                "under_min_isr_partition_seconds": 142.6,
                "sum_of_partitions_seconds": 142.8,
                "leaderless_partition_seconds": 0.0,
            },
            {
                "source": "broker-2",
                "under_min_isr_partition_seconds": None,
                "sum_of_partitions_seconds": None,
                "leaderless_partition_seconds": 64.0,
            },
        ],
    }
    made["service"] = served(alone, 312, 20 * SECOND)
    made["service"]["latency"][0] |= slow(
        "broker-1", (48 * SECOND, 44 * SECOND, 52 * SECOND), 2_300.0
    )
    made["throttling"]["clients"] = [
        client(
            "bulk-loader",
            None,
            "produce",
            **bounded("throttled", 95 * SECOND, 61 * SECOND, 121 * SECOND),
            throttle_ms_mean=412.0,
            throttle_ms_max=986.0,
            rate_mean=1_101_004.0,
            rate_max=3_250_586.0,
        ),
        client(
            "reporter",
            "carol",
            "fetch",
            **bounded("throttled", 48 * SECOND, 11 * SECOND, 71 * SECOND),
            throttle_ms_mean=120.5,
            throttle_ms_max=310.0,
            unknown_us=20 * SECOND,
        ),
        client(
            "poller",
            None,
            "request",
            **bounded("throttled", 33 * SECOND, 0, 64 * SECOND),
            throttle_ms_mean=24.0,
            throttle_ms_max=55.0,
            rate_unit="%",
            rate_mean=1.4,
            rate_max=6.25,
            quota=1.0,
        ),
        client("billing", "alice", "produce"),
    ]
    made["tier_lag"]["topics"] = [
        {
            "topic": "archive",
            "copy": lag((52 * SECOND, 48 * SECOND, 55 * SECOND), 47_185_920, 45),
            "delete": lag((21 * SECOND, 18 * SECOND, 25 * SECOND), 8_388_608, 8),
            "unknown_us": 0,
            "flags": ["known_wrong"],
        }
    ]
    made["replication"]["topics"] = [
        {
            "topic": "orders",
            **exactly("under_replicated_any", 95 * SECOND),
            **exactly("without_spare_any", 71 * SECOND),
            **exactly("reassigning_any", 0),
            **exactly("unclean_leader_any", 240_000),
            "unclean_elections": 1,
            "unknown_us": 20 * SECOND,
        }
    ]
    made["consumer_lag"] = {
        "groups": [
            late("nightly", "clicks", (12_000, 14_263), (900, 1200)),
            late("payments-app", "orders", (1_218, 1_448), (120, None)),
        ],
        "partitions": [
            {
                "group": "nightly",
                "topic": "clicks",
                "partition": 3,
                "records_low": 10_088,
                "records_high": 11_996,
                **bounded("above", 9 * MINUTE, 8 * MINUTE, 10 * MINUTE),
                "unknown_us": 0,
            }
        ],
    }
    made["lost_before_read"]["groups"] = [
        {
            "group": "nightly",
            "topic": "clicks",
            "partition": 0,
            "offsets_low": 12_400,
            "offsets_high": 12_431,
            "unknown_us": 0,
        },
        {
            "group": "nightly",
            "topic": "clicks",
            "partition": 1,
            "offsets_low": None,
            "offsets_high": None,
            "unknown_us": length,
        },
        {
            "group": "audit",
            "topic": "clicks",
            "partition": 0,
            "offsets_low": 0,
            "offsets_high": 0,
            "unknown_us": 0,
        },
    ]
    made["lost_before_read"]["totals"] = group_totals(made["lost_before_read"]["groups"])
    made["remote_reads"] = {
        "topics": [{"topic": "archive", "requests": 318, "bytes": 29_884_416, "errors": 2}],
        "brokers": [
            {"source": "broker-1", "reads": 201, "read_ms_mean": 6.2},
            {"source": "broker-3", "reads": 117, "read_ms_mean": None},
        ],
        "indexes": [
            indexes("broker-1", "measured", (12, 12, 12), (None, 4, 6), (None, 6, 8)),
            indexes("broker-2", "measured", (4,) * 3, (4,) * 3, (8,) * 3, (12,) * 3),
            indexes("broker-3", "modelled", (9, 0, 351), (3, 0, 117), (6, 0, 234)),
        ],
    }
    error = "connection refused by 127.0.0.1:9102; is the broker running?"
    made["coverage"] = {
        "expected_us": 3 * length,
        "observed_us": 3 * length - 20 * SECOND,
        "unknown_us": 20 * SECOND,
        "percent": 100 * (3 * length - 20 * SECOND) / (3 * length),
        "sources": [
            source("broker-1", "min_isr", length),
            source(
                "broker-2",
                "min_isr",
                length,
                20 * SECOND,
                outcomes={"ok": 170, "refused": 10},
                first_error=error,
                gaps=[{"start": at(100), "end": at(120), "outcome": "refused", "error": error}],
            ),
            source("broker-3", "min_isr", length),
            *(source(f"broker-{n}", one, length) for one in FAMILIES[1:] for n in (1, 2, 3)),
        ],
    }
    half = timedelta(seconds=30)
    mebi = 1024 * 1024
    made["timelines"] = [
        {
            "name": "under_min_isr",
            "unit": "partitions",
            "subject": None,
            "points": points(start, half, [0, 0, 0, (2, 2, 3), None, (3, 2, 3), 0, 0, 0, 0, 0, 0]),
        },
        {
            "name": "leaderless",
            "unit": "partitions",
            "subject": None,
            "points": points(start, half, [0, 0, 0, 1, 1, (0, 0, 1), 0, 0, 0, 0, 0, 0]),
        },
        {
            "name": "throttled",
            "unit": "clients",
            "subject": None,
            "points": points(
                start, half, [0, 0, 0, 0, 0, 0, 1, (2, 1, 3), (3, 1, 3), (1, 0, 2), 0, 0]
            ),
        },
        {
            "name": "copy_lag_bytes",
            "unit": "By",
            "subject": "archive",
            "points": points(
                start, half, [n * mebi for n in (0, 0, 4, 22, 45, 31, 8, 0, 0, 0, 0, 0)]
            ),
        },
        {
            "name": "delete_lag_bytes",
            "unit": "By",
            "subject": "archive",
            "points": points(start, half, [n * mebi for n in (0, 0, 0, 0, 0, 0, 8, 3, 0, 0, 0, 0)]),
        },
        {
            "name": "lost_offsets",
            "unit": "{offset}",
            "subject": None,
            "points": points(
                start, half, [0] * 8 + [(4100, 4100, 4120), (8300, 8300, 8311), 0, None]
            ),
        },
        {
            "name": "remote_fetch_bytes",
            "unit": "By",
            "subject": None,
            "points": points(start, half, [0] * 9 + [11 * mebi, 17 * mebi, 0]),
        },
        {
            "name": "coverage",
            "unit": "%",
            "subject": None,
            "points": points(start, half, [100.0] * 3 + [77.8] + [100.0] * 8),
        },
    ]
    nobody = dict.fromkeys(("topic", "partition", "user", "client_id", "group", "old", "new"))
    made["incidents"] = [
        incident_of_event(partition, one)
        for partition in made["min_isr"]["partitions"]
        for one in partition["incidents"]
    ]
    made["changes"] = [
        nobody
        | {
            "at": at(101),
            "source": "admin",
            "kind": "leader_change",
            "topic": "orders",
            "partition": 0,
            "old": "2",
            "new": "1",
        },
        nobody | {"at": at(166), "source": "broker-2", "kind": "source_restart"},
        nobody
        | {
            "at": at(180),
            "source": "admin",
            "kind": "quota_change",
            "client_id": "bulk-loader",
            "new": "producer_byte_rate=1048576",
        },
    ]
    made["rejected"] = 3
    made["own_metrics"] = own_metrics(2, 3, 25, 3)
    step = timedelta(seconds=30)
    made["timelines"].append(
        {"name": "acme.connect.failures_0", "unit": "{failure}",
         "subject": "worker-0 connector=sink-0",
         "points": points(start, step, [(n, n, n) for n in range(12)])}
    )  # fmt: skip
    return made


def silent_week() -> Facts:
    """Nobody looked: the brokers are known and not one of them was ever read."""
    start = datetime(2026, 11, 9, tzinfo=UTC)
    subjects = [judged("no_data", WEEK, (0, 0, 0), WEEK, topic=name) for name in TOPICS]
    for one in subjects:
        one.update(dict.fromkeys(("good_us", "bad_us", "bad_low_us", "bad_high_us")))
    made = facts(
        start,
        start + timedelta(days=7),
        300,
        [objective("min-isr", "Topics can be written to safely", "topic", subjects)],
    )
    unseen: Facts = {"at_min_us": None, "max_concurrent": None, "unknown_us": WEEK}
    for stem in ("any", "under", "leaderless", "unavailable_any"):
        unseen |= exactly(stem, None)
    made["min_isr"]["topics"] = [topic(name, **unseen) for name in TOPICS]
    made["coverage"] |= {"expected_us": 3 * WEEK, "unknown_us": 3 * WEEK, "percent": 0.0}
    made["coverage"]["sources"] = [
        source(
            f"broker-{n}",
            "min_isr",
            WEEK,
            WEEK,
            outcomes={},
            gaps=[{"start": made["from"], "end": made["to"], "outcome": "refused", "error": None}],
        )
        for n in (1, 2, 3)
    ]
    hours = [None] * 168
    made["timelines"] = [
        {
            "name": name,
            "unit": unit,
            "subject": None,
            "points": points(start, timedelta(hours=1), hours),
        }
        for name, unit in (("under_min_isr", "partitions"), ("coverage", "%"))
    ]
    return made


EVIL = (
    "<script>document.title='owned'</script>",
    "\"' onmouseover=alert(1) x='",
    "]]></svg><svg onload=alert(1)>",
    "{{ 7*7 }}{% raw %}[bold red]${7*7}",
    "safe\u202egnp.exe\u2066",
    "nul\x00bell\x07newline\nescape\x1b[31m",
    "lone \ud800 surrogate",
    "שלום-orders-عربي",
    "A" * 32_768,
    "&lt;b&gt;&#x202e;",
    "",
)
"""Names that an attacker, or an unlucky person, gives to things."""


def hostile() -> Facts:
    """The demo, where everybody's names are evil."""
    made = deepcopy(demo())
    made["cluster"] = EVIL[0]
    text = {"topic", "client_id", "user", "group", "source", "first_error", "error", "old", "new"}
    text |= {"title", "description", "subject", "family", "kind", "outcome", "level"}
    text |= {"metric", "labels", "unit"}
    turn = 0

    def corrupt(value: Any) -> Any:
        nonlocal turn
        if isinstance(value, list):
            return [corrupt(one) for one in value]
        if not isinstance(value, dict):
            return value
        changed = {}
        for key, one in value.items():
            if key in text and isinstance(one, str) and one not in {"under_min_isr", "leaderless"}:
                turn += 1
                changed[key] = EVIL[turn % len(EVIL)]
            else:
                changed[key] = corrupt(one)
        return changed

    made["objectives"] = corrupt(made["objectives"])
    for key in ("verdicts", "service", "min_isr", "throttling", "tier_lag", "lost_before_read"):
        made[key] = corrupt(made[key])
    for key in (
        "replication",
        "consumer_lag",
        "remote_reads",
        "coverage",
        "timelines",
        "changes",
        "incidents",
        "own_metrics",
    ):
        made[key] = corrupt(made[key])
    rows = made["min_isr"]["partitions"]
    made["min_isr"]["partitions"] = [
        deepcopy(rows[0]) | {"topic": name, "partition": n} for n, name in enumerate(EVIL)
    ]
    return made


def incident_of_event(partition: Facts, one: Facts) -> Facts:
    """The incident of a partition as the section ``incidents`` has it."""
    metric = f"kafka.partition.{one['kind']}"
    names = dict.fromkeys(("user", "client_id", "group"))
    return {
        "event": 1, "metric": metric, "level": "partition", "topic": partition["topic"],
        "partition": partition["partition"], **names, "worst": 1.0, "total": 3.0, **one,
        "kind": "availability",
    }  # fmt: skip


def fleet(topics: int = 3_000, clients: int = 5_000) -> Facts:
    """A week of thousands of topics and clients, with something wrong in every tenth."""
    made = quiet_week()
    start = datetime(2026, 11, 9, tzinfo=UTC)
    names = [f"team-{n % 37}.domain-{n % 11}.stream-of-things-{n}" for n in range(topics)]
    bad = {
        name: (n * SECOND, n * SECOND - SECOND // 2, n * SECOND + SECOND)
        for n, name in enumerate(names)
        if n % 10 == 9
    }
    none = (0, 0, 0)
    made["min_isr"]["topics"] = [
        topic(
            name,
            **bounded("any", *bad.get(name, none)),
            **bounded("unavailable_any", *bad.get(name, none)),
        )
        for name in names
    ]
    made["min_isr"]["partitions"] = [
        {
            "topic": name,
            "partition": number,
            **bounded("under", *bad[name]),
            **exactly("leaderless", 0),
            "unknown_us": 0,
            "incidents": [
                {
                    "start": iso(start + timedelta(hours=hour)),
                    "end": iso(start + timedelta(hours=hour, seconds=90)),
                    "lead_us": SECOND,
                    "tail_us": SECOND,
                    "kind": "under_min_isr",
                    "sources": ["broker-1", "broker-2"],
                }
                for hour in range(0, 160, 20)
            ],
        }
        for name in bad
        for number in range(3)
    ]
    made["service"]["topics"] = [moved(name, 1_000 * n) for n, name in enumerate(names)]
    made["service"]["brokers"] = [
        answered(f"broker-{n}", request, 90_000, n, n * SECOND)
        for n in range(200)
        for request in ("produce", "fetch")
    ]
    made["service"]["latency"] = [
        slow(f"broker-{n}", (n * SECOND,) * 3, 10.0 * n, n * SECOND) for n in range(200)
    ]
    made["service"]["clients"] = [
        {"user": None, "client_id": f"application-{n}", "bytes_in": n, "bytes_out": n}
        for n in range(clients)
    ]
    made["throttling"]["clients"] = [
        client(
            f"application-{n}",
            f"User:service-{n % 91}",
            "fetch",
            **exactly("throttled", n * MINUTE),
        )
        for n in range(clients)
    ]
    made["tier_lag"]["topics"] = [
        {"topic": name, "copy": lag(none, n), "delete": lag(none, n), "unknown_us": 0, "flags": []}
        for n, name in enumerate(names)
    ]
    made["consumer_lag"]["groups"] = [
        late(f"group-{n}", name, (n, n + 7), (n, 2 * n)) for n, name in enumerate(names)
    ]
    made["lost_before_read"]["groups"] = [
        {
            "group": f"group-{n}",
            "topic": name,
            "partition": 0,
            "offsets_low": n,
            "offsets_high": n + 7,
            "unknown_us": 0,
        }
        for n, name in enumerate(names)
    ]
    made["lost_before_read"]["totals"] = group_totals(made["lost_before_read"]["groups"])
    made["remote_reads"]["topics"] = [
        {"topic": name, "requests": n, "bytes": n * 4096, "errors": 0}
        for n, name in enumerate(names)
    ]
    made["coverage"]["sources"] = [
        source(f"broker-{n}", family, WEEK, n * SECOND)
        for n in range(200)
        for family in ("min_isr", "quotas", "tiered")
    ]
    pairs = [
        objective(
            key, title, level, [judged("met", WEEK, none, 0, **{column: name}) for name in names]
        )
        for key, title, level, column in (
            ("min-isr", "Topics can be written to safely", "topic", "topic"),
            ("tier-lag", "Tiered storage keeps up", "topic", "topic"),
            ("lost", "Nothing is lost before it is read", "group", "group"),
        )
    ]
    made["objectives"] = [pair[0] for pair in pairs]
    made["verdicts"] = [pair[1] for pair in pairs]
    wave = [(n * 7919) % 23 for n in range(500)]
    step = timedelta(days=7) / 500
    made["timelines"] = [
        {
            "name": name,
            "unit": "By",
            "subject": subject,
            "points": points(start, step, [(n, n, n + 1) for n in wave]),
        }
        for name in (
            "under_min_isr",
            "leaderless",
            "throttled",
            "copy_lag_bytes",
            "delete_lag_bytes",
            "lost_offsets",
            "remote_fetch_bytes",
            "coverage",
        )
        for subject in (names[0], names[1], names[2], names[3])
    ]
    made["own_metrics"] = own_metrics(100, 100, 100_000, 20)
    made["timelines"] += [
        {
            "name": name,
            "unit": unit,
            "subject": None,
            "points": points(start, step, [(n, n, n) for n in wave]),
        }
        for name, unit in (
            ("error_answers", "{error}"),
            ("produce_p99", "ms"),
            ("fetch_p99", "ms"),
            ("bytes_in", "By"),
            ("bytes_out", "By"),
        )
    ]
    with_everything(made)
    return made


def with_everything(made: Facts) -> None:
    """All that a page may have beside the questions, as long as it gets."""
    subjects = [one for objective in made["objectives"] for one in objective["subjects"]]
    lists = ("min_isr", "throttling", "tier_lag", "consumer_lag", "lost_before_read")
    lists += ("remote_reads",)
    owned = [row for name in lists for rows in made[name].values() for row in rows]
    owned += [row for name in ("topics", "clients") for row in made["service"][name]]
    for number, row in enumerate((*subjects, *owned)):
        row["team"] = f"team-{number % 60}"
    made["owners"] = {"currency": "EUR", "accounts": [account(n) for n in range(60)]}
    made["business_hours"] = {
        "hours": "Mon-Fri 08:00-18:00",
        "time_zone": "Europe/Berlin",
        "spans": [[made["from"], made["to"]]],
        "verdicts": [{**one, "verdict": "missed"} for one in made["verdicts"]],
        "objectives": made["objectives"],
    }
    made["restated"] = [
        {
            "objective": "min-isr",
            "title": "Topics can be written to safely",
            **one,
            "before": {**one, "stated_at": made["to"], "statement": 1},
            "now": one,
        }
        for one in subjects[:3000]
    ]
    made["maintenance"] = [
        {
            "start": iso(WEEK_START + timedelta(hours=10)),
            "end": iso(WEEK_START + timedelta(hours=14)),
            "reason": "disks are exchanged",
            "topics": ["team-*"],
        }
    ]
    for row in subjects[:40]:
        row["without_maintenance"] = dict(row)
        row |= {"burn": [burn()] * 2, "maintenance": made["maintenance"]}
    made["racks"] = [{"source": f"broker-{n}", "rack": "abc"[n % 3]} for n in range(100)]
    made["changes"] = [event(n) for n in range(1_000)]
    made["hygiene"] = tidy()
    made["trends"] = trends(subjects[:200])


def burn() -> Facts:
    rate = {"rate": 52.13, "low": 48.1, "high": 60.04}
    return {
        "long": "1h", "short": "5m", "limit": 14.4, "at": iso(WEEK_START + timedelta(days=7)),
        "verdict": "burning", "long_rate": rate, "short_rate": rate, "burnt_us": HOUR,
    }  # fmt: skip


def event(number: int) -> Facts:
    """One of a thousand in a week: a restart, elections, a change and an agent in turn."""
    kinds = ("source_restart", "leader_change", "leader_change", "quota_change", "agent_start")
    return {
        "at": iso(WEEK_START + number * timedelta(minutes=10)),
        "source": f"broker-{number % 100}",
        "kind": kinds[number % 5],
        **dict.fromkeys(("topic", "partition", "user", "client_id", "group")),
        "old": "1",
        "new": "2",
    }


def trends(subjects: list[Facts]) -> Facts:
    """Thirteen weeks of each, every one worse than the last."""
    shares = [{"share": n / 100, "share_low": n / 101, "share_high": n / 99} for n in range(13)]
    bad = {"expected_us": WEEK, **exactly("bad", HOUR), "unknown_us": 0}
    rows = [
        {
            **{key: one.get(key) for key in ("topic", "user", "client_id", "group", "source")},
            "weeks": [{**bad, **share} for share in shares],
            "change": {"share_low": 0.0, "share_high": 0.1, "p": 1 / 12, "compared": 11,
                       "verdict": "worse"},
            "regimes": [{"week": "2026-W41", "share_before": 0.01, "share_after": 0.1, "p": 0.1}],
        }
        for one in subjects
    ]  # fmt: skip
    return {
        "weeks": [f"2026-W{week}" for week in range(34, 47)],
        "tested": len(rows),
        "significant_by_chance": 16.7,
        "objectives": [
            {
                "name": "min-isr",
                "title": "Topics can be written to safely",
                "target": 0.99,
                "never_bad": 0,
                "subjects": rows,
            }
        ],
    }


def account(number: int) -> Facts:
    return {
        "team": f"team-{number}",
        "owner": f"Owner Number {number}",
        "tier": "gold",
        **dict.fromkeys(("topics", "clients", "groups"), number),
        **exactly("throttled", number * MINUTE),
        **dict.fromkeys(("uploaded_bytes", "read_bytes", "stored_byte_seconds"), 1e12),
        "offsets_low": 0,
        "offsets_high": number,
        "not_known": {"clients": 0, "topics": 1, "groups": 0},
        "unknown_us": 0,
        "cost": 12.5,
    }


def tidy(number: int = 500) -> Facts:
    """Lists of what asks to be tidied up."""
    names = [f"team-{n}.stream-of-things-{n}" for n in range(number)]
    quota = {"client_id": None, "kind": "produce", "quota": 1e6, "rate_unit": "By/s"}
    near = {
        "quota_of": {"user": "<default>", "client_id": None},
        "rate_max_of_a_broker": 9e5,
        "share": 0.9,
        "suggested": 1.3e6,
        "suggested_at_least": True,
    }
    replicas = {"partitions": 6, "replication_factor": 1, "min_insync_replicas": 1}
    return {
        "replication_one": [{"topic": name, **replicas} for name in names],
        "no_spare_replica": [{"topic": name, **replicas} for name in names],
        "replicas_untold": 3,
        "unused_quotas": [{**quota, "user": name} for name in names],
        "near_quota": [{**quota, **near, "user": name} for name in names],
        "overtaken": [
            {"group": name, "topic": name, "least_seconds": 7200.0, "as_of": "2026-11-16T00:00:00Z"}
            for name in names
        ],
        "within_hours": 24,
    }
