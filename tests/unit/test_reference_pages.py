"""The generated pages tell of every setting, metric, table, column and command that there is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click
import pytest

from collector.catalogue import load
from collector.catalogue.entries import KnownWrong, Metric
from collector.config.schema import Config
from collector.settings import Section
from docs.tools import (
    commands,
    configuration,
    layout,
    links,
    metrics,
    report_csv,
    report_json,
    tables,
)
from lakehouse.report.csv_files import COMMON, FILES
from lakehouse.tables import WINDOWS as WINDOWS_OF_GOLD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakehouse.report.csv_files import File
    from lakehouse.tables import Table

SECTIONS = dict(configuration.sections_of(Config))


def parts(page: str, level: str) -> dict[str, str]:
    """What stands below each heading of a level."""
    split = re.split(rf"(?m)^{level} (.+)$", page)
    return dict(zip(split[1::2], split[2::2], strict=True))


def rows(markdown: str) -> list[list[str]]:
    """The cells of a table's lines, without its head."""
    lines = [line for line in markdown.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def programs() -> Iterator[tuple[str, click.Command]]:
    """Every command by what a person types."""
    waiting = list(commands.PROGRAMS.items())
    while waiting:
        name, command = waiting.pop()
        yield name, command
        if isinstance(command, click.Group):
            context = click.Context(command)
            below = command.list_commands(context)
            found = ((one, command.get_command(context, one)) for one in below)
            waiting += [(f"{name} {one}", inner) for one, inner in found if inner is not None]


def kinds(section: type[Section]) -> Iterator[type[Section]]:
    """All that are no base of others."""
    for below in section.__subclasses__():
        yield from kinds(below) if below.__subclasses__() else (below,)


def test_every_section_is_found() -> None:
    known = {section for section in kinds(Section) if section.__module__ != __name__}
    assert {*SECTIONS.values()} == known


@pytest.mark.parametrize("name", SECTIONS)
def test_every_setting_is_told_with_its_type_default_and_meaning(name: str) -> None:
    section = SECTIONS[name]
    assert [*configuration.meanings(section)] == [*section.__struct_fields__]
    headings = parts(configuration.text(), "##")
    told = rows(headings[f"`{name}`" if name else "Top level"])
    assert [row[0] for row in told] == [f"`{key}`" for key in section.__struct_fields__]
    assert all(len(row) == 4 and all(row) for row in told)


@pytest.mark.parametrize(
    ("section", "row"),
    [
        ("`lake`", ["`commit_interval`", "duration", "`30s`"]),
        ("`spool`", ["`max_size`", "size", "`1GiB`"]),
        ("`health`", ["`port`", "whole number", "`9464`"]),
        ("Top level", ["`window`", "duration", "`5m`"]),
        ("Top level", ["`source`", "a section", "*required*"]),
        ("`source`", ["`node`", "whole number or text", "*required*"]),
        ("`source.jmx`", ["`user`", "text", "none"]),
        ("`source.jmx.tls`", ["`registry`", "`true` or `false`", "`true`"]),
        ("`source.jmxquery`", ["`timeout`", "duration", "`30s`"]),
        ("`families.NAME`", ["`cap`", "whole number", "none"]),
    ],
)
def test_types_and_defaults_are_written_as_in_the_file(section: str, row: list[str]) -> None:
    assert row in [told[:3] for told in rows(parts(configuration.text(), "##")[section])]


def test_the_variable_of_a_setting_is_one_that_the_agent_knows() -> None:
    assert "`JMXLAKE_AGENT__SOURCE__JMX__PORT=...`" in configuration.text()


def test_every_metric_is_told_once_with_where_it_stands() -> None:
    families = parts(metrics.text(), "##")
    told = {name: parts(text, "###") for name, text in families.items()}
    wanted = {family.name: [one.name for one in family.metrics] for family in load().families}
    assert {name: list(texts) for name, texts in told.items()} == wanted
    for family, metric in [(one.name, metric) for one in load().families for metric in one.metrics]:
        text = told[family][metric.name]
        assert f"unit `{metric.unit}`" in text
        assert all(f"`{place}`" in text for place in metric.patterns or (metric.call,))
        for fact in (metric.kip, metric.first, metric.last):
            assert fact is None or fact in text
        assert all(layout.prose(known.reason) in text for known in metric.known_wrong)


def test_traps_are_told() -> None:
    wrong = KnownWrong("3.7.0", "stays as it was", "4.2.0")
    metric = Metric(
        name="a.b", unit="1", description="", led=True, memory_seconds=60,
        url_encoded=("user",), known_wrong=(wrong,), replaces="a.c",
    )  # fmt: skip
    told = list(metrics.traps(metric))
    assert told[0] == "Kafka 3.7.0 and later, before 4.2.0: stays as it was."
    assert len(told) == 5
    assert not list(metrics.traps(Metric(name="a.b", unit="1", description="")))


WINDOWS = {one.path for one in WINDOWS_OF_GOLD.values()}
WHOLE = [one for one in tables.ALL if one.path not in WINDOWS]


@pytest.mark.parametrize("path", sorted(WINDOWS))
def test_finest_windows_are_told_with_their_hours(path: str) -> None:
    assert f"`{path}`" in tables.text()


@pytest.mark.parametrize("table", WHOLE, ids=lambda table: table.path)
def test_every_table_and_column_is_told(table: Table) -> None:
    told = rows(parts(tables.text(), "###")[table.path])
    columns = table.columns
    assert [row[:2] for row in told] == [[f"`{one.name}`", f"`{one.type}`"] for one in columns]
    assert [row[2] == "never" for row in told] == [not one.nullable for one in columns]


def test_every_command_and_option_is_told() -> None:
    page = commands.text()
    told = {**parts(page, "##"), **parts(page, "###")}
    for name, command in programs():
        assert f"Usage: {name}" in told[name]
        for param in command.params:
            if isinstance(param, click.Option) and not param.hidden:
                assert param.opts[-1] in told[name], f"{name} {param.opts}"


@pytest.mark.parametrize(
    ("markdown", "folder", "expected"),
    [
        ("[a](agent.md#lake)", "docs", "[a](agent.md#lake)"),
        ("[a](docs/agent.md#lake)", "", "[a](agent.md#lake)"),
        ("[a](../ARCHITECTURE.md)", "docs", "[a](architecture.md)"),
        ("see [a b](../tests/x.py), and", "docs", "see a b, and"),
        ("[a](CONTRIBUTING.md)", "", "a"),
        ("![a](pictures/x.svg)", "docs", "![a](pictures/x.svg)"),
        ("[a](https://example.org/../x) [b](#c)", "docs", "[a](https://example.org/../x) [b](#c)"),
    ],
)
def test_links_mean_on_the_site_what_they_mean_in_the_repository(
    markdown: str, folder: str, expected: str
) -> None:
    assert links.rewritten(markdown, folder) == expected


def test_a_cell_cannot_break_its_table() -> None:
    assert layout.table(("a", "b"), [("x|y", "z")]).splitlines()[2] == "| x\\|y | z |"
    assert layout.prose("one ``__other__``\n  more") == "one ``__other__`` more"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_csv_column_has_its_meaning(file: File) -> None:
    headings = parts(report_csv.text(), "##")
    assert rows(headings[f"{file.name}.csv"]) == [
        [f"`{column.name}`", column.means.replace("|", "\\|")] for column in file.columns
    ]


def test_every_csv_file_starts_with_the_common_columns() -> None:
    start = report_csv.text().split("\n## ")[0]
    assert [row[0] for row in rows(start)] == [f"`{column.name}`" for column in COMMON]


def test_every_key_of_a_report_has_its_place_once() -> None:
    page = report_json.text()
    headings = re.findall(r"(?m)^##+ (.+)$", page)
    assert len(headings) == len(set(headings))
    told = rows(parts(page, "###")["throttling.clients"].split("\n#")[0])
    assert ["`throttled_low_us`", "number", "lower bound of throttled_us"] in told
    assert "Keys as in `verdicts`." in parts(page, "###")["business_hours.verdicts"]
