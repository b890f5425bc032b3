"""The facts' records are the contract: report.json, its schema, and the CSV files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args

import pytest

from lakehouse.report import csv_files
from lakehouse.report.facts import report_json
from lakehouse.report.facts.fields import (
    LABELS,
    Bounds,
    Known,
    Means,
    columns,
    fields_of,
    keys,
    nested,
)
from lakehouse.report.facts.report_record import Report
from tests.json_schema_check import wrong

GOLDEN = Path(__file__).parents[1] / "golden/report.json"
ONLY_SOMETIMES = {"team", "owners"}
"""Keys of reports with ``--team`` or ``--owners``."""


def record(kind: Any) -> Any:
    """The record of a field that is one, or a list of them, or may be None; else None."""
    return nested(kind) or next(filter(None, map(record, get_args(kind))), None)


def inner(of: Any) -> dict[str, Any]:
    """The keys of a record in JSON, each with the record that its value is made of."""
    found: dict[str, Any] = {}
    for name, field in fields_of(of).items():
        found |= dict.fromkeys(keys(name)) if field.kind is Bounds else {name: record(field.kind)}
    return found


def every(of: Any) -> set[Any]:
    """All records within a record."""
    return {of}.union(*(every(one) for one in inner(of).values() if one))


def check(value: Any, of: Any, path: str = "") -> int:
    """Compare JSON with its record; how many rows were compared."""
    if isinstance(value, list):
        return sum(check(one, of, path) for one in value)
    if value is None:
        return 0
    known = inner(of)
    assert value.keys() <= known.keys() | set(LABELS), path
    below = ((key, one) for key, one in known.items() if one and key in value)
    return 1 + sum(check(value[key], one, f"{path}.{key}") for key, one in below)


def test_golden_facts_have_the_keys_of_the_records() -> None:
    facts = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert facts.keys() == fields_of(Report).keys() - ONLY_SOMETIMES
    assert check(facts, Report) > 100


@pytest.mark.parametrize("of", sorted(every(Report), key=str), ids=str)
def test_every_field_has_a_meaning(of: Any) -> None:
    for name, field in fields_of(of).items():
        text = field.means.text
        assert text or field.means.column == "", (of, name)
        assert text == " ".join(text.split()).removesuffix("."), (of, name)


def test_every_column_is_a_key_of_its_rows() -> None:
    compared = 0
    for file in csv_files.FILES:
        names = [column.name for column in (*csv_files.COMMON, *file.columns)]
        assert len(names) == len(set(names)), file.name
        if not isinstance(file.rows, str):
            continue
        known, of = dict[str, Any](), Report
        for key in file.rows.split("."):
            of = inner(of)[key]
            known |= inner(of)
        for column in file.columns:
            first, *below = re.sub(r"\.\d+", "", column.path).split(".")
            # No trend is of a partition, whose column is there as in every table of subjects.
            assert first in known or first in (*LABELS, "partition"), (file.name, column.name)
            for key in below:
                assert key in inner(known[first]), (file.name, column.name)
            compared += 1
    assert compared > 300


class Inner(NamedTuple):
    lag_us: Annotated[Bounds, Means("time with lag")]


class Outer(NamedTuple):
    from_: Annotated[str, Means("start", column="start")]
    copy: Annotated[Inner | None, Means("upload")]
    most: Annotated[Inner, Means("", column="")]
    names: Annotated[list[str], Means("names")]
    rows: Annotated[list[Inner] | None, Means("rows")]
    share: Annotated[Known, Means("share")]


def test_columns_of_a_nested_record_have_its_name_and_meaning() -> None:
    assert columns(Outer) == (
        ("start", "start", "from"),
        ("copy_lag_us", "upload: time with lag", "copy.lag_us"),
        ("copy_lag_low_us", "upload: lower bound of lag_us", "copy.lag_low_us"),
        ("copy_lag_high_us", "upload: upper bound of lag_us", "copy.lag_high_us"),
        ("lag_us", "time with lag", "most.lag_us"),
        ("lag_low_us", "lower bound of lag_us", "most.lag_low_us"),
        ("lag_high_us", "upper bound of lag_us", "most.lag_high_us"),
        ("names", "names", "names"),
        ("share", "share", "share"),
    )
    assert [one.name for one in columns(Outer, "share", "from")] == ["share", "start"]


def test_schema_accepts_the_golden_report_and_refuses_another() -> None:
    schema = json.loads(report_json.schema_text())
    facts = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert [*wrong(facts, schema)] == []
    tampered = {**facts, "cluster": 5, "week": {"iso": "W47", "time_zone": "UTC"}}
    del tampered["verdicts"]
    assert {*wrong(tampered, schema)} == {"verdicts: required", "cluster: type", "week: anyOf"}
    described = schema["$defs"]["throttling.Client"]["properties"]
    assert described["throttled_low_us"]["description"] == "lower bound of throttled_us"
