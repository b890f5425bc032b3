"""Shape of report.json, derived from the records that its sections are made of.

A key that a record may lack (a figure, its bounds, a list) may be absent: an older version did not
write it. A name, a verdict or an instant may not. Unknown keys are ignored.
"""

import functools
import types
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import (
    Annotated,
    Any,
    Final,
    NamedTuple,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import UNSET, Meta, UnsetType

from lakehouse.core import display, periods
from lakehouse.core.objective import Part
from lakehouse.errors import PeriodError
from lakehouse.report.evidence import Evidence
from lakehouse.report.facts.build import Rack
from lakehouse.report.facts.coverage import Coverage
from lakehouse.report.facts.event_records import Event, IncidentOfEvent
from lakehouse.report.facts.fields import Bounds, key_of
from lakehouse.report.facts.kafka.consumer_groups import ConsumerLag, LostBeforeRead, LostOffsets
from lakehouse.report.facts.kafka.golden_signals import Answers, Error, Latency, Service
from lakehouse.report.facts.kafka.hygiene import Hygiene, Replicas
from lakehouse.report.facts.kafka.min_isr import MinIsr
from lakehouse.report.facts.kafka.remote_reads import RemoteReads
from lakehouse.report.facts.kafka.replication import Replication
from lakehouse.report.facts.kafka.throttling import Throttling
from lakehouse.report.facts.kafka.tier_lag import TierLag
from lakehouse.report.facts.objectives.business_hours import BusinessHours
from lakehouse.report.facts.objectives.composites import Composite
from lakehouse.report.facts.objectives.restated import Restated
from lakehouse.report.facts.objectives.trends import SubjectTrend, Trends
from lakehouse.report.facts.objectives.verdicts import SUBJECT, Verdict
from lakehouse.report.facts.other_metrics import OwnMetrics
from lakehouse.report.facts.owner_accounts import Account
from lakehouse.report.facts.storage import Capacity, StoredTopic, Tiering
from lakehouse.report.facts.timelines import Timeline
from lakehouse.report.owners import LABELS
from lakehouse.slo.burn_rate import Rate
from lakehouse.tables import SLA, SLA_AGREED, SLA_FIGURES
from lakehouse.tables.typed_settings import WrongSettingError, convert

SECTIONS: Final[Mapping[str, Any]] = {
    "verdicts": Verdict,
    "composites": Composite,
    "restated": Restated,
    "business_hours": BusinessHours,
    "service": Service,
    "min_isr": MinIsr,
    "replication": Replication,
    "throttling": Throttling,
    "tier_lag": TierLag,
    "consumer_lag": ConsumerLag,
    "lost_before_read": LostBeforeRead,
    "remote_reads": RemoteReads,
    "tiering": Tiering,
    "capacity": Capacity,
    "own_metrics": OwnMetrics,
    "hygiene": Hygiene,
    "coverage": Coverage,
    "timelines": Timeline,
    "trends": Trends,
    "racks": Rack,
    "events": Event,
    "incidents": IncidentOfEvent,
    "answers": Evidence,
}
"""The record of each section; of those in ``_LISTS`` it is that of a row."""

_LISTS: Final = frozenset({
    "verdicts", "composites", "restated", "timelines", "racks", "answers", "events", "incidents",
})  # fmt: skip
_OR_NULL: Final = frozenset({"restated", "business_hours", "events", "incidents"})
_INSTANTS: Final = frozenset({"start", "end", "from", "to", "at", "as_of", "since", "stated_at"})
_GREATEST: Final = 1e30
_YEARS: Final = range(1970, 2200)


class _Instant:
    """An ISO 8601 instant of a year that a report can be of."""


class _Zone:
    """The name of a time zone."""


_UNIONS: Final = (types.UnionType, Union)
_Point = tuple[_Instant, float | None, float | None, float | None]
_WeekName = Annotated[str, Meta(pattern=r"^(19[7-9]|20\d|21\d)\d-W(0[1-9]|[1-4]\d|5[0-3])\Z")]
_Number = Annotated[float, Meta(ge=-_GREATEST, le=_GREATEST)]
_Duration = Annotated[float, Meta(ge=0, le=_GREATEST)]
_OVERSPENT: Final = frozenset({
    "budget_left_us", "budget_left_low_us", "budget_left_high_us", "budget_of_window_left_us",
})  # fmt: skip
"""Times that are negative where more was used than there is."""


class _Burn(NamedTuple):
    """Two burn rates of one budget; see ``burn_rate.Alert.to_json``."""

    long: str
    short: str
    limit: float
    at: str
    verdict: str
    long_rate: Rate
    short_rate: Rate
    burnt_us: float | None


class _Planned(NamedTuple):
    """Maintenance or a correction."""

    start: str
    end: str
    reason: str
    clusters: list[str]
    topics: list[str]
    clients: list[str]
    users: list[str]
    groups: list[str]
    sources: list[str]
    objectives: list[str]
    approved_by: str | None
    ticket: str | None


class _Events(NamedTuple):
    """Events that an objective counts."""

    good: float
    bad: float
    total: float


class _ChangeInCluster(NamedTuple):
    """A change in the cluster."""

    at: str
    kind: str
    source: str | None
    topic: str | None
    partition: int | None
    user: str | None
    client_id: str | None
    group: str | None
    old: str | None
    new: str | None


class _IsoWeek(NamedTuple):
    iso: str
    time_zone: str


class _Owners(NamedTuple):
    currency: str | None
    accounts: list[Account]


class _Change(NamedTuple):
    """The change to the last week, with its verdict."""

    share_low: float
    share_high: float
    p: float | None
    compared: float
    verdict: str


class _SubjectWeek(NamedTuple):
    """A week of a subject, whose name is that of the section."""

    expected_us: float
    bad_us: float
    bad_low_us: float
    bad_high_us: float
    unknown_us: float
    share: float | None
    share_low: float
    share_high: float
    is_over: bool | None
    is_known: bool | None


def check(facts: Mapping[str, Any]) -> None:
    """Check facts that a file or another program brought.

    Args:
        facts: The content of report.json.

    Raises:
        WrongSettingError: A key has another type, or is missing; with its place.
    """
    convert(facts, _whole(), _hook)
    if not display.parse(facts["from"]) < display.parse(facts["to"]):
        raise WrongSettingError("to", "not after from")
    _check_weeks(facts.get("trends") or {})


def _check_weeks(trends: Mapping[str, Any]) -> None:
    weeks = trends.get("weeks") or ()
    for objective in trends.get("objectives") or ():
        for subject in objective.get("subjects") or ():
            if not weeks or len(subject.get("weeks") or ()) != len(weeks):
                raise WrongSettingError("trends", "a subject has other weeks than the section")


@functools.cache
def _whole() -> Any:
    fields: list[Any] = [
        ("cluster", str), ("from", _Instant), ("to", _Instant), ("time_zone", _may_lack(_Zone)),
        ("generated_at", _may_lack(_Instant)), ("jmxlake", _may_lack(str)),
        ("week", _may_lack(_record(_IsoWeek) | None)),
        ("window_seconds", _may_lack(_Duration)), ("min_coverage_percent", _may_lack(_Number)),
        ("team", _may_lack(str)), ("owners", _may_lack(_record(_Owners))),
        ("objectives", _objectives()),
        ("maintenance", _may_lack(_list(_record(_Planned)))),
        ("corrections", _may_lack(_list(_record(_Planned)))),
        ("changes", _may_lack(_list(_record(_ChangeInCluster)))),
        ("changes_omitted", _may_lack(dict[str, int])),
        ("incidents_omitted", _may_lack(_Number | None)),
        ("rejected", _may_lack(_Number)), ("detection_floor_us", _may_lack(_Duration | None)),
        ("incomplete", _may_lack(list[dict[str, str]])), ("collected", _may_lack(list[str])),
    ]  # fmt: skip
    for name, record in SECTIONS.items():
        kind = _list(_record(record)) if name in _LISTS else _record(record)
        kind = kind | None if name in _OR_NULL else kind
        fields.append((name, kind if name == "verdicts" else _may_lack(kind)))
    return _struct("Facts", fields)


def _list(kind: Any) -> Any:
    return list[kind]


def _published() -> Any:
    figures = [*_figures((*SLA_FIGURES, *SLA_AGREED))]
    stated = [("statement", _may_lack(_Number | None)), ("stated_at", _may_lack(_Instant | None))]
    return _struct("Published", [*figures, *stated])


def _objectives() -> Any:
    return _list(_objective())


@functools.cache
def _objective() -> Any:
    figures = list(_figures((*SLA_FIGURES, *SLA_AGREED)))
    subject = _struct("Subject", [
        *((name, _may_lack((_Number if name == "partition" else str) | None)) for name in SUBJECT),
        *figures,
        ("partitions", _may_lack(_Number)),
        *((name, _may_lack(_number(name) | None)) for name in (
            "budget_left_low_us", "budget_left_high_us", "ahead_us", "budget_of_window_us",
            "budget_of_window_left_us",
        )),
        ("burn", _may_lack(_list(_record(_Burn)))),
        ("maintenance", _may_lack(_list(_record(_Planned)))),
        ("corrections", _may_lack(_list(_record(_Planned)))),
        ("without_maintenance", _may_lack(_struct("Without", figures) | None)),
        ("agreed", _may_lack(_struct("Agreed", figures) | None)),
        ("events", _may_lack(_record(_Events))),
        ("interval_verdict", _may_lack(str)),
    ])  # fmt: skip
    return _struct("Objective", [
        ("name", str), ("title", str), ("target", _Number), ("level", str),
        ("subjects", _list(subject)),
        *((name, _may_lack(str | None)) for name in ("description", "window", "method", "unknown")),
        *((name, _may_lack(_Instant | None)) for name in ("from", "to")),
        ("metrics", _may_lack(list[str])), ("labels", _may_lack(dict[str, list[str]])),
        ("composites", _may_lack(_list(_record(Part)))),
        *((name, _may_lack(_number(name) | None)) for name in ("slice_us", "slice_target")),
        ("weighted", _may_lack(_struct("Weighted", [
            *figures, ("weight", str), ("subjects", int),
            *((name, _may_lack(str | None)) for name in ("cluster", "objective", "topic")),
        ]) | None)),
    ])  # fmt: skip


def _figures(names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a statement's figures, by the columns of gold/sla."""
    for column in SLA.columns:
        if column.name in names:
            kind = str if column.type == "string" else _number(column.name)
            yield column.name, kind if column.name == "verdict" else _may_lack(kind | None)


_CLOSER: Final[Mapping[tuple[Any, str], Callable[[], Any]]] = {
    (Restated, "before"): _published,
    (Restated, "now"): _published,
    (BusinessHours, "objectives"): _objectives,
    (BusinessHours, "spans"): lambda: list[tuple[_Instant, _Instant]],
    (SubjectTrend, "weeks"): lambda: list[_SubjectWeek | None],
    (SubjectTrend, "change"): lambda: _Change | None,
    (Timeline, "points"): lambda: list[_Point],
    (LostOffsets, "offsets_low"): lambda: _Number | None,
    (Trends, "weeks"): lambda: list[_WeekName],
    (_IsoWeek, "iso"): lambda: _WeekName,
}
"""Types of fields whose records say no more than dict or Any, or less than older versions wrote."""

_NEEDED: Final[Mapping[Any, Collection[str]]] = {
    Answers: ("source", "unknown_us"),
    BusinessHours: ("verdicts", "objectives"),
    Composite: ("team", "tier", "target", "objectives"),
    Error: ("answers",),
    Hygiene: ("unused_quotas", "near_quota", "overtaken"),
    Latency: ("threshold_ms",),
    LostBeforeRead: ("groups",),
    OwnMetrics: ("metrics",),
    Replicas: ("partitions",),
    Restated: ("before", "now"),
    StoredTopic: ("disk_bytes_mean",),
    Trends: ("weeks", "objectives"),
    _ChangeInCluster: ("source", "old", "new"),
}
"""Keys that every version wrote although they may be null or empty, and that are relied on."""

_LATER: Final[frozenset[tuple[Any, str]]] = frozenset({(TierLag, "partitions_omitted")})
"""Figures that an older version did not write."""


@functools.cache
def _record(record: Any) -> Any:
    """Return the type of a record in JSON; see ``fields.to_json``."""
    fields: list[Any] = []
    needed = _NEEDED.get(record, ())
    for own_name, hint in get_type_hints(record).items():
        name = key_of(own_name)
        if hint is Bounds:
            stem, unit = (name[:-3], "_us") if name.endswith("_us") else (name, "")
            bounds = (name, f"{stem}_low{unit}", f"{stem}_high{unit}")
            kind = _number(name) | None
            fields += [(key, _may_lack(kind)) for key in bounds if key not in needed]
            fields += [(key, kind) for key in bounds if key in needed]
        else:
            closer = _CLOSER.get((record, name))
            kind = _kind(closer() if closer else hint, name)
            may_lack = get_origin(hint) in (list, dict, *_UNIONS) and name not in needed
            may_lack = may_lack or (record, name) in _LATER
            fields.append((name, _may_lack(kind) if may_lack else kind))
    return _struct(record.__name__, fields)


def _kind(hint: Any, name: str) -> Any:
    """Return the type of a field's value in JSON."""
    origin, inner = get_origin(hint), [_kind(one, name) for one in get_args(hint)]
    if origin in _UNIONS:
        return Union[tuple(inner)]  # noqa: UP007 - of types that are known now alone
    if origin in (list, dict, tuple):
        return origin[tuple(inner)]
    if hint in (int, float):
        return _number(name)
    if hint is str and name in _INSTANTS:
        return _Instant
    return _record(hint) if hasattr(hint, "_fields") else hint


def _number(name: str) -> Any:
    """Return the type of a number; ``_seconds`` may be a broker's value times time, of any sign."""
    return _Duration if name.endswith("_us") and name not in _OVERSPENT else _Number


def _may_lack(kind: Any) -> Any:
    return kind | UnsetType


def _struct(name: str, fields: list[Any]) -> Any:
    labels = [(label, _may_lack(str | None)) for label in LABELS]
    known = {field for field, _ in fields}
    every = [*fields, *(one for one in labels if one[0] not in known)]
    needed = [one for one in every if UnsetType not in get_args(one[1])]
    lacking = [(*one, UNSET) for one in every if UnsetType in get_args(one[1])]
    return msgspec.defstruct(name, [*needed, *lacking], kw_only=True)


def _hook(kind: type, value: Any) -> Any:
    """Check an instant or a time zone.

    Raises:
        ValueError: It is none.
    """
    if not isinstance(value, str):
        raise ValueError(f"expected text, got {type(value).__name__}")  # noqa: TRY004
    if kind is _Zone:
        try:
            periods.time_zone(value)
        except PeriodError as error:
            raise ValueError(str(error)) from None
    elif display.parse(value).year not in _YEARS:
        raise ValueError("not an instant of the years 1970 to 2199")
    return kind()
