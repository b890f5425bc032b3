"""The facts' records are the contract: report.json, the pages about it and the CSV files."""

from __future__ import annotations

import json
import types
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from lakehouse.report import csv_files
from lakehouse.report.facts.fields import Bounds, key_of
from lakehouse.report.facts.owner_accounts import Account
from lakehouse.report.facts.shape import SECTIONS
from lakehouse.report.owners import LABELS

ROOT = Path(__file__).parents[2]
PLAIN = {"objectives", "maintenance", "corrections", "changes", "incomplete", "collected"}
"""Lists of no records: statements, maintenance, corrections, changes, lost hours and metrics."""

PAGES = ("report-json.md", "trends.md", "remote-index.md")


def record(hint: Any) -> Any:
    """The record of a field that is one, or a list of them, or may be None; else None."""
    if get_origin(hint) in (list, types.UnionType):
        return next((found for one in get_args(hint) if (found := record(one))), None)
    return hint if hasattr(hint, "_fields") else None


def keys(of: Any) -> dict[str, Any]:
    """The keys of a record in JSON, each with the record that its value is made of."""
    found: dict[str, Any] = {}
    for own_name, hint in get_type_hints(of).items():
        name = key_of(own_name)
        if hint is Bounds:
            stem, unit = (name[:-3], "_us") if name.endswith("_us") else (name, "")
            found |= dict.fromkeys((name, f"{stem}_low{unit}", f"{stem}_high{unit}"))
        else:
            found[name] = record(hint)
    return found


def around(path: str) -> dict[str, Any]:
    """The keys of the record there, and of those that it is within."""
    section, *inner = path.split(".")
    found = keys(SECTIONS[section])
    for key in inner:
        found = found | keys(found[key])
    return found


def every(of: Any) -> dict[str, Any]:
    """All records within a record, by their names."""
    inner = [one for one in keys(of).values() if one]
    return {of.__name__: of} | {name: one for each in inner for name, one in every(each).items()}


def check(value: Any, of: Any, path: str) -> int:
    """Compare JSON with its record; how many rows were compared."""
    if isinstance(value, list):
        return sum(check(one, of, path) for one in value)
    if value is None:
        return 0
    assert list(value) == list(keys(of)), path
    inner = ((key, one) for key, one in keys(of).items() if one)
    return 1 + sum(check(value[key], one, f"{path}.{key}") for key, one in inner)


def test_the_golden_facts_have_the_keys_of_the_records_in_their_order() -> None:
    facts = json.loads((ROOT / "tests/golden/report.json").read_text(encoding="utf-8"))
    assert sum(check(facts[name], row, name) for name, row in SECTIONS.items()) > 100
    others = facts.keys() - SECTIONS.keys() - PLAIN
    assert not any(isinstance(facts[name], list) for name in others), "rows without a record"


@pytest.mark.parametrize(
    ("name", "row"),
    [one for section in (*SECTIONS.values(), Account) for one in every(section).items()],
)
def test_every_field_of_a_record_is_documented(name: str, row: Any) -> None:
    pages = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in PAGES)
    for field in row._fields:
        assert f'"{key_of(field)}"' in pages, (name, field)


def test_every_column_of_a_csv_file_is_a_field_of_its_record() -> None:
    """Of tables whose rows are in the facts as they are."""
    compared = 0
    for table in csv_files.tables():
        section = table.source.partition(".")[0]
        if table.source in csv_files._ROWS or section in {*PLAIN, "business_hours"}:
            continue
        known = keys(Account) if table.source == "owners.accounts" else around(table.source)
        for column in table.columns:
            first, _, rest = column.path.partition(".")
            # No trend is of a partition, whose column is there as in every table of subjects.
            assert first in known or first in (*LABELS, "partition"), (table.name, column.name)
            inner = known.get(first)
            below = rest.removeprefix("0.")
            assert not (rest and inner) or below in keys(inner), (table.name, column.name)
            compared += 1
    assert compared > 100
