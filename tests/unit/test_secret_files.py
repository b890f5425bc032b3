"""Secrets in files that others can read: refused for everybody, said for another group."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from collector.config import loader
from collector.config.loader import warnings
from collector.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody can look into, as /etc is; pytest's own is for its owner alone."""
    import tempfile  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="jmxlake-") as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


def settings(**lake_and_source: Any) -> dict[str, Any]:
    return {
        "source": {"node": 1, "jmx": {"port": 1, **lake_and_source.get("jmx", {})}},
        "lake": {"path": "/lake", **lake_and_source.get("lake", {})},
        "spool": {"path": "/spool/spool.db"},
        **({"admin": lake_and_source["admin"]} if "admin" in lake_and_source else {}),
    }


def secret(folder: Path, mode: int, text: str = "hunter2\n") -> str:
    path = folder / "secret"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize(
    ("section", "key"),
    [("jmx", "password_file"), ("lake", "options_file"), ("admin", "properties_file")],
)
def test_what_every_user_can_read_is_refused_by_its_key(
    folder: Path, section: str, key: str
) -> None:
    path = secret(folder, 0o644, "ssl.keystore.password=hunter2\n")
    above = {"bootstrap": "a:1", "libs": "/libs"} if section == "admin" else {}
    raw = settings(**{section: {**above, key: path}})
    with pytest.raises(ConfigError) as caught:
        loader.parse(raw, "agent.yaml")
    place = "source.jmx" if section == "jmx" else section
    assert str(caught.value) == (
        f"agent.yaml: {place}.{key}: every user of this host can read {path}; chmod 0400 it"
    )
    (folder / "secret").chmod(0o600)
    loader.parse(raw, "agent.yaml")


def test_a_closed_folder_keeps_everybody_out(folder: Path) -> None:
    raw = settings(jmx={"password_file": secret(folder, 0o644)})
    folder.chmod(0o750)
    loader.parse(raw, "agent.yaml")


def test_a_file_that_is_not_there_is_said_by_who_needs_it(folder: Path) -> None:
    loader.parse(settings(jmx={"password_file": str(folder / "none")}), "agent.yaml")


def test_properties_that_only_name_where_secrets_are_may_be_read(folder: Path) -> None:
    path = secret(folder, 0o644, "ssl.keystore.key=${dir:/etc/kafka:user.key}\n")
    admin = {"bootstrap": "a:1", "libs": "/libs", "properties_file": path}
    loader.parse(settings(admin=admin), "agent.yaml")


def test_another_group_that_can_read_is_a_warning(folder: Path) -> None:
    raw = settings(jmx={"password_file": secret(folder, 0o640)})
    assert warnings(loader.parse(raw, "agent.yaml")) == []
    if os.geteuid() == 0:
        os.chown(folder / "secret", 0, os.getegid() + 1)
        (line,) = warnings(loader.parse(raw, "agent.yaml"))
        assert line.startswith("source.jmx.password_file: the group ")
