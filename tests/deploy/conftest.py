from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from demo.jars import kafka_libs
from deploy import tools
from tests.deploy.bundles import ROOT, Bundle, built
from tests.deploy.machine import Machine, impossible

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def tool_python() -> str:
    """The Python that has what deploy/tools.txt names."""
    return str(tools.program("python"))


@pytest.fixture(scope="session")
def bundle() -> Bundle:
    """Tarball, .deb and .rpm of this checkout for this machine."""
    return built()


@pytest.fixture(scope="module")
def machine(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A host with a real systemd, without a network, and with what a broker host has.

    One for a module; its tests say what they need of it, and leave nothing that stands in the way.
    """
    reason = impossible()
    if reason is not None:
        pytest.skip(reason)
    seen = {
        "bundle": bundle.tarball.parent,
        "deploy": ROOT / "deploy",
        "java": ROOT / "tests/deploy/java",
        "libs": kafka_libs(),
        "tools": Path(tools.program("python")).parents[1],
    }
    with Machine(tmp_path_factory.mktemp("machine"), seen) as running:
        yield running
