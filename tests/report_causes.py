"""Causes of events against the schedule of the faults that caused them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lakehouse.core.periods import DAY_US
from lakehouse.sample import incidents

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_NOT_KNOWN: Final = "not_known"
_NEAR_US: Final = 120_000_000
_CAUSES: Final[Mapping[str, frozenset[str]]] = {
    "killed": frozenset({"restarted", "no_answer", "fenced"}),
    "restarted": frozenset({"rolling_restart", "restarted"}),
    "slow": frozenset({_NOT_KNOWN}),
    "throttled": frozenset({"quota"}),
    "behind": frozenset({"copy_errors", _NOT_KNOWN}),
    "late": frozenset({"slow_group", "retention"}),
    "stuck": frozenset({"slow_group", "retention"}),
    "busy": frozenset({_NOT_KNOWN, "no_answer"}),
    "remote": frozenset(),
}
"""The causes that are right for a fault of the sample; without a trace in its lake: not known."""
_TRACELESS: Final = frozenset({"slow", "busy"})
_BROKERS: Final = frozenset({"killed", "restarted", "busy"})


class Fault(NamedTuple):
    """What truly happened.

    Attributes:
        kind: One of the sample's kinds.
        name: Name of the broker, topic, client or group.
        start: Microseconds since 1970.
        end: The same.
    """

    kind: str
    name: str
    start: int
    end: int


class Verdict(NamedTuple):
    """What came of the comparison of events with faults.

    Attributes:
        judged: Events that a fault explains.
        with_cause: Those with a fault that left a trace, and a cause.
        with_trace: Those with a fault that left a trace.
        wrong: Causes that no fault of that time is.
    """

    judged: int
    with_cause: int
    with_trace: int
    wrong: list[str]


def of_sample(facts: Mapping[str, Any], seed: int = 1) -> list[Fault]:
    """Return the faults of the sample in the weeks around a report."""
    start = _us(facts["from"])
    monday = start - _weekday(start) * DAY_US
    now = _us(facts["generated_at"])
    running = now - now % DAY_US - _weekday(now) * DAY_US
    weeks = (running - monday) // (7 * DAY_US)
    return [Fault(*one) for one in incidents.of_weeks(seed, running, int(weeks))]


def judge(facts: Mapping[str, Any], faults: Iterable[Fault]) -> Verdict:
    """Compare the cause of each event with the faults at its time."""
    judged = with_cause = with_trace = 0
    wrong, known = [], list(faults)
    for event in facts["events"]:
        own = list(_of_event(event, known))
        if not own:
            continue
        judged += 1
        kind = event["cause"]["kind"]
        allowed = {cause for fault in own for cause in _CAUSES[fault.kind]}
        if kind not in allowed | {_NOT_KNOWN}:
            wrong.append(f"{event['number']} of {facts['from'][:10]}: {kind}, {_told(own)}")
        elif kind != _NOT_KNOWN and not _sources_fit(event, own):
            wrong.append(f"{event['number']} of {facts['from'][:10]}: sources, {_told(own)}")
        if any(fault.kind not in _TRACELESS for fault in own):
            with_trace += 1
            with_cause += kind != _NOT_KNOWN
    return Verdict(judged, with_cause, with_trace, wrong)


def _of_event(event: Mapping[str, Any], faults: Iterable[Fault]) -> Iterator[Fault]:
    """Yield the faults at an event's time that can cause it."""
    names = {*event["topics"], event["user"], event["client_id"], event["group"], event["source"]}
    is_broker = event["kind"] in {"availability", "errors", "replication", "latency"}
    for fault in faults:
        if not any(_overlap(fault, part) for part in event["parts"]):
            continue
        is_busy = fault.kind == "busy"
        is_of_broker = is_broker and fault.kind in _BROKERS and not is_busy
        if fault.name in names or is_of_broker or (is_busy and event["kind"] == "latency"):
            yield fault


def _sources_fit(event: Mapping[str, Any], own: list[Fault]) -> bool:
    """Return whether every source that the cause names had a fault; others name none."""
    brokers = {fault.name for fault in own if fault.kind in _BROKERS}
    named = set(event["cause"]["sources"])
    return event["cause"]["kind"] not in {"restarted", "rolling_restart"} or named <= brokers


def _overlap(fault: Fault, part: Mapping[str, Any]) -> bool:
    start, end = _us(part["start"]), _us(part["end"])
    return fault.start - _NEAR_US <= end and start <= fault.end + _NEAR_US


def _told(own: list[Fault]) -> str:
    return ", ".join(sorted({f"{fault.kind} {fault.name}" for fault in own}))


def _us(instant: str) -> int:
    return round(datetime.fromisoformat(instant).timestamp() * 1_000_000)


def _weekday(us: int) -> int:
    """Return the day of the week, 0 is Monday; 1970 began on a Thursday."""
    return (us // DAY_US + 3) % 7
