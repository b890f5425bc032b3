"""Reference of report.json, generated from the records of the report data."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any, Final, get_args, get_origin

from docs.tools.layout import code, page, table
from lakehouse.report.facts.fields import Bounds, Field, fields_of, nested, three
from lakehouse.report.facts.report_record import Report

_INTRODUCTION: Final = """\
`jmxlake report --json` writes the report data. Page, terminal, mail and [CSV](report-csv.md) show
the same data. [report.schema.json](report.schema.json) is its JSON Schema. `python -m
lakehouse.report.facts.report_json` prints the schema of the installed version.

- Times are ISO 8601, UTC. Durations are whole microseconds (`_us`).
- `null` is unknown, or does not apply. It is not zero. In meanings, *empty* is `null` and
  *1* is `true`.
- `_low` and `_high` bound the true figure. `unknown_us` is time without data.
- A `_high` of `null` is "at least": counts may be lost. A process that ends loses the counts after
  its last scrape. A source that was never scraped, or not at an end of the period, might have
  counted more. Each such source opens every sum that it is part of.
- The increase of a counter is the difference between scrapes. Its `_low` leaves out the first
  window of the period, because part of that increase might be older. Its `_high` adds the window
  after the period.
- A topic's `unknown_us` is time in which it was not fully observed and not observed to be bad.
- `verdicts[].verdict` is the verdict of the worst subject: missed, uncertain, no_data, met.
- In a report of a week each objective has a window of its own (`from`, `to`). In any other report
  its window is the period. [Objectives](../objectives.md) explains the figures.
- With an owners file, rows about a topic, client or group also have `team`, `owner` and `tier`.
- A point of `timelines` is the maximum of the window for lags (`consumer_lag`: in one topic) and
  latencies (of any broker). It is the mean number for `under_min_isr`, `leaderless` and
  `throttled`, and the sum over brokers for counters. For an own metric it is the mean of a gauge or
  the increase of a counter.
- `format` 2 has `events` that are made of incidents. Format 1 called its `changes` `events`. Saved
  reports of format 1 still open.
- Availability incidents are one event if each starts within a minute and a scrape interval of the
  incident before. Restarts at most 10 minutes apart are one rolling restart. Other incidents are
  one event per kind and subject.
- The `uses` of all events add up to the `bad_us` of each subject and objective, except coverage.
  Time of several events belongs to the event that started last.
- A lost table of gold ([rollup](../rollup.md)) makes figures unknown, and `incomplete` lists its
  hours."""

_TIMELINE: Final = Path(__file__).with_name("explain_json.md")
"""Keys of the timeline of one subject, which has no records."""
_SIMPLE: Final = {str: "text", int: "number", float: "number", bool: "flag"}


def text() -> str:
    """Return the page."""
    parts, paths = ["## Top level", _keys(Report)], dict[Any, str]()
    for name, field in fields_of(Report).items():
        parts += _section("##", name, field, paths)
    return page("report.json", _INTRODUCTION, *parts, _TIMELINE.read_text("utf-8").rstrip())


def _section(mark: str, path: str, field: Field, paths: dict[Any, str]) -> list[str]:
    """Return the records of a field; a record that was described before is only named."""
    if (record := _record(field.kind)) is None:
        return []
    head = [f"{mark} {path}", f"{field.means.text[:1].upper()}{field.means.text[1:]}."]
    if record in paths:
        return [*head, f"Keys as in `{paths[record]}`."]
    paths[record] = path
    inner = fields_of(record).items()
    below = [_section("###", f"{path}.{name}", each, paths) for name, each in inner]
    return [*head, _keys(record), *chain.from_iterable(below)]


def _record(kind: Any) -> Any:
    if inner := nested(kind):
        return inner
    return next(filter(None, map(_record, get_args(kind))), None)


def _keys(record: Any) -> str:
    rows = []
    for name, (kind, means) in fields_of(record).items():
        if kind is Bounds:
            rows += [(code(key), "number", text) for key, text in three(name, means.text)]
        else:
            rows.append((code(name), _type(kind), means.text))
    return table(("Key", "Type", "Meaning"), rows)


def _type(kind: Any) -> str:
    if get_origin(kind) is list:
        return "list"
    if get_origin(kind) is dict or nested(kind):
        return "object"
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    return next((_type(arg) for arg in get_args(kind) if arg is not type(None)), "text")
