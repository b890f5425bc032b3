"""The same on a real cluster: the demo's faults, and what the controllers' own log says of them.

Brokers show what the controllers decided once they have heard of it, so the truth of a
partition's incident is as wide as that took at most.

What a client says of its throttling, and a group of what it lost, is compared as well. The tiers'
lags are not: nobody but the brokers' beans knows them to the second. A scenario that the demo could
not play has no truth, and is not judged.
"""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import datetime
from math import inf
from typing import TYPE_CHECKING, Any, Final

from demo import run as demo_run
from demo.agents import INTERVALS
from demo.properties import THROTTLE_MEMORY_SECONDS
from lakehouse.core.periods import micros
from tests.truth.expected import Truth
from tests.truth.judge import Check, Judgement

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

Row = dict[str, Any]
_S: Final = 1_000_000
_KINDS: Final = {"under": "under_min_isr", "leaderless": "leaderless"}
_SCENARIOS: Final = {"clients": "throttling", "expired": "expiry"}
"""The scenario without which the demo's truth has no list of that name."""
_FAMILIES: Final = {
    "under": "min_isr",
    "any": "min_isr",
    "leaderless": "leaders",
    "throttled": "quotas",
}


def played(folder: Path, name: str) -> Judgement:
    """Run the demo once and judge its report; print the scenarios that it could not play.

    Raises:
        DemoError: A step of it failed.
    """
    demo_run.run(folder, report=True)
    truth, report = (
        json.loads((folder / f"{file}.json").read_text()) for file in ("truth", "report")
    )
    for one in truth["scenarios_missed"]:
        print(f"{name}: scenario {one['scenario']} was not played: {one['reason']}", flush=True)
    return judge(truth, report, name)


def judge(truth: Row, report: Row, name: str) -> Judgement:
    """What the demo's truth says of its report."""
    floor_us = report["detection_floor_us"]
    checks = [*_min_isr(truth, report, name, floor_us), *_clients(truth, report, name)]
    checks += _lost(truth, report, name)
    return Judgement(checks, [], [], 0, 0)


def _facts(truth: Row, key: str) -> list[Row]:
    """A list of the truth; empty if its scenario was not played."""
    missed = {one["scenario"] for one in truth["scenarios_missed"]}
    found: list[Row] = truth.get(key, []) if _SCENARIOS[key] in missed else truth[key]
    return found


def _min_isr(truth: Row, report: Row, name: str, floor_us: int) -> Iterator[Check]:
    heard_us = truth["slowest_heard_us"]
    rows = {(row["topic"], row["partition"]): row for row in report["min_isr"]["partitions"]}
    topics = {row["topic"]: row for row in report["min_isr"]["topics"]}
    for stem, kind in _KINDS.items():
        for key, spans in _by(truth[kind], "topic", "partition").items():
            us = rows.get(key, {}).get("unknown_us", topics[key[0]]["unseen_us"])
            where = f"{key[0]}-{key[1]}"
            told = _truth(spans, floor_us, heard_us)
            yield _check(name, f"partition {stem}", where, rows.get(key, {}), stem, told, us)
        for (topic,), spans in _by(truth[kind], "topic").items():
            row, told = topics[topic], _truth(spans, floor_us, heard_us)
            us = row["partitions_unknown_us"] or 0
            yield _check(name, f"topic {stem}", topic, row, stem, told, us)
    for (topic,), spans in _by(truth["under_min_isr_any"], "topic").items():
        row, told = topics[topic], _truth(spans, floor_us, heard_us)
        yield _check(name, "topic any", topic, row, "any", told, row["unknown_us"])


def _clients(truth: Row, report: Row, name: str) -> Iterator[Check]:
    rows = {
        (row["user"], row["client_id"], row["kind"]): row for row in report["throttling"]["clients"]
    }
    for client in _facts(truth, "clients"):
        row = rows.get((client["user"], client["client_id"], client["kind"]), {})
        spans = [
            {"us": _micros(span["end"]) - _micros(span["start"])}
            for span in client["spans"] if client["throttled"]
        ]  # fmt: skip
        told = _truth(spans, 0)._replace(memory_us=THROTTLE_MEMORY_SECONDS * _S)
        who, us = client["user"] or client["client_id"], row.get("unknown_us") or 0
        yield _check(name, "client throttled", who, row, "throttled", told, us)


def _lost(truth: Row, report: Row, name: str) -> Iterator[Check]:
    """Offsets, told as if they were microseconds."""
    found: defaultdict[Any, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row in report["lost_before_read"]["groups"] or ():
        bounds = found[row["group"], row["topic"], row["partition"]]
        bounds[0] += row["offsets_low"]
        bounds[1] += inf if row["offsets_high"] is None else row["offsets_high"]
    for fact in _facts(truth, "expired"):
        low, high = found[fact["group"], fact["topic"], fact["partition"]]
        offsets = fact["offsets"]
        told = Truth(offsets, offsets, offsets, incidents=0)
        where = f"{fact['group']} {fact['topic']}-{fact['partition']}"
        yield Check(name, "offsets lost", where, low, high, 0, told, 1)


def _truth(spans: Iterable[Row], floor_us: int, heard_us: int = 0) -> Truth:
    lengths = [span["us"] for span in spans]
    lasting = [us for us in lengths if us >= floor_us]
    total = sum(lengths)
    return Truth(sum(lasting), total, total, len(lengths), heard_us=heard_us)


def _check(
    name: str, figure: str, subject: str, row: Row, stem: str, truth: Truth, unknown_us: float,
) -> Check:  # fmt: skip
    low, high = (row.get(f"{stem}_{end}_us", 0) for end in ("low", "high"))
    low, high = low or 0, inf if high is None else high
    interval_us = int(INTERVALS[_FAMILIES[stem]].removesuffix("s")) * _S
    return Check(name, f"real: {figure}", subject, low, high, unknown_us, truth, interval_us)


def _by(facts: Iterable[Row], *key: str) -> dict[Any, list[Row]]:
    found: defaultdict[Any, list[Row]] = defaultdict(list)
    for fact in facts:
        found[tuple(fact[part] for part in key)].append(fact)
    return found


def _micros(text: str) -> int:
    return micros(datetime.fromisoformat(text))
