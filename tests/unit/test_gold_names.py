"""Names of gold: no engine needs quotes for one, and older names are told from these."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import duckdb
import pytest

from lakehouse.core import table_faults
from lakehouse.core.table_faults import is_older, older
from lakehouse.rollup.gold_tables import EVERY

if TYPE_CHECKING:
    from lakehouse.tables import Table


def words(text: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(text.split())


NAMES: Final = {
    name for table in EVERY for name in (table.name, *table.column_names)
}  # fmt: skip
"""Every name of a table and column of gold."""

# Words that no engine takes as a column without quotes. Spark's are asked for where Spark runs
# (tests/everywhere/test_gold_names.py).
TRINO: Final = words(
    "alter and as between by case cast constraint create cross cube current_catalog current_date "
    "current_path current_role current_schema current_time current_timestamp current_user "
    "deallocate delete describe distinct drop else end escape except execute exists extract false "
    "for from full group grouping having in inner insert intersect into is join json_array "
    "json_exists json_object json_query json_table json_value left like listagg localtime "
    "localtimestamp natural normalize not null on or order outer prepare recursive right rollup "
    "select skip table then trim true uescape union unnest using values when where with"
)
POSTGRES: Final = words(
    "all analyse analyze and any array as asc asymmetric authorization binary both case cast check "
    "collate collation column concurrently constraint create cross current_catalog current_date "
    "current_role current_schema current_time current_timestamp current_user default deferrable "
    "desc distinct do else end except false fetch for foreign freeze from full grant group having "
    "ilike in initially inner intersect into is isnull join lateral leading left like limit "
    "localtime localtimestamp natural not notnull null offset on only or order outer overlaps "
    "placing primary references returning right select session_user similar some symmetric "
    "system_user table tablesample then to trailing true union unique user using variadic verbose "
    "when where window with"
)
STANDARD: Final = words(
    "abs all allocate alter and any are array as asymmetric at atomic avg begin between bigint "
    "binary blob boolean both by call called cascaded case cast ceil char character check clob "
    "close coalesce collate column commit condition connect constraint contains convert corr "
    "corresponding count create cross cube current cursor cycle date day deallocate dec decimal "
    "declare default define delete describe deterministic disconnect distinct double drop dynamic "
    "each element else empty end equals escape every except exec execute exists exp external "
    "extract false fetch filter float floor for foreign free from full function fusion get global "
    "grant group grouping groups having hold hour identity in indicator initial inner inout insert "
    "int integer intersect intersection interval into is join lag language large last_value "
    "lateral lead leading left like ln local localtime localtimestamp lower match matches max "
    "member merge method min minute mod modifies module month multiset national natural new no "
    "none normalize not null nullif numeric of offset old omit on one only open or order out outer "
    "over overlaps overlay parameter partition pattern per percent percentile_cont period portion "
    "position power precedes precision prepare primary procedure range rank reads real recursive "
    "ref references referencing release result return returns revoke right rollback rollup row "
    "rows running savepoint scope scroll search second seek select sensitive session_user set show "
    "similar skip smallint some specific sql sqlexception sqlstate sqlwarning sqrt start static "
    "subset substring succeeds sum symmetric system system_user table tablesample then time "
    "timestamp to trailing translate treat trigger trim true truncate uescape union unique unknown "
    "unnest update upper user using value values varying versioning when whenever where width "
    "window with within without year"
)
TAKEN_BY_ALL: Final = {"date", "hour", "groups"}
"""Reserved in SQL:2016 alone: no engine reserves them."""


@pytest.mark.parametrize("reserved", [TRINO, POSTGRES], ids=["Trino", "PostgreSQL"])
def test_no_name_needs_quotes(reserved: frozenset[str]) -> None:
    assert not NAMES & reserved


def test_standard_reserves_three_names() -> None:
    assert NAMES & STANDARD == TAKEN_BY_ALL


def test_no_name_needs_quotes_in_duckdb() -> None:
    asked = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category IN ('{}', '{}')"
    found = duckdb.sql(asked.format("reserved", "type_function")).fetchall()
    assert not NAMES & {word for (word,) in found}


def test_names_are_plain() -> None:
    assert [name for name in NAMES if not re.fullmatch("[a-z][a-z0-9_]*", name)] == []


@pytest.mark.parametrize("table", EVERY, ids=lambda table: table.name)
def test_series_says_that_time_is_summed_over_series(table: Table) -> None:
    of_series = [one for one in table.columns if one.name.startswith("series_")]
    for one in of_series:
        assert re.search("microseconds|series_affected", one.comment), one.name
        assert re.search("-microseconds|summed over|of series_", one.comment), one.name


@pytest.mark.parametrize("table", EVERY, ids=lambda table: table.name)
def test_older_table_is_told_from_this_one(table: Table) -> None:
    assert not is_older(table, table.column_names)
    before = older(table)
    assert len({*before.column_names}) == len(before.columns), "two columns had one name"
    assert is_older(table, before.column_names) == (before.column_names != table.column_names)
    assert not is_older(before, before.column_names)


def test_changelog_lists_each_older_name() -> None:
    """Readers look their queries up there."""
    text = (Path(__file__).parents[2] / "CHANGELOG.md").read_text("utf-8")
    for names in (table_faults.OLDER_TABLES, table_faults.OLDER_COLUMNS):
        for new, old in names.items():
            assert re.search(rf"`{old}`[^|\n]*\|[^|\n]*`{new}`", text), f"{old} is {new} now"


def test_every_older_name_is_of_a_table() -> None:
    named = {name for table in EVERY for name in table.column_names}
    assert table_faults.OLDER_COLUMNS.keys() <= named
    assert table_faults.OLDER_TABLES.keys() <= {table.name for table in EVERY}
    assert {one.name for one in table_faults.UPGRADED} == {one.name for one in EVERY}
