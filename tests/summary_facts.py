"""Facts of format 2 as the short report reads them: the sample's week 47 with its seven events."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

Facts = dict[str, Any]

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
WEEK = 7 * 24 * HOUR
START = datetime(2026, 11, 16, tzinfo=UTC)

_NAMES = ("topic", "partition", "user", "client_id", "group", "source")
_WEEKS = [f"2026-W{number}" for number in range(40, 48)]


def at(text: str) -> str:
    """Return an instant of week 47: ``18 14:27``."""
    day, _, clock = text.partition(" ")
    return f"2026-11-{day}T{clock if clock.count(':') == 2 else clock + ':00'}Z"


def who(**names: Any) -> Facts:
    return {**dict.fromkeys(_NAMES), **names}


def bounded(stem: str, us: int | None, low: int | None = None, high: int | None = None) -> Facts:
    low, high = (us if bound is None else bound for bound in (low, high))
    return {f"{stem}_us": us, f"{stem}_low_us": low, f"{stem}_high_us": high}


def subject(target: float, bad: tuple[int, int, int], unknown: int = 0, **names: Any) -> Facts:
    """Return a subject that existed all week, with its attainment and its verdict."""
    us, low, high = bad
    observed, budget = WEEK - unknown, (1 - target) * WEEK
    least, most = 1 - (high + unknown) / WEEK, 1 - low / WEEK
    verdict = "met" if least >= target else "missed" if most < target else "uncertain"
    return {
        **who(**names),
        "expected_us": WEEK,
        "good_us": observed - us,
        **bounded("bad", *bad),
        "unknown_us": unknown,
        "attainment": 1 - us / observed,
        "attainment_low": least,
        "attainment_high": most,
        "budget_us": round(budget),
        "budget_left_us": round(budget) - us,
        "verdict": verdict,
        "interval_verdict": verdict,
        "used": us / budget,
        "used_low": low / budget,
        "used_high": (high + unknown) / budget,
        "left": [1.0, 1 - us / budget],
    }


def objective(
    name: str, title: str, metric: str, level: str, target: float, subjects: list[Facts],
    *given: str,
) -> Facts:  # fmt: skip
    counts = {
        key: sum(one["verdict"] == key for one in subjects)
        for key in ("missed", "uncertain", "no_data", "met")
    }
    verdict = next((key for key, count in counts.items() if count), "no_data")
    owner, before = (*given, None, None)[:2]
    first: Facts = subjects[0] if subjects else {}
    history = [
        {
            "week": week,
            "verdict": verdict if week == _WEEKS[-1] else before or "met",
            "restated": False,
        }
        for week in _WEEKS
    ]
    return {
        "name": name, "title": title, "description": "", "target": target, "level": level,
        "window": "1w", "method": "GoodSeconds", "metrics": [metric], "unknown": "interval",
        "from": at("16 00:00"), "to": at("23 00:00"), "status": verdict,
        "budget_whole_us": round((1 - target) * WEEK), "owner": owner, "history": history,
        **{key: first.get(key) for key in ("used", "used_low", "used_high")},
        "subjects": subjects,
        "counts": counts,
    }  # fmt: skip


def objectives() -> list[Facts]:
    throttle = "kafka.client.{}.throttle_time"
    quiet = (0, 0, 0)
    topics = [f"t{number}" for number in range(5)]
    unknown = 112 * SECOND
    down = 12 * MINUTE
    return [
        objective("lost-before-read", "Unread data loss", "kafka.group.non_consumed", "group",
                  .999, [subject(.999, (125 * MINUTE,) * 3, 4 * MINUTE, group="audit-archive"),
                         subject(.999, quiet, 0, group="payments")], "Compliance data", "missed"),
        objective("produce-throttling", "Client throttling (produce)", throttle.format("produce"),
                  "client", .99,
                  [subject(.99, (264 * MINUTE, 255 * MINUTE, 266 * MINUTE), 681 * SECOND,
                           user="billing", client_id="invoicing"),
                   *(subject(.99, quiet, 0, user=f"u{n}", client_id="c") for n in range(11))],
                  "Billing", "missed"),
        objective("leaderless", "Partition availability", "kafka.partition.leaderless", "topic",
                  .9995, [subject(.9995, (down, down - 40 * SECOND, down + 40 * SECOND), unknown,
                                  topic="scratch"),
                          *(subject(.9995, quiet, unknown, topic=one) for one in topics)],
                  "no owner", "missed"),
        objective("min-isr", "Write availability (min ISR)", "kafka.partition.unavailable",
                  "topic", .999,
                  [subject(.999, (20 * MINUTE, 1190 * SECOND, 1210 * SECOND), unknown,
                           topic="orders"),
                   subject(.999, (down, down, down), unknown, topic="payments"),
                   *(subject(.999, quiet, unknown, topic=one) for one in topics)],
                  "Order platform", "missed"),
        objective("copy-lag", "Tiered-storage upload lag", "kafka.topic.remote_copy_lag.bytes",
                  "topic", .95, [subject(.95, (69 * MINUTE,) * 3, topic="sessions"),
                                 subject(.95, quiet, topic="clicks")], "Web platform"),
        objective("coverage", "Monitoring coverage", "jmxlake.coverage", "source", .99,
                  [subject(.99, (531 * SECOND,) * 3, source=f"broker-{n}") for n in (2, 1, 3)]),
        objective("fetch-throttling", "Client throttling (fetch)", throttle.format("fetch"),
                  "client", .99,
                  [subject(.99, (6 * MINUTE, 290 * SECOND, 370 * SECOND), 0, user="reporting",
                           client_id="nightly"),
                   subject(.99, quiet, 0, user="u1", client_id="c")], "BI"),
        objective("delete-lag", "Tiered-storage deletion lag",
                  "kafka.topic.remote_delete_lag.segments", "topic", .95,
                  [subject(.95, quiet, topic="clicks"), subject(.95, quiet, topic="sessions")]),
        objective("request-throttling", "Request-quota throttling", throttle.format("request"),
                  "client", .99, [subject(.99, quiet, 0, user="audit", client_id="archive")]),
    ]  # fmt: skip


def figure(name: str, unit: str, value: Any, low: Any, high: Any, **given: Any) -> Facts:
    return {
        "name": name, "state": "known", "reason": None, "value": value, "value_low": low,
        "value_high": high, "unit": unit, "of": None, **dict.fromkeys(_NAMES),
        "subject_value": value, "subject_unit": unit,
        "subject_value_low": low, "subject_value_high": high, "objective": None, "previous": None,
        "change": "none", "history": [None, *(float(n) for n in range(7))], **given,
    }  # fmt: skip


def previous(value: Any) -> Facts:
    return {"week": "2026-W46", "value": value, "low": value, "high": value}


def key_figures() -> list[Facts]:
    down = 12 * MINUTE
    return [
        figure("writes_unavailable", "us", 20 * MINUTE, 1190 * SECOND, 1210 * SECOND,
               topic="orders", objective="min-isr", previous=previous(11 * MINUTE), change="worse"),
        figure("no_leader", "us", down, down - 40 * SECOND, down + 40 * SECOND, topic="scratch",
               objective="leaderless", previous=previous(11 * MINUTE), change="unclear"),
        figure("messages_lost", "offsets", 42_000, 42_000, 42_000, group="audit-archive",
               objective="lost-before-read", previous=previous(40_320), change="worse"),
        figure("clients_throttled", "clients", 2, 2, 2, of=12, user="billing",
               client_id="invoicing", subject_value=264 * MINUTE, subject_unit="us",
               objective="produce-throttling", subject_value_low=255 * MINUTE,
               subject_value_high=266 * MINUTE, previous=previous(2), change="same"),
        figure("coverage", "share", .9998, .9998, .9998, source="broker-2",
               subject_value=531 * SECOND, subject_unit="us", subject_value_low=531 * SECOND,
               subject_value_high=531 * SECOND, objective="coverage",
               previous=previous(.9998), change="same"),
    ]  # fmt: skip


def cause(kind: str, start: str, end: str, *sources: str, **given: Any) -> Facts:
    return {
        "kind": kind, "sources": list(sources), "start": at(start), "end": at(end), "error": None,
        "single_replica": [], "no_spare": [], "also": [], "ruled_out": [], "unobserved": [],
        "leader_changes": 0, **given,
    }  # fmt: skip


def hit(topic: str, kind: str, partitions: int, of: int | None, most: int | None = None) -> Facts:
    return {
        "topic": topic, "kind": kind, "partitions": partitions, "of": of,
        "most": most or partitions, "bad_us": MINUTE,
    }  # fmt: skip


def event(
    number: int, kind: str, start: str, end: str, bad: int, why: Facts, **given: Any
) -> Facts:
    size = dict.fromkeys((
        "partitions", "offsets_low", "offsets_high", "throttle_ms_mean", "throttle_ms_max",
        "rate_max", "quota", "max_bytes", "max_value",
    ))  # fmt: skip
    found: Facts = {
        "number": number, "kind": kind, "of": None, "from": at(start), "to": at(end),
        "ongoing": False, **bounded("bad", bad), "topics": [], "user": None, "client_id": None,
        "group": None, "source": None, "hits": [],
        "parts": [{"start": at(start), "end": at(end)}], "incidents": 1, "cause": why, "uses": [],
        "objective": None, "used": None, "owner": None, "owners": [], "weeks_in_row": 3,
        "planned": False, "agreed": False, **given,
    }  # fmt: skip
    return {**found, "size": size | found.get("size", {})}


def events() -> list[Facts]:
    spares = {"single_replica": ["scratch"], "no_spare": ["payments"]}
    brokers = ("broker-1", "broker-2", "broker-3")
    days = [
        {"start": at(f"{day} {start}"), "end": at(f"{day} {end}")}
        for day, start, end in (
            (16, "11:12:20", "11:54"), (17, "11:06:10", "11:52:40"), (18, "11:02:50", "11:35:50"),
            (19, "11:27:50", "12:11:30"), (20, "11:28:40", "11:50:20"),
            (21, "11:54:20", "12:23"), (22, "11:02:40", "11:51:40"),
        )
    ]  # fmt: skip
    return [
        event(1, "loss", "18 02:40", "18 04:45", 125 * MINUTE,
              cause("retention", "18 02:40", "18 04:45", ruled_out=["restart"]),
              group="audit-archive", topics=["audit"], objective="lost-before-read", used=12.40,
              owner="Compliance data", owners=["Compliance data"],
              size={"partitions": 6, "offsets_low": 42_000, "offsets_high": 42_000}),
        event(2, "throttling", "16 11:12:20", "22 11:51:40", 264 * MINUTE,
              cause("quota", "16 11:12:20", "22 11:51:40", "broker-2"),
              of="produce", user="billing", client_id="invoicing", parts=days,
              objective="produce-throttling", used=2.62, owner="Billing", owners=["Billing"],
              size={"throttle_ms_mean": 259.0, "throttle_ms_max": 410.0, "rate_max": 9.0e6,
                    "quota": 2**23},
              **bounded("bad", 264 * MINUTE, 255 * MINUTE, 266 * MINUTE)),
        event(3, "availability", "18 14:27:30", "18 14:47:30", 20 * MINUTE,
              cause("not_known", "18 14:27:30", "18 14:47:30",
                    ruled_out=["restart", "scrape_failure", "leader_change"]),
              topics=["orders"], hits=[hit("orders", "under_min_isr", 3, 12)],
              objective="min-isr", used=1.98, owner="Order platform", owners=["Order platform"]),
        event(4, "availability", "19 15:29:20", "19 15:36:40", 440 * SECOND,
              cause("restarted", "19 15:29:20", "19 15:36:40", "broker-2",
                    error="connection refused", **spares),
              topics=["payments", "scratch"], objective="leaderless", used=1.46, owner="Payments",
              hits=[hit("payments", "under_min_isr", 4, 6), hit("scratch", "leaderless", 2, 6)],
              owners=["Payments"]),
        event(5, "availability", "17 05:00", "17 05:13:30", 280 * SECOND,
              cause("rolling_restart", "17 05:00", "17 05:13:30", *brokers, **spares),
              topics=["payments", "scratch"], objective="leaderless", used=0.93, owner="Payments",
              hits=[hit("payments", "under_min_isr", 6, 6, 4),
                    hit("scratch", "leaderless", 6, 6, 2)],
              owners=["Payments"]),
        event(6, "tiered", "20 17:00", "20 18:09", 69 * MINUTE,
              cause("not_known", "20 17:00", "20 18:09", ruled_out=["copy_errors"]), of="copy",
              topics=["sessions"], objective="copy-lag", used=0.14, weeks_in_row=1,
              size={"max_bytes": 9 * 2**30}),
        event(7, "throttling", "21 10:50", "21 10:56", 6 * MINUTE,
              cause("quota", "21 10:50", "21 10:56", "broker-1"), of="fetch", user="reporting",
              client_id="nightly", objective="fetch-throttling", used=0.06, weeks_in_row=1,
              size={"throttle_ms_mean": 263.0, "throttle_ms_max": 410.0, "rate_max": 8.0e6}),
    ]  # fmt: skip


def facts(**given: Any) -> Facts:
    """Return the facts of week 47 of the sample; given keys replace those of the same name."""
    judged = objectives()
    verdicts = [
        {"objective": one["name"], "title": one["title"], "target": one["target"],
         "verdict": one["status"], "subjects": len(one["subjects"]), **one.pop("counts"),
         "agreed": None}
        for one in judged
    ]  # fmt: skip
    found: Facts = {
        "format": 2, "jmxlake": "0", "cluster": "sample",
        "from": at("16 00:00"), "to": at("23 00:00"), "time_zone": "UTC",
        "week": {"iso": "2026-W47", "time_zone": "UTC"}, "generated_at": at("23 06:00"),
        "window_seconds": 300, "min_coverage_percent": 50.0, "running": False, "elapsed": 1.0,
        "verdicts": verdicts, "objectives": judged, "owners": {"currency": None, "accounts": []},
        "composites": [{
            "composite": "clients", "title": "Client experience", "service": "kafka",
            "team": None, "tier": None, "target": 0.9967, "attainment": 0.9985,
            "attainment_low": 0.998, "attainment_high": 0.9986, "verdict": "met",
            "objectives": [{"objective": str(number), "subjects": 3} for number in range(6)],
        }],
        "maintenance": [], "corrections": [], "restated": None, "business_hours": None,
        "coverage": {"expected_us": 10**12, "observed_us": 9998 * 10**8, "unknown_us": 2 * 10**8,
                     "percent": 99.98, "sources": [], "since": None},
        "key_figures": key_figures(), "events": events(), "incidents": [], "changes": [],
        "previous": {"week": "2026-W46", "newly_missed": [], "no_longer_missed": [], "missed": 4},
        "answers": [{"question": "lag", "state": "not_collected", "observed_percent": None,
                     "reason": "Not collected: no agent reports kafka.group.lag."}],
    }  # fmt: skip
    return deepcopy(found | given)


def running(**given: Any) -> Facts:
    """Return the same week while it is running: 81 % are over."""
    now = START + timedelta(microseconds=round(0.81 * WEEK))
    found = facts(running=True, elapsed=0.81, generated_at=now.isoformat())
    for one in found["objectives"]:
        status = (
            "missed" if one["used_low"] > 1 else "at_risk" if one["used"] > 0.81 else "on_track"
        )
        one["status"] = status
    return found | given


def blind(**given: Any) -> Facts:
    """Return the same week with 0.1 % coverage."""
    found = facts()
    found["coverage"] |= {"observed_us": 10**9, "percent": 0.1}
    return found | given
