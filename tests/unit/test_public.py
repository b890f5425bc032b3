"""Public names of CONTRIBUTING.md exist: golden/public.json lists them.

A name that is new fails nothing; ``--golden`` adds it to the file, as each release does.
"""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec
import pytest

from collector.catalogue import load
from collector.config.schema import Config
from docs.tools import commands, configuration
from lakehouse import tables
from lakehouse.ops.views import render
from lakehouse.report import csv_files
from lakehouse.tables.agent_names import (
    FAMILY_KNOWN,
    LOST,
    METRIC_KNOWN,
    SHOWN,
    UNSHOWN_SERIES,
    live_name,
)
from tests import agent_metrics

if TYPE_CHECKING:
    from collections.abc import Iterator

GOLDEN: Final = Path(__file__).parents[1] / "golden"
FILE: Final = GOLDEN / "public.json"
COUNTED: Final = {"outcomes", "changes_omitted"}
"""Objects of report.json whose keys are no names of ours."""

Names = dict[str, str]
"""Public names of a part, each with its kind."""


def cli() -> Iterator[tuple[str, str]]:
    for name, command in commands.PROGRAMS.items():
        yield from parameters(name, command, click.Context(command))


def parameters(
    name: str, command: click.Command, context: click.Context
) -> Iterator[tuple[str, str]]:
    yield name, "command"
    for one in command.params:
        own = isinstance(one.type, click.types.FuncParamType)  # a function's name is no kind
        kind = "flag" if getattr(one, "is_flag", False) else "text" if own else one.type.name
        many = ", many" if one.multiple or one.nargs != 1 else ""
        called = f"{kind}{many}{', required' if one.required else ''}"
        if isinstance(one, click.Argument):
            yield f"{name} {one.human_readable_name}", f"argument {called}"
        elif not getattr(one, "hidden", False):
            for opt in (*one.opts, *one.secondary_opts):
                yield f"{name} {opt}", called
                for choice in getattr(one.type, "choices", ()):
                    yield f"{name} {opt} {choice}", "choice"
    for below in command.list_commands(context) if isinstance(command, click.Group) else ():
        one = command.get_command(context, below)
        if one is not None and not one.hidden:
            yield from parameters(f"{name} {below}", one, context)


def settings() -> Iterator[tuple[str, str]]:
    for section, of in configuration.sections_of(Config):
        for field in msgspec.structs.fields(of):
            name = f"{section}.{field.name}".lstrip(".")
            kind = configuration._type(field.type)
            if kind.startswith("`") and kind != configuration._NAMES[bool]:
                yield from ((f"{name} {one}", "choice") for one in kind.split(", "))
                kind = "choice"
            yield name, f"{kind}, required" if field.required else kind


def keys(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The paths of a JSON text, with what stands at each; of a list, what its rows have."""
    if isinstance(value, list):
        yield path, "list"
        yield from chain.from_iterable(keys(one, f"{path}[]") for one in value)
    elif isinstance(value, dict):
        yield path, "object"
        names = () if path.rpartition(".")[2] in COUNTED else value
        yield from chain.from_iterable(keys(value[one], f"{path}.{one}") for one in names)
    elif not path.endswith("[]"):
        kind = {bool: "flag", str: "text", int: "number", float: "number", type(None): "null"}
        yield path, kind[type(value)]


def report() -> Iterator[tuple[str, str]]:
    """By the golden report; what is null there may be anything."""
    found = list(keys(json.loads((GOLDEN / "report.json").read_text("utf-8"))))
    known = {name: kind for name, kind in found if kind != "null"}
    yield from ((name[1:], known.get(name, "null")) for name, _ in found if name)


def agents() -> Iterator[tuple[str, str]]:
    for name, labels in agent_metrics.exposed().items():
        yield name, ", ".join(sorted(labels))
    shown = [*map(live_name, SHOWN), *(f"{live_name(one)}_total" for one in LOST)]
    for name in (*shown, FAMILY_KNOWN, METRIC_KNOWN, UNSHOWN_SERIES):
        yield name, "of Kafka now"


PARTS: Final = {
    "views": lambda: (
        (f"{view.name}.{column}", "column") for view in render.views() for column in view.columns
    ),
    "report.json": report,
    "report.csv": lambda: (
        (f"{file.name}.{column.name}", "column")
        for file in csv_files.FILES
        for column in file.columns
    ),
    "configuration": settings,
    "commands": cli,
    "agent's metrics": agents,
    "metrics": lambda: ((one.name, f"{one.kind}, {one.unit}") for one in load().metrics.values()),
    "tables": lambda: (
        (f"{table.path}.{one.name}", one.type if one.nullable else f"{one.type}, never null")
        for table in (*tables.BRONZE, *tables.CATALOGUES, *tables.GOLD)
        for one in table.columns
    ),
}


def broken(before: Names, now: Names) -> dict[str, str]:
    """The names that a part has no more, or not in the same way."""
    return {
        name: f"it was {kind!r} and is {now.get(name, 'gone')!r}"
        for name, kind in before.items()
        if now.get(name) not in (kind, "null") and not (kind == "null" and name in now)
    }


@pytest.mark.parametrize("part", PARTS)
def test_nothing_that_is_public_is_gone_or_another(part: str, pytestconfig: pytest.Config) -> None:
    now = dict(PARTS[part]())
    whole = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    if pytestconfig.getoption("--golden"):
        whole[part] = dict(sorted(now.items()))
        FILE.write_text(json.dumps(dict(sorted(whole.items())), indent=1) + "\n", "utf-8")
        return
    gone = broken(whole[part], now)
    assert not gone, (
        f"public names broke: {gone}. Keep the old name beside the new one for a minor version "
        "(CONTRIBUTING.md, Public interfaces). If it was never released, or its time is over: "
        "pytest tests/unit/test_public.py --golden, and say so under Removed in CHANGELOG.md"
    )


def test_a_name_may_come_but_not_go_or_change() -> None:
    was = {"a": "text", "b": "number", "c": "null"}
    assert broken(was, {**was, "d": "text", "b": "null", "c": "list"}) == {}
    assert broken(was, {"a": "list", "c": "null"}).keys() == {"a", "b"}


def test_what_is_promised_is_all_in_the_file() -> None:
    page = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text("utf-8")
    whole = json.loads(FILE.read_text("utf-8"))
    assert whole.keys() == PARTS.keys()
    assert all(f"| {part} |" in page for part in PARTS)
    for part, name in (
        ("views", "topic_days.unavailable_minutes"),
        ("report.json", "min_isr.topics[].any_low_us"),
        ("configuration", "source.jmx.port"),
        ("configuration", "source.role `cluster`"),
        ("commands", "jmxlake report --json"),
        ("agent's metrics", "jmxlake_agent_spool_batches"),
        ("metrics", "kafka.partition.under_min_isr"),
        ("report.csv", "verdicts.objective"),
        ("tables", "gold/topics.series_affected_us"),
    ):
        assert name in whole[part]
