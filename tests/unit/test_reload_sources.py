"""A reload that takes sources in and out, of an agent that reads several over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from collector.agent import plan
from collector.agent.reload import Discovery, Reload
from collector.config.loader import load
from collector.errors import ConfigError
from collector.model import Identity

if TYPE_CHECKING:
    from pathlib import Path

LAKE = {"lake": {"path": "/lake"}, "spool": {"path": "/spool.db"}}


def source(node: int, port: int = 8778, **more: Any) -> dict[str, Any]:
    return {"node": node, "jolokia": {"url": f"http://kafka-{node}:{port}/"}, **more}


class Stage:
    """A configuration file and the reload of its agent."""

    def __init__(self, path: Path, *sources: dict[str, Any], **sections: Any) -> None:
        self.path = path
        self.configure(*sources, **sections)
        config = load(path)
        catalogue, discovery = plan.catalogue(config), Discovery()
        found = discovery.found(config)
        scrapers = plan.scrapers(found)
        self.before = {task.read: task for task in plan.tasks(found, catalogue, scrapers)}
        self.reload = Reload(path, config, catalogue, scrapers, discovery)

    def configure(self, *sources: dict[str, Any], **sections: Any) -> None:
        self.path.write_text(yaml.safe_dump({**LAKE, "sources": list(sources), **sections}))


def test_unchanged_sources_keep_connections(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "agent.yaml", source(1), source(2), source(3))
    stage.configure(source(1), source(3, port=8779), source(4), source(5, role="controller"))
    made = stage.reload.plan()
    assert made.scope.sources == dict.fromkeys(("broker-1", "broker-3", "broker-4", "controller-5"))
    after = {task.read: task for task in made.tasks}
    read = ("broker-1", "min_isr")
    assert after[read].scraper is stage.before[read].scraper
    assert after["broker-3", "min_isr"].scraper is not stage.before["broker-3", "min_isr"].scraper
    assert ("controller-5", "controller") in after
    assert ("controller-5", "min_isr") not in after
    changed = plan.changes(stage.before, after)
    assert {name.split()[0] for name in changed["removed"]} == {"broker-2"}
    assert {name.split()[0] for name in changed["added"]} == {"broker-4", "controller-5"}
    assert "broker-3 jmx" in changed["sources"]
    assert not any("broker-1" in name for names in changed.values() for name in names)


@pytest.mark.parametrize(
    ("sources", "sections", "key"),
    [
        ([source(1, cluster="c"), source(2)], {}, "source.cluster"),
        ([source(1), source(2)], {"window": "1h"}, "window"),
        ([source(1), {"node": 2, "jmx": {"port": 1}}], {}, "source.jmx.timeout"),
    ],
)
def test_restart_only_keys_are_refused_for_each_source(
    sources: list[dict[str, Any]], sections: dict[str, Any], key: str, tmp_path: Path
) -> None:
    stage = Stage(tmp_path / "agent.yaml", source(1), source(2))
    stage.configure(*sources, **sections)
    with pytest.raises(ConfigError, match=f"{key}: a change requires a restart of the agent"):
        stage.reload.plan()


def test_discovered_sources_are_new_plan_until_adopted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fake returns the node of an address."""

    class FakeProcess:
        def identify(self) -> Identity:
            return Identity("c", "7", None, 1)

        def close(self) -> None:
            return

    auto = {"node": "auto", "jolokia": {"url": "http://kafka-7:8778/"}}
    stage = Stage(tmp_path / "agent.yaml", source(1), auto)
    reload = stage.reload
    assert reload.is_open
    assert reload.found() is None
    with monkeypatch.context() as patch:
        patch.setattr(plan, "open_transport", lambda _: FakeProcess())
        assert reload.look() == {}
        made = reload.found()
        assert reload.found() is None
    assert made is not None
    plan_ = made()
    reload.look()
    assert reload.found() is not None, "it is not in force yet"
    made()
    reload.adopted()
    assert plan_.scope.sources == dict.fromkeys(("broker-1", "broker-7"))
    after = {task.read: task for task in plan_.tasks}
    assert after["broker-1", "min_isr"] == stage.before["broker-1", "min_isr"]
    reload.look()
    assert reload.found() is None
