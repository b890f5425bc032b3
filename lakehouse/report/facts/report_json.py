"""The file report.json: its shape, its JSON Schema, and reading and writing it.

The shape is derived from the records of the sections. A key that a record may lack (a figure, its
bounds, a list) may be absent, because an older version did not write it. A name, a verdict or an
instant may not be absent. Unknown keys are ignored.

``python -m lakehouse.report.facts.report_json`` prints the JSON Schema.
"""

import functools
import json
import sys
import types
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, UnsetType

from lakehouse.core import display, periods
from lakehouse.errors import FactsError, PeriodError
from lakehouse.report import figures
from lakehouse.report.facts.build import with_figures
from lakehouse.report.facts.fields import LABELS, Bounds, Field, Named, fields_of, nested, three
from lakehouse.report.facts.objectives import statement_rows
from lakehouse.report.facts.objectives.verdicts import Composite
from lakehouse.report.facts.objectives.weeks import Trends
from lakehouse.report.facts.report_record import FORMAT, Report, Week
from lakehouse.report.facts.sections.capacity import StoredTopic
from lakehouse.report.facts.sections.consumer_groups import (
    LostBeforeRead,
    LostOffsets,
    group_totals,
)
from lakehouse.report.facts.sections.golden_signals import Answers, Error, Latency
from lakehouse.report.facts.sections.hygiene import Hygiene, Replicas
from lakehouse.report.facts.sections.monitoring import OwnMetrics
from lakehouse.report.facts.sections.tier_lag import TierLag
from lakehouse.report.facts.sections.timelines import Timeline
from lakehouse.tables.strict_files import UnreadableFileError, parse_json, read_text
from lakehouse.tables.typed_settings import WrongSettingError, convert

_INSTANTS: Final = frozenset({"start", "end", "from", "to", "at", "as_of", "since", "stated_at"})
_GREATEST: Final = 1e30
_YEARS: Final = range(1970, 2200)


class _Instant:
    """An ISO 8601 instant of a year that a report can be of."""


class _Zone:
    """The name of a time zone."""


_UNIONS: Final = (types.UnionType, Union)
_Point = tuple[_Instant, float | None, float | None, float | None]
_WeekName = Annotated[str, Meta(pattern=r"^(19[7-9]|20\d|21\d)\d-W(0[1-9]|[1-4]\d|5[0-3])$(?!\n)")]
_Number = Annotated[float, Meta(ge=-_GREATEST, le=_GREATEST)]
_Duration = Annotated[float, Meta(ge=0, le=_GREATEST)]
_OVERSPENT: Final = frozenset({
    "budget_left_us", "budget_left_low_us", "budget_left_high_us", "budget_of_window_left_us",
})  # fmt: skip
"""Times that are negative if they are overspent."""


def check_shape(facts: Mapping[str, Any]) -> None:
    """Check facts from a file or another program.

    Args:
        facts: The content of report.json.

    Raises:
        WrongSettingError: A key has another type, or is missing; with its place.
    """
    convert(facts, json_type(Report), _hook)
    if not display.parse(facts["from"]) < display.parse(facts["to"]):
        raise WrongSettingError("to", "not after from")
    _check_weeks(facts.get("trends") or {})


def schema() -> dict[str, Any]:
    """Return the JSON Schema of report.json; keys that older versions lack are optional."""
    of_report = msgspec.json.schema(json_type(Report), schema_hook=_schema_of)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **of_report}


def _schema_of(kind: type) -> dict[str, Any]:
    return {"type": "string"} | ({"format": "date-time"} if kind is _Instant else {})


def _check_weeks(trends: Mapping[str, Any]) -> None:
    weeks = trends.get("weeks") or ()
    for objective in trends.get("objectives") or ():
        for subject in objective.get("subjects") or ():
            if not weeks or len(subject.get("weeks") or ()) != len(weeks):
                raise WrongSettingError("trends", "a subject has other weeks than the section")


_CLOSER: Final[Mapping[tuple[Any, str], Any]] = {
    (statement_rows.BusinessHours, "spans"): list[tuple[_Instant, _Instant]],
    (Timeline, "points"): list[_Point],
    (LostOffsets, "offsets_low"): _Number | None,
    (Report, "generated_at"): _Instant,
    (Report, "time_zone"): _Zone,
    (Report, "window_seconds"): _Duration,
    (Trends, "weeks"): list[_WeekName],
    (Week, "iso"): _WeekName,
    (statement_rows.WeekOfObjective, "week"): _WeekName,
}
"""Types that are narrower than in the records, or that accept older versions."""

