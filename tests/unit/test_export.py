"""Exports as text: what a parser reads back is what gold said, and nothing else."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from hypothesis import given, strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from lakehouse import tables
from lakehouse.cli.main import main
from lakehouse.core.periods import Period, micros
from lakehouse.errors import LakehouseError
from lakehouse.ops import export
from lakehouse.ops.export import selected

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

WINDOW = dt.datetime(2026, 11, 16, 10, tzinfo=dt.UTC)
END = int(WINDOW.timestamp()) + 300
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="␀"), max_size=8)


def rows_of(table: tables.Table, *rows: dict[str, Any]) -> Any:
    """What a table with these rows is read as: figure by figure, sorted, null left out."""
    usual = {"cluster": "c", table.start: WINDOW}

    def read(columns: tuple[str, ...], figure: str) -> Iterable[dict[str, Any]]:
        assert set(columns) <= set(table.column_names)
        whole = [{**dict.fromkeys(columns), **usual, **row} for row in rows]
        told = [row for row in whole if row[figure] is not None]
        return sorted(told, key=lambda row: [(row[one] is None, row[one]) for one in columns[:-1]])

    return read


def samples(text: str) -> dict[tuple[str, str], tuple[float, float]]:
    """Value and instant by name and labels; the parser refuses what is no OpenMetrics."""
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.type == "gauge"
        for one in family.samples:
            key = (one.name, json.dumps(one.labels))
            assert key not in found or found[key][1] != one.timestamp, "twice at one instant"
            found[key] = (one.value, float(one.timestamp))
    return found


def told(table: tables.Table, *rows: dict[str, Any], seconds: int = 300) -> str:
    return "".join(export.openmetrics_lines(table, seconds, rows_of(table, *rows)))


ISR = {"metric": "kafka.partition.under_min_isr", "topic": "t"}


def test_a_figure_is_a_family_and_bears_the_end_of_its_window() -> None:
    text = told(tables.TOPICS, {**ISR, "value_mean": 0.25, "affected_us": 90_500_000})
    assert text == (
        "# TYPE topic:kafka_partition_under_min_isr:value_mean gauge\n"
        "# HELP topic:kafka_partition_under_min_isr:value_mean kafka.partition.under_min_isr: "
        "value_seconds per observed series-second\n"
        f'topic:kafka_partition_under_min_isr:value_mean{{cluster="c",topic="t"}} 0.25 {END}\n'
        "# TYPE topic:kafka_partition_under_min_isr:affected_seconds gauge\n"
        "# HELP topic:kafka_partition_under_min_isr:affected_seconds "
        "kafka.partition.under_min_isr: "
        "seconds of wall time in which at least one series was above 0\n"
        "topic:kafka_partition_under_min_isr:affected_seconds"
        f'{{cluster="c",topic="t"}} 90.5 {END}\n'
        "# EOF\n"
    )
    assert len(samples(text)) == 2


def test_what_is_unknown_is_not_there_and_zero_is() -> None:
    text = told(
        tables.TOPICS,
        {**ISR, "value_mean": None, "value_max": math.nan, "value_min": 0.0, "known_wrong": False},
    )
    found = {name.rpartition(":")[2]: value for (name, _), (value, _) in samples(text).items()}
    assert found == {"value_min": 0.0, "known_wrong": 0.0}


def test_without_rows_there_is_no_text_at_all() -> None:
    assert told(tables.TOPICS) == ""
    assert told(tables.TOPICS, {**ISR}) == "", "not one figure is known"


@pytest.mark.parametrize("seconds", [30, 300, 3600])
def test_a_sample_bears_the_end_of_a_window_of_any_length(seconds: int) -> None:
    ((_, at),) = samples(told(tables.TOPICS, {**ISR, "value_mean": 1.0}, seconds=seconds)).values()
    assert at == WINDOW.timestamp() + seconds


@pytest.mark.parametrize("table", [one for one in tables.GOLD if one.name in export.OPENMETRICS])
def test_every_column_is_a_label_a_figure_or_says_when(table: tables.Table) -> None:
    figures = {one.name: one.type for one in table.measures}
    assert {*figures.values()} <= {"bigint", "double", "boolean"}, "each is a number"
    assert {*table.column_names} == {"date", table.start, *table.keys, *figures}
    _, name = export.OPENMETRICS[table.name]
    assert bool(name) == ("metric" not in table.keys)


def test_of_the_tables_that_have_no_form_each_has_a_reason() -> None:
    """sla states a period more than once; the others hold no numbers at instants."""
    without = {one.name for one in tables.GOLD} - export.OPENMETRICS.keys()
    others = {"incidents", "readings", "lags", "subjects", "rejected", "progress"}
    assert without >= {"sla", "distributions", *others}, "a table may come"


def test_a_client_without_an_id_and_one_whose_id_is_empty_are_two() -> None:
    rows = [{"user_name": "u"}, {"user_name": "u", "client_id": ""}, {"client_id": ""}]
    text = told(tables.CLIENTS, *({"metric": "a.b", "value_max": 1.0, **row} for row in rows))
    found = [json.loads(labels) for _, labels in samples(text)]
    # Prometheus leaves out a label that is empty.
    stored = [{name: value for name, value in one.items() if value} for one in found]
    assert stored == [
        {"cluster": "c", "user_name": "u", "subject": "user_name,client_id"},
        {"cluster": "c", "user_name": "u", "subject": "user_name"},
        {"cluster": "c", "subject": "client_id"},
    ]


def test_two_metrics_of_one_name_are_refused_with_both() -> None:
    rows = [{"metric": one, "topic": "t", "value_mean": 1.0} for one in ("a.b.c", "a.b_c")]
    with pytest.raises(LakehouseError, match=r"a\.b_c and a\.b\.c have the same Prometheus name"):
        told(tables.TOPICS, *rows)


@given(
    st.lists(
        st.tuples(TEXTS, TEXTS, st.integers(0, 3), st.floats(allow_nan=False)),
        unique_by=lambda row: row[:3],
    )
)
def test_whatever_names_hold_a_parser_reads_them_back(rows: list[tuple[Any, ...]]) -> None:
    told_rows = [
        {
            "metric": "a.b", "cluster": cluster, "topic": topic, "value_mean": value,
            tables.TOPICS.start: WINDOW + dt.timedelta(seconds=300 * number),
        }
        for cluster, topic, number, value in rows
    ]  # fmt: skip
    text = told(tables.TOPICS, *told_rows)
    found = {}
    for family in text_string_to_metric_families(text) if text else ():
        for one in family.samples:
            key = (one.labels["cluster"], one.labels["topic"], float(one.timestamp))
            found[key] = one.value
    assert found == {
        (cluster.replace("\0", "␀"), topic.replace("\0", "␀"), END + 300.0 * number): value
        for cluster, topic, number, value in rows
    }


def test_odd_metrics_of_a_lake_that_is_not_ours_break_no_line() -> None:
    text = told(tables.TOPICS, {"metric": 'a.b{x="1"} 1\n# EOF', "topic": "t", "value_mean": 1.0})
    ((name, _),) = samples(text)
    assert name == "topic:a_b_x__1___1___EOF:value_mean"


def cells(*rows: dict[str, Any]) -> str:
    return "".join(export.csv_lines(list(rows[0]), rows))


def test_csv_tells_nothing_from_an_empty_text() -> None:
    text = cells({"a": None, "b": "", "c": 'x"\n,', "d": 1.5, "e": True, "f": WINDOW, "g": 7})
    assert text == '"a","b","c","d","e","f","g"\n,"","x""\n,",1.5,true,2026-11-16T10:00:00Z,7\n'


@given(st.lists(TEXTS, min_size=1))
def test_csv_is_read_back(texts: list[str]) -> None:
    text = cells({str(number): one for number, one in enumerate(texts)})
    _, row = csv.reader(io.StringIO(text, newline=""))
    assert row == texts


def test_csv_of_a_date_is_one() -> None:
    assert cells({"d": WINDOW.date()}) == '"d"\n2026-11-16\n'


def test_csv_of_a_map_is_json_in_a_cell() -> None:
    (_, row) = csv.reader(io.StringIO(cells({"m": [("min.insync", 2.0)], "n": 1})))
    assert json.loads(row[0]) == {"min.insync": 2.0}


def test_csv_of_no_rows_is_nothing() -> None:
    assert "".join(export.csv_lines(["a"], [])) == ""


def test_a_selection_asks_for_what_was_asked_for() -> None:
    period = Period(WINDOW, WINDOW + dt.timedelta(hours=1))
    sql = selected(tables.TOPICS, period, ("a.b",), ["metric", "hour", "value_mean"])
    assert sql.startswith('SELECT "metric", "hour", "value_mean" FROM lake_table WHERE metric IN (')
    assert "metric IN ('a.b') AND" in sql
    assert f"arrow_cast({micros(WINDOW)}, 'Timestamp(Microsecond" in sql
    assert sql.endswith('ORDER BY "metric", "hour"')
    bare = selected(tables.SUBJECTS, None, (), ["kind", 'o"dd'], "kind")
    assert bare == 'SELECT "kind", "o""dd" FROM lake_table WHERE "kind" IS NOT NULL ORDER BY "kind"'


def failing() -> Iterator[str]:
    yield "half"
    raise LakehouseError("the store is away")


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    with pytest.raises(LakehouseError, match="away"):
        export.write_lines(failing(), file, "nothing")
    with pytest.raises(LakehouseError, match="nothing"):
        export.write_lines([], file, "nothing")
    assert list(tmp_path.iterdir()) == []
    file.write_text("before")
    assert export.write_lines(["é\n", "b\n"], file, "nothing") == 2
    assert file.read_bytes() == "é\nb\n".encode()
    assert list(tmp_path.iterdir()) == [file]


def test_where_nothing_can_be_written_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(LakehouseError, match="Choose a writable file"):
        export.write_lines(["x"], tmp_path / "no" / "x.csv", "nothing")


@pytest.mark.parametrize(("command", "page"), [("doctor", "operations"), ("export", "views")])
def test_every_option_has_help_and_is_in_its_page(command: str, page: str) -> None:
    docs = (Path(__file__).parents[2] / "docs" / f"{page}.md").read_text("utf-8")
    made = main.get_command(click.Context(main), command)
    assert made is not None
    assert made.help
    for one in made.params:
        if isinstance(one, click.Option):
            assert one.help, one.name
            assert all(f"`{name}" in docs for name in one.opts if name.startswith("--")), one.name
    for name in export.OPENMETRICS if command == "export" else ():
        assert f"`{name.removesuffix('_windows')}`" in docs
