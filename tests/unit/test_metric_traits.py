"""The traits of metrics: catalogue, shipped table, and what a lake's catalogues state together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from deltalake import write_deltalake

from collector import catalogue
from collector.delivery import arrow
from collector.errors import ConfigError
from docs.tools import definitions
from lakehouse import tables
from lakehouse.core import lake as lakes, metrics
from lakehouse.core.metrics import Definition, Trait, Traits, meanings_of, shipped_meanings
from lakehouse.engines.gold_reader import meanings
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.tables.agent_names import role_of
from tests.lake_builder import Batch, made
from tests.oracle import meaning

if TYPE_CHECKING:
    from pathlib import Path

_BOUNDS = """\
family: mine
via: jmx
roles: [client]
defaults: {{object: "a:type=B,group=*", labels: {{group: group}}, unit: s, description: x}}
metrics:
  mine.least: {{attribute: Low, bound: {{of: mine.age, side: low}}}}
  mine.most: {{attribute: High, bound: {{of: {of}, side: {side}}}{more}}}
{further}"""


def test_shipped_traits_are_those_of_the_catalogue() -> None:
    assert definitions.TRAITS.read_text("utf-8") == definitions.traits(), "make definitions"


def test_traits_of_the_catalogue_are_those_of_the_oracle() -> None:
    """Two lists by hand, one in the catalogue and one in the oracle."""
    traits = meaning.LAKE.traits
    named = {
        name: {metric for metric, one in traits.items() if getattr(one, name)}
        for name in ("describes", "is_position", "by_replicas", "by_controllers", "bound_of")
    }
    assert named == {
        "describes": set(meaning.DESCRIBES),
        "is_position": meaning.POSITIONS,
        "by_replicas": meaning.OF_REPLICAS,
        "by_controllers": meaning.OF_CONTROLLERS,
        "bound_of": set(meaning.BOUNDS),
    }
    assert {name: traits[name].describes for name in meaning.DESCRIBES} == meaning.DESCRIBES
    assert {name: traits[name][2:4] for name in meaning.BOUNDS} == meaning.BOUNDS


def test_shipped_metrics_on_partitions_are_of_their_leaders() -> None:
    assert metrics.is_of_partitions(metrics.UNDER_MIN_ISR)
    assert metrics.is_of_partitions(metrics.UNAVAILABLE)
    assert not metrics.is_of_partitions("kafka.log.size")
    assert not metrics.is_of_partitions("kafka.topic.remote_copy_lag.bytes")
    assert not metrics.is_of_partitions("my.own.bean")


def test_trait_of_one_catalogue_is_a_trait_of_the_metric() -> None:
    """Catalogues of one lake differ after a change of the user's files."""
    rows = [
        Trait("a.b", "new", "position", "true"),
        Trait("a.c", "one", "describes", "topic"),
        Trait("a.c", "two", "describes", "node"),
        Trait("a.d", "new", "of_a_newer_version", "x"),
    ]
    defined = [Definition("a.b", "old", "idle"), Definition("a.b", "new", "idle")]
    for order in (rows, rows[::-1]):
        found = meanings_of(defined, order)
        assert found.traits_of("a.b") == Traits(is_position=True)
        assert found.traits_of("a.c").describes == "node"
        assert found.traits_of("a.d") == found.traits_of("a.e") == Traits()
        assert found.families_of("a.b") == {"old", "new"}


def test_bounds_are_found_from_the_value_and_back() -> None:
    found = meanings_of([Definition("a.most", "mine", "idle")], meaning.OWN)
    assert found.bound("my.group.age", "high") == "my.group.most"
    assert (found.value_of("my.group.most"), found.value_of("a.most")) == ("my.group.age", "a.most")
    assert found.bound("a.most", "low") == ""
    assert shipped_meanings().families_of("kafka.group.time_lag") == {"offsets"}


def test_lake_without_the_table_has_the_shipped_traits(tmp_path: Path) -> None:
    Batch().commit(tmp_path)
    assert meanings(LocalEngine(lakes.at(str(tmp_path)))).traits == shipped_meanings().traits


def test_lake_has_the_traits_of_its_agents(tmp_path: Path) -> None:
    Batch().commit(tmp_path)
    rows = [("c", "my.log.place", "mine", "position", "true", "agent-1")]
    table = tables.METRIC_TRAITS
    write_deltalake(made(tmp_path, table), arrow.to_arrow(table, rows), mode="append")
    found = meanings(LocalEngine(lakes.at(str(tmp_path)))).traits
    assert found == shipped_meanings().traits | {"my.log.place": Traits(is_position=True)}


def test_own_bounds_are_traits_of_a_catalogue(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(_bounds())
    loaded = catalogue.load(tmp_path)
    own = {row for row in loaded.traits() if row[2] == "mine"}
    assert own == {
        (loaded.hash, "mine.least", "mine", "low_of", "mine.age"),
        (loaded.hash, "mine.most", "mine", "high_of", "mine.age"),
    }


def _bounds(of: str = "mine.age", side: str = "high", more: str = "", further: str = "") -> str:
    return _BOUNDS.format(of=of, side=side, more=more, further=further)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (_bounds(side="low"), "mine.age needs one bound of side low and one of side high"),
        (_bounds(of="mine.years"), "mine.age needs one bound of side low and one of side high"),
        (_bounds(more=", unit: ms"), "kind, unit or labels differ from mine.most"),
        (_bounds(further="  mine.age: {attribute: Age}"), "mine.age is also a metric"),
        (
            _bounds().replace("mine.age", "kafka.group.time_lag"),
            "metric kafka.group.time_lag is in family",
        ),
    ],
)
def test_bounds_that_are_no_pair_are_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(ConfigError) as refused:
        catalogue.load(tmp_path)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("source", "role"), [("broker-1", "broker"), ("client-a-b", "client"), ("x", "x"), (None, "")]
)
def test_role_of_a_source_is_in_its_name(source: str | None, role: str) -> None:
    assert role_of(source) == role