_NEEDED: Final[Mapping[Any, Collection[str]]] = {
    Answers: ("source", "unknown_us"),
    statement_rows.BusinessHours: ("verdicts", "objectives"),
    statement_rows.Change: ("source", "old", "new"),
    Composite: ("team", "tier", "target", "objectives"),
    Error: ("answers",),
    Hygiene: ("unused_quotas", "near_quota", "overtaken"),
    Latency: ("threshold_ms",),
    LostBeforeRead: ("groups",),
    Named: Named.__annotations__,
    statement_rows.Objective: ("subjects",),
    OwnMetrics: ("metrics",),
    Replicas: ("partitions",),
    Report: ("cluster", "from", "to", "objectives", "verdicts"),
    statement_rows.Restated: ("before", "now"),
    StoredTopic: ("disk_bytes_mean",),
    Trends: ("weeks", "objectives"),
}
"""Required keys that may be null or empty, and that every version wrote."""

_LATER: Final[frozenset[tuple[Any, str]]] = frozenset({(TierLag, "partitions_omitted")})
"""Figures that an older version did not write."""


@functools.cache
def json_type(record: Any) -> Any:
    """Return the type of a record in JSON; see ``fields.to_json``."""
    fields: list[tuple[str, Any]] = []
    for name, field in fields_of(record).items():
        needed = name in _NEEDED.get(record, ())
        if field.kind is Bounds:
            for key, text in three(name, field.means.text):
                kind = _described(_number(name) | None, text)
                fields.append((key, kind if needed else _may_lack(kind)))
        else:
            kind = _described(_of_field(record, name, field), field.means.text)
            is_open = get_origin(field.kind) in (list, dict, *_UNIONS) or record is Report
            is_open = (is_open or (record, name) in _LATER) and not needed
            fields.append((name, _may_lack(kind) if is_open else kind))
    return _struct(f"{record.__module__.rpartition('.')[2]}.{record.__name__}", fields)


def _of_field(record: Any, name: str, field: Field) -> Any:
    closer = _CLOSER.get((record, name))
    return _kind(field.kind, name) if closer is None else closer


def _described(kind: Any, text: str) -> Any:
    return Annotated[kind, Meta(description=text)] if text else kind


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
    return json_type(hint) if nested(hint) else hint


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
        ValueError: It is invalid.
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


def schema_text() -> str:
    """Return the schema as JSON."""
    return json.dumps(schema(), indent=1) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())


MOST_BYTES: Final = 200_000_000
"""Maximum size of report.json, bytes."""

_OLDER: Final = 1
"""The format without events, statuses, history and key figures."""

_RENAMED: Final = {"events": "changes", "events_omitted": "changes_omitted"}
"""Keys of format 1 with another meaning in format 2, and their new names."""

_WANTED: Final = "Specify a file that jmxlake report --json wrote"


def is_saved(place: str) -> bool:
    """Return True if a place is a file of facts and not a lake."""
    return place.endswith(".json") and "://" not in place


def load(path: Path) -> dict[str, Any]:
    """Return the facts that ``jmxlake report --json`` wrote.

    Raises:
        FactsError: The file cannot be read, or holds something else.
    """
    try:
        facts = parse_json(read_text(path, MOST_BYTES), str(path))
    except UnreadableFileError as error:
        raise FactsError(f"{error}. {_WANTED}") from None
    if not isinstance(facts, dict) or "format" not in facts:
        raise FactsError(f"{path}: not a report. {_WANTED}")
    written = facts["format"]
    if written not in (_OLDER, FORMAT):
        what = f"format {display.line(written, 20)}, and this version reads {FORMAT}"
        raise FactsError(f"{path}: {what}. Use the jmxlake version that wrote it")
    if written == _OLDER:
        facts = {_RENAMED.get(name, name): value for name, value in facts.items()}
    try:
        check_shape(facts)
    except WrongSettingError as error:
        raise FactsError(f"{path}: not a report: {error}. {_WANTED}") from None
    return facts if written == FORMAT else _upgraded(facts)


def _upgraded(facts: dict[str, Any]) -> dict[str, Any]:
    """Return facts of format 1 as format 2; events are unknown."""
    end, made = (figures.moment(facts.get(key, facts["to"])) for key in ("to", "generated_at"))
    found = {**facts, "format": FORMAT, "running": made < end}
    found["objectives"] = [{**one, "history": []} for one in facts["objectives"]]
    if lost := facts.get("lost_before_read"):
        found["lost_before_read"] = {**lost, "totals": group_totals(lost["groups"])}
    return with_figures(found)


def text(facts: Mapping[str, Any]) -> str:
    """Return the facts as ``load`` reads them; lone surrogates are escaped (UTF-8)."""
    content = json.dumps(facts, indent=1, ensure_ascii=False) + "\n"
    return content.encode("utf-8", "backslashreplace").decode("utf-8")
