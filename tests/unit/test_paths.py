"""Paths that a Delta log or a user may give, and those that are refused."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from collector.config.loader import parse
from collector.errors import ConfigError
from lakehouse.core import delta_rs, lake as lakes
from lakehouse.errors import LakeNotFoundError
from lakehouse.tables import delta_log
from tests.log_paths import HOSTILE

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("path", [*HOSTILE, "", "/", ".", "a//b", "a/", "_delta_log/x.json"])
def test_hostile_log_path_is_refused_in_one_line(path: str) -> None:
    with pytest.raises(delta_log.PathError) as refused:
        delta_log.below_table(path)
    assert "\n" not in str(refused.value)
    assert "not a file below the table" in str(refused.value)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("date=2026-11-28/part-0.snappy.parquet", "date=2026-11-28/part-0.snappy.parquet"),
        ("catalogue=a%253Ab/p.parquet", "catalogue=a%3Ab/p.parquet"),
        ("a%20b/%C3%BC.parquet", "a b/ü.parquet"),
        ("..a/b..c/d../x", "..a/b..c/d../x"),
        ("_change_data/cdc-0.parquet", "_change_data/cdc-0.parquet"),
        ("100%/x", "100%/x"),
        ("a*b?[c].parquet", "a*b?[c].parquet"),
    ],
)
def test_path_below_table_is_decoded_once(path: str, name: str) -> None:
    assert delta_log.below_table(path) == name


@pytest.fixture
def table(tmp_path: Path) -> Path:
    table = tmp_path / "table"
    (table / "date=1").mkdir(parents=True)
    (table / "date=1" / "a.parquet").write_bytes(b"rows")
    return table


def check(table: Path) -> None:
    delta_log.check_table(f"file://{table}/", ["date=1/a.parquet"])


def test_link_out_of_table_is_refused(table: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for name in ("date=2", "date=1/b.parquet"):
        (table / name).symlink_to(other)
        with pytest.raises(delta_log.PathError, match="symbolic link"):
            check(table)
        (table / name).unlink()
    check(table)


def test_linked_table_and_links_within_it_are_accepted(table: Path, tmp_path: Path) -> None:
    (table / "date=2").symlink_to(table / "date=1")
    (tmp_path / "linked").symlink_to(table)
    check(tmp_path / "linked")


def test_pipe_in_table_is_refused(table: Path) -> None:
    os.mkfifo(table / "date=1" / "b.parquet")
    with pytest.raises(delta_log.PathError, match="neither a file nor a folder"):
        check(table)


UNUSABLE = (
    "l#1", "l?1", "a%20b", "p%41", "%2e%2e", "a%2Fb", "b\\s", "[x]", "a|b", "^", "new\nline",
    "\x7f",
)  # fmt: skip
USABLE = ("100%", "sp ace", "q'\"`", "b{r}", "st*r", "~", "$HOME", "-lead", "ü", "a:b", "😀", "%zz")


@pytest.mark.parametrize("name", UNUSABLE)
def test_folder_that_delta_rs_cannot_open_is_refused(name: str, tmp_path: Path) -> None:
    place = str(tmp_path / name)
    for use in (delta_log.check_lake, agent):
        with pytest.raises((delta_log.PathError, ConfigError), match="Rename"):
            use(place)
    for open_ in (lakes.at, lambda one: delta_rs.locate(one, None)):
        with pytest.raises(LakeNotFoundError, match="Rename"):
            open_(place)


def agent(place: str) -> None:
    """What once, run, check and import do first."""
    raw = {"source": {"node": 1, "jmx": {"port": 9}}, "lake": {"path": place}}
    parse({**raw, "spool": {"path": "spool.db"}}, "agent.yaml")


@pytest.mark.parametrize("name", USABLE)
def test_usable_folder_is_accepted(name: str, tmp_path: Path) -> None:
    agent(str(tmp_path / name))
    delta_log.check_lake(str(tmp_path / name))


def test_non_utf8_folder_is_refused() -> None:
    with pytest.raises(delta_log.PathError, match="not UTF-8"):
        delta_log.check_lake("/lakes/\udcff")


@pytest.mark.parametrize("url", ["s3://KEY:s3cret@b/l", "s3://KEY:s3/cret@b/l", "s3://:s3cret@b"])
def test_url_with_a_password_is_refused_and_hidden(url: str) -> None:
    for use in (delta_log.check_lake, agent):
        with pytest.raises((delta_log.PathError, ConfigError), match="contains a password") as said:
            use(url)
        assert "cret" not in str(said.value)


@pytest.mark.parametrize("url", ["abfss://c@a.dfs.core.windows.net/p:q@r", "file:///a:b@c"])
def test_url_without_a_password_is_accepted(url: str) -> None:
    delta_log.check_lake(url)


@pytest.mark.parametrize("url", ["s3://b/l#1", "gs://b/l?versionId=1", "file:///lake#1"])
def test_url_with_query_or_fragment_is_refused(url: str) -> None:
    for use in (delta_log.check_lake, agent):
        with pytest.raises((delta_log.PathError, ConfigError), match="Percent-encode"):
            use(url)


@pytest.mark.parametrize("url", ["s3://b/a%20b", "s3://b/a b", "s3://b/100%25", "file:///lake"])
def test_url_is_accepted_as_it_is(url: str) -> None:
    delta_log.check_lake(url)
    assert lakes.at(url).root == url


def test_relative_folder_like_url_is_refused() -> None:
    with pytest.raises(delta_log.PathError, match=r"Write '\./s3:x'"):
        delta_log.check_lake("s3:x")
