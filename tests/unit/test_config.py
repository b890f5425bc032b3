"""The configuration: what is wrong is said by key, and a typing slip gets a suggestion."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from collector import config
from collector.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

MINIMAL: dict[str, Any] = {
    "source": {"node": 1, "jmx": {"port": 9999}},
    "lake": {"path": "/lake"},
    "spool": {"path": "/spool/spool.db"},
}


def test_a_minimal_file_has_good_defaults() -> None:
    parsed = config.parse(MINIMAL, "agent.yaml")
    assert parsed.source.name == "broker-1"
    assert parsed.window.us == 300_000_000
    assert parsed.spool.max_size.bytes == 1 << 30


def test_the_reference_file_shows_the_defaults() -> None:
    reference = config.load(Path(__file__).parents[2] / "deploy" / "agent.yaml")
    bare = copy.deepcopy(MINIMAL)
    bare["lake"]["path"] = reference.lake.path
    bare["spool"]["path"] = str(reference.spool.path)
    assert reference == config.parse(bare, "agent.yaml")


def test_the_reference_file_names_every_key() -> None:
    text = (Path(__file__).parents[2] / "deploy" / "agent.yaml").read_text()
    for key in config.known_keys():
        assert re.search(rf"\b{key}:", text), key


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(sourc=1), "top level: unknown key 'sourc'; did you mean 'source'?"),
        (lambda c: c["source"]["jmx"].update(prot=1),
         "source.jmx: unknown key 'prot'; "
         "did you mean 'port'?"),
        (lambda c: c.update(window="7s"), "window: must divide 5m or be a multiple of it"),
        (lambda c: c.update(window=300), "window: expected text with a unit, got 300"),
        (lambda c: c["source"].update(node="one"), "source: node id 'one' is no number"),
        (lambda c: c["source"].pop("jmx"), "source: give either jmx or attach"),
        (lambda c: c.pop("lake"), "top level: Object missing required field `lake`"),
        (lambda c: c["lake"].update(commit_interval="soon"),
         "lake.commit_interval: "
         "expected a duration such as 10s or 5m, got 'soon'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line_that_names_the_key(
    change: Callable[[dict[str, Any]], object], message: str
) -> None:
    broken = copy.deepcopy(MINIMAL)
    change(broken)
    with pytest.raises(ConfigError) as caught:
        config.parse(broken, "agent.yaml")
    assert str(caught.value) == f"agent.yaml: {message}"


def test_a_file_that_cannot_be_read_or_parsed_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file or directory; give --config"):
        config.load(tmp_path / "missing.yaml")
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [")
    with pytest.raises(ConfigError, match="not YAML") as caught:
        config.load(broken)
    assert "\n" not in str(caught.value)


def test_storage_options_never_show_in_an_error(tmp_path: Path) -> None:
    secrets = tmp_path / "options.yaml"
    secrets.write_text("AWS_SECRET_ACCESS_KEY: {nested: hunter2}\n")
    with pytest.raises(ConfigError) as caught:
        config.storage_options(config.Lake("/lake", options_file=secrets))
    assert "hunter2" not in str(caught.value)
    secrets.write_text("AWS_SECRET_ACCESS_KEY: hunter2\n")
    assert config.storage_options(config.Lake("/lake", options_file=secrets)) == {
        "AWS_SECRET_ACCESS_KEY": "hunter2"
    }
