from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from demo.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One controller and three brokers for all modules; who kills a node brings it back."""
    with Cluster.start(tmp_path_factory.mktemp("kafka") / "cluster") as running:
        yield running
