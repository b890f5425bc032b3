"""Causes and times of events against the schedule of the faults that caused them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lakehouse.core.periods import instant
from tests.report_faults import Fault, bad_times, us_of
from tests.truth import expected
from tests.truth.schedule import MEMORY_US, REFRESH_US
from tests.truth.steps import Span, clipped, united, without

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tests.truth.schedule import Schedule

_NOT_KNOWN: Final = "not_known"
_NEAR_US: Final = 120_000_000
_ONSET_US: Final = 60_000_000
"""Kafka removes a replica from the ISR within 45 s; a scrape later it is seen."""

_EARLY_US: Final = 10_000_000
"""How much earlier than a fault its effect may seem to start."""

_CAUSES: Final[Mapping[str, frozenset[str]]] = {
    "killed": frozenset({"restarted", "rolling_restart", "no_answer", "fenced"}),
    "restarted": frozenset({"rolling_restart", "restarted"}),
    "hung": frozenset({"no_answer", "fenced"}),
    "isolated": frozenset({"fenced"}),
    "slow": frozenset(),
    "waiting": frozenset(),
    "throttled": frozenset({"quota"}),
    "behind": frozenset({"copy_errors"}),
    "late": frozenset({"slow_group", "retention"}),
    "stuck": frozenset({"slow_group", "retention"}),
    "busy": frozenset({"no_answer"}),
    "remote": frozenset(),
}
"""The causes that are right for a fault; not known is never wrong."""

_TRACELESS: Final = frozenset({"slow", "waiting", "busy", "isolated"})
"""Faults without a trace in what agents read of brokers."""

_BROKERS: Final = frozenset({"killed", "restarted", "hung", "isolated"})
_OF_BROKERS: Final = frozenset({"availability", "errors", "replication", "latency"})
_EVENTS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(_BROKERS, _OF_BROKERS | {"tiered", "other"}),
    "slow": _OF_BROKERS,
    "busy": frozenset({"latency"}),
    "throttled": frozenset({"throttling"}),
    **dict.fromkeys(("behind", "waiting"), frozenset({"tiered"})),
    **dict.fromkeys(("late", "stuck"), frozenset({"consumer_lag", "loss"})),
}
"""The kinds of events that a fault can cause."""

_NAMES_BROKERS: Final = frozenset({"restarted", "rolling_restart", "no_answer"})
_SHOWN_LATER_US: Final = {"throttling": MEMORY_US, "tiered": 2 * REFRESH_US}
"""By kind of event: for how long metrics show its end later."""


class Verdict(NamedTuple):
    """What came of the comparison of events with faults.

    Attributes:
        judged: Events that a fault explains.
        with_cause: Those with a fault that left a trace, and a cause.
        with_trace: Those with a fault that left a trace.
        wrong: Causes that no fault of that time is.
        mistimed: Events at times that were well, and bad times without an event.
    """

    judged: int
    with_cause: int
    with_trace: int
    wrong: list[str]
    mistimed: list[str]


def judge(
    facts: Mapping[str, Any], faults: Iterable[Fault], schedule: Schedule | None = None
) -> Verdict:
    """Compare the cause of each event with the faults at its time.

    Args:
        facts: The JSON of a report.
        faults: What happened.
        schedule: The schedule that is known to the microsecond; None: times are not compared.
    """
    judged = with_cause = with_trace = 0
    wrong, known, starts = [], list(faults), _starts(facts)
    for event in facts["events"]:
        onsets = starts[event["number"]] or [start for start, _ in parts_of(event)]
        own = list(_of_event(event, onsets, known))
        kind = event["cause"]["kind"]
        if not _is_certain(event) or not (own or kind in _NAMES_BROKERS):
            continue
        judged += 1
        allowed = {cause for fault in own for cause in _CAUSES[fault.kind]}
        if kind not in allowed | {_NOT_KNOWN}:
            wrong.append(f"{_told(facts, event)}: {kind} for {_faults(own)}")
        elif kind in _NAMES_BROKERS and not _named(event) <= {fault.name for fault in own}:
            wrong.append(f"{_told(facts, event)}: {sorted(_named(event))} for {_faults(own)}")
        if any(_has_trace(fault, onsets) for fault in own):
            with_trace += 1
            with_cause += kind != _NOT_KNOWN
    mistimed = [] if schedule is None else [
        *_mistimed(facts, schedule), *_untold(facts, schedule)
    ]  # fmt: skip
    return Verdict(judged, with_cause, with_trace, wrong, mistimed)


def _starts(facts: Mapping[str, Any]) -> Mapping[int, list[int]]:
    """Return the starts of the incidents of each event."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for one in facts.get("incidents") or ():
        found[one["event"]].append(us_of(one["start"]))
    return found


