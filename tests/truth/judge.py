"""A report against the truth: which intervals hold the true figure, and how wide they are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lakehouse.core.periods import instant, micros
from tests.truth import expected, logs
from tests.truth.expected import Truth
from tests.truth.schedule import LAGS
from tests.truth.steps import Span, clipped, united, without
from tests.truth.world import S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.truth.schedule import Schedule

Row = dict[str, Any]
Unlooked = Mapping[int, Sequence[Span]]
INTERVAL_US: Final = 10 * S
_LONG_US: Final = 60 * S
# Of a topic or client that a report does not name it says nothing.
_NOT_TOLD: Final = dict.fromkeys(("unknown_us", "unseen_us", "partitions_unknown_us"), math.inf)
# ``unknown_us`` leaves out the time in which the topic is known to be unavailable; then others of
# its partitions may be under their min ISR unobserved.
_UNKNOWN_OF_TOPIC: Final = {
    "any": "unseen_us",
    "unavailable_any": "unknown_us",
    "under": "partitions_unknown_us",
    "leaderless": "partitions_unknown_us",
}
_KINDS: Final = {"under_min_isr": "under", "leaderless": "leaderless"}


class Check(NamedTuple):
    """One figure of a report and what is true of it; microseconds.

    Attributes:
        unknown_us: Time of which the report says that nobody saw it.
        interval_us: Of the scrapes behind it.
    """

    cluster: str
    figure: str
    subject: str
    low: float
    high: float
    unknown_us: float
    truth: Truth
    interval_us: int

    @property
    def contained(self) -> bool:
        """Whether the interval holds the truth."""
        return self._holds(self.truth.least, self.truth.most)

    @property
    def strictly(self) -> bool:
        """The same, of all that is true, however short."""
        return self._holds(self.truth.exact, self.truth.exact)

    @property
    def is_whole(self) -> bool:
        """Whether all was seen, and everything was long enough to be."""
        truth = self.truth
        shown = truth.incidents > 0 and truth.least == truth.most and not truth.announced
        return shown and not self.unknown_us

    @property
    def width(self) -> float:
        """Scrape intervals per incident, but for what a bean remembers.

        Two intervals lie between questions, which come late by what the thread and the answers
        before them took; and each of the two answers takes a while.
        """
        memory_us = self.truth.incidents * self.truth.memory_us
        apart_us = max(0.0, self.high - self.low - memory_us)
        return apart_us / self.truth.incidents / self.interval_us

    def _holds(self, least: int, most: int) -> bool:
        heard_us = self.truth.incidents * self.truth.heard_us
        return self.low <= most + heard_us and least - heard_us <= self.high + self.unknown_us


class Judgement(NamedTuple):
    """What is said of one report.

    Attributes:
        checks: Of every figure.
        unsound: Incidents of which the report is sure, and that were none; and others that were,
            though everything was seen, and are not told.
        missed: Incidents above the floor that fell between two looks, and are taken for well.
        brief: How many incidents were shorter than the floor.
        brief_seen: How many of them the report tells.
    """

    checks: list[Check]
    unsound: list[str]
    missed: list[str]
    brief: int
    brief_seen: int


def judge(
    schedule: Schedule, facts: Row, unlooked: Unlooked | None = None, floor_us: int | None = None
) -> Judgement:
    """Compare a report with what happened.

    Args:
        schedule: What happened.
        facts: The report.
        unlooked: Per broker, when nobody looked though scrapes before and after vouch for it.
        floor_us: What is shorter need not be seen; by default the floor that the report states.
    """
    floor_us = floor_of(facts) if floor_us is None else floor_us
    checks = [
        *_topics(schedule, facts, floor_us),
        *_partitions(schedule, facts, floor_us),
        *_clients(schedule, facts, floor_us),
        *_lags(schedule, facts, floor_us),
        *_objectives(schedule, facts, floor_us),
        *_counts(schedule, facts),
    ]
    told = _incidents(facts)
    short = expected.brief(schedule, floor_us)
    seen = sum(
        bool(clipped(told.get(where, ([], []))[1], span))
        for where, spans in short.items()
        for span in spans
    )
    unsound = list(_unsound(schedule, facts, told, floor_us))
    missed = list(_missed(schedule, told, unlooked or {}, floor_us))
    return Judgement(checks, unsound, missed, sum(map(len, short.values())), seen)


def floor_of(facts: Row) -> int:
    """The detection floor that a report states; without one, that of all that is not brief."""
    return int(facts["detection_floor_us"] or _LONG_US)


def _topics(schedule: Schedule, facts: Row, floor_us: int) -> Iterator[Check]:
    rows = {row["topic"]: row for row in facts["min_isr"]["topics"]}
    for (topic, stem), truth in expected.topics(schedule.world, floor_us).items():
        row = rows.get(topic, _NOT_TOLD)
        us = row[_UNKNOWN_OF_TOPIC[stem]]
        yield _check(schedule, f"topic {stem}", topic, row, stem, truth, us)


def _partitions(schedule: Schedule, facts: Row, floor_us: int) -> Iterator[Check]:
    """Partitions that are not told of were well, but while their topic was not wholly seen."""
    rows = {(row["topic"], row["partition"]): row for row in facts["min_isr"]["partitions"]}
    unseen = {row["topic"]: row["unseen_us"] for row in facts["min_isr"]["topics"]}
    for kind in ("under", "leaderless"):
        for key, bad in expected.partitions(schedule.world, kind).items():
            truth = expected.union([bad], schedule.world.shape.period, floor_us)
            row = rows.get(key, {})
            us = row.get("unknown_us", unseen.get(key[0], math.inf))
            yield _check(schedule, f"partition {kind}", f"{key[0]}-{key[1]}", row, kind, truth, us)


def _clients(schedule: Schedule, facts: Row, floor_us: int) -> Iterator[Check]:
    rows = {(row["kind"], row["client_id"]): row for row in facts["throttling"]["clients"]}
    stated = _stated(facts)
    for (kind, client), truth in expected.throttling(schedule.world, floor_us).items():
        row = rows.get((kind, client), {})
        us = stated.get((f"{kind}-throttling", client), _NOT_TOLD)["unknown_us"]
        yield _check(schedule, "client throttled", f"{kind} {client}", row, "throttled", truth, us)


def _lags(schedule: Schedule, facts: Row, floor_us: int) -> Iterator[Check]:
    rows = {row["topic"]: row for row in facts["tier_lag"]["topics"]}
    names = dict(zip(LAGS, ("copy", "delete"), strict=True))
    for (topic, metric), truth in expected.lags(schedule.world, floor_us).items():
        if metric in names:
            row, name = rows.get(topic, {}), names[metric]
            lag = row.get(name, {})
            us = (lag or _NOT_TOLD).get("unknown_us")
            yield _check(schedule, f"tier lag {name}", topic, lag, "lagging", truth, us)


def _objectives(schedule: Schedule, facts: Row, floor_us: int) -> Iterator[Check]:
    """Bad time, and attainment as the time that it leaves."""
    stated = _stated(facts)
    truths: dict[tuple[str, str], Truth] = dict(expected.by_topic(schedule.world, floor_us))
    for (kind, client), truth in expected.throttling(schedule.world, floor_us).items():
        truths[f"{kind}-throttling", client] = truth
    for where, truth in truths.items():
        if (row := stated.get(where)) is None:
            continue
        name = f"objective {where[0]}"
        yield _check(schedule, name, where[1], row, "bad", truth, row["unknown_us"])
        if row["attainment"] is not None:
            whole = row["expected_us"]
            low, high = ((1 - row[f"attainment_{end}"]) * whole for end in ("high", "low"))
            slack = 1.0  # of a microsecond: shares are floating point
            bad = {"bad_low_us": low - slack, "bad_high_us": high + slack}
            yield _check(schedule, f"attainment {where[0]}", where[1], bad, "bad", truth, 0)


def _counts(schedule: Schedule, facts: Row) -> Iterator[Check]:
    """Offsets lost, answers and errors; told as if they were microseconds, and never unknown."""
    counted = logs.truths(schedule.world)
    rows = {
        (row["group"], row["topic"], row["partition"]): row
        for row in facts["lost_before_read"]["groups"] or ()
    }
    for commit, number in counted.lost.items():
        if (row := rows.get(commit)) is not None:
            where = f"{commit.group} {commit.topic}-{commit.partition}"
            yield _count(schedule, "offsets lost", where, row, "offsets", number)
    for row in facts["service"]["requests"] or ():
        request = row["request"]
        for stem, numbers in (("errors", counted.errors), ("answers", counted.answers)):
            yield _count(schedule, stem, request, row, stem, numbers[request])


def _count(
    schedule: Schedule, figure: str, subject: str, row: Row, stem: str, number: int
) -> Check:
    low, high = row[f"{stem}_low"] or 0, row[f"{stem}_high"]
    truth = Truth(number, number, number, incidents=0)
    high = math.inf if high is None else high
    return Check(schedule.cluster, figure, subject, low, high, 0, truth, 1)


def _stated(facts: Row) -> dict[tuple[str, str], Row]:
    return {
        (objective["name"], row["topic"] or row["client_id"]): row
        for objective in facts["objectives"]
        for row in objective["subjects"]
    }


def _check(
    schedule: Schedule, figure: str, subject: str, row: Mapping[str, Any], stem: str,
    truth: Truth, unknown_us: float | None,
) -> Check:  # fmt: skip
    unknown_us = math.inf if unknown_us is None else unknown_us
    low = row.get(f"{stem}_low_us") or 0
    high = row.get(f"{stem}_high_us", 0)
    high = math.inf if high is None else high  # at least so much
    return Check(schedule.cluster, figure, subject, low, high, unknown_us, truth, INTERVAL_US)


def _incidents(facts: Row) -> dict[tuple[Any, str], tuple[list[Span], list[Span]]]:
    """Per partition and kind: the spans of which the report is sure, and those that may be."""
    found: dict[tuple[Any, str], tuple[list[Span], list[Span]]] = {}
    for row in facts["min_isr"]["partitions"]:
        for one in row["incidents"]:
            where = (row["topic"], row["partition"]), _KINDS[one["kind"]]
            sure, may = found.setdefault(where, ([], []))
            start, end = (_micros(one[name]) for name in ("start", "end"))
            sure.append((start, end - one["tail_us"]))
            may.append((start - one["lead_us"], end))
    return found


def _unsound(
    schedule: Schedule, facts: Row, told: Mapping[Any, tuple[list[Span], list[Span]]],
    floor_us: int,
) -> Iterator[str]:  # fmt: skip
    whole = {row["topic"] for row in facts["min_isr"]["topics"] if row["unseen_us"] == 0}
    for kind in ("under", "leaderless"):
        for key, bad in expected.partitions(schedule.world, kind).items():
            sure, may = told.get((key, kind), ([], []))
            where = f"{schedule.cluster} {key[0]}-{key[1]} {kind}"
            for span in without(
                clipped(sure, schedule.world.shape.period), united(bad.spans, floor_us)
            ):
                yield f"{where}: the report is sure of {_text(span)}, which was well"
            lasting = expected.lasting(clipped(bad.spans, schedule.world.shape.period), floor_us)
            for span in without(lasting, may) if key[0] in whole else ():
                yield f"{where}: nothing is told of {_text(span)}, and nothing is unknown"


def _missed(
    schedule: Schedule, told: Mapping[Any, tuple[list[Span], list[Span]]], unlooked: Unlooked,
    floor_us: int,
) -> Iterator[str]:  # fmt: skip
    for key, bad in expected.partitions(schedule.world, "under").items():
        _, may = told.get((key, "under"), ([], []))
        for span in expected.lasting(clipped(bad.spans, schedule.world.shape.period), floor_us):
            leaders = {
                schedule.world.partitions[key].at(at).leader for at in (span[0], span[1] - 1)
            }
            between = [
                one
                for leader in leaders
                for one in unlooked.get(leader or 0, ())
                if len(leaders) == 1 and one[0] <= span[0] and span[1] <= one[1]
            ]
            if between and not clipped(may, span):
                apart_us = between[0][1] - between[0][0]
                yield (
                    f"{schedule.cluster} {key[0]}-{key[1]} under: {_text(span)} fell between two "
                    f"looks {apart_us / S:.3f} s apart and is taken for well"
                )


def _text(span: Span) -> str:
    return f"{(span[1] - span[0]) / S:.3f} s from {instant(span[0]).time()}"


def _micros(text: str) -> int:
    return micros(datetime.fromisoformat(text))