def _of_event(
    event: Mapping[str, Any], onsets: list[int], faults: Iterable[Fault]
) -> Iterator[Fault]:
    """Yield the faults that can cause an event.

    A broker is away at one of its onsets, or shortly before; all other faults overlap it.
    """
    names = {*event["topics"], event["user"], event["client_id"], event["group"], event["source"]}
    for fault in faults:
        if event["kind"] not in _EVENTS.get(fault.kind, ()):
            continue
        if fault.kind in _BROKERS:
            is_own = any(fault.start - _EARLY_US <= at <= fault.end + _ONSET_US for at in onsets)
        else:
            is_own = (fault.kind == "busy" or fault.name in names) and _overlaps(event, fault)
        if is_own:
            yield fault


def _has_trace(fault: Fault, onsets: list[int]) -> bool:
    """Return whether a report can know that a fault is the cause: of brokers by its edges."""
    is_near = any(0 <= at - edge + _EARLY_US <= _ONSET_US for at in onsets
                  for edge in (fault.start, fault.end))  # fmt: skip
    return fault.kind not in _TRACELESS and (is_near or fault.kind not in _BROKERS)


def _is_certain(event: Mapping[str, Any]) -> bool:
    """Return whether an event states more than that it is possible."""
    return event["kind"] != "loss" or bool(event["size"]["offsets_low"])


def _overlaps(event: Mapping[str, Any], fault: Fault) -> bool:
    return any(fault.start - _NEAR_US <= end and start <= fault.end + _NEAR_US
               for start, end in parts_of(event))  # fmt: skip


def _named(event: Mapping[str, Any]) -> set[str]:
    return {*event["cause"]["sources"]}


def parts_of(event: Mapping[str, Any]) -> list[Span]:
    """Return the times in which an event was bad, microseconds."""
    return [(us_of(part["start"]), us_of(part["end"])) for part in event["parts"]]


def _mistimed(facts: Mapping[str, Any], schedule: Schedule) -> Iterator[str]:
    """Yield the events with time that was well: more than the detection floor at either end."""
    for event in facts["events"]:
        if (true := bad_times(schedule.world, event)) is None:
            continue
        slack = facts["detection_floor_us"] + _SHOWN_LATER_US.get(event["kind"], 0)
        for start, end in parts_of(event):
            sure = without([(start, end - slack)], united(true, slack))
            if sure or not clipped(true, (start - slack, end)):
                yield f"{_told(facts, event)}: well from {instant(start)} to {instant(end)}"


def _untold(facts: Mapping[str, Any], schedule: Schedule) -> Iterator[str]:
    """Yield the bad times of topics that no event has, of topics that were wholly observed."""
    floor, period = facts["detection_floor_us"], schedule.world.shape.period
    whole = {row["topic"] for row in facts["min_isr"]["topics"] if not row["unseen_us"]}
    told: defaultdict[str, list[Span]] = defaultdict(list)
    for event in facts["events"]:
        for topic in event["topics"] if event["kind"] == "availability" else ():
            told[topic] += [(start - floor, end) for start, end in parts_of(event)]
    for kind in ("under", "leaderless"):
        for (topic, number), bad in expected.partitions(schedule.world, kind).items():
            true = expected.lasting(clipped(bad.spans, period), floor)
            for start, _ in without(true, told[topic]) if topic in whole else ():
                yield f"{facts['cluster']}: no event of {topic}-{number} at {instant(start)}"


def _told(facts: Mapping[str, Any], event: Mapping[str, Any]) -> str:
    return f"{facts['cluster']}, event {event['number']} of {facts['from'][:10]}, {event['kind']}"


def _faults(own: list[Fault]) -> str:
    return ", ".join(sorted({f"{fault.kind} {fault.name}" for fault in own})) or "no fault"
