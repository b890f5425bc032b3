"""KIP-1002 on real brokers: all indexes of a segment are one request to the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.seeds.index_requests import own_store

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.kafka, pytest.mark.nightly]


def test_five_requests_for_the_indexes_of_a_segment_become_one(tmp_path: Path) -> None:
    assert own_store(tmp_path / "own-store") == {
        "index_requests_per_segment": 5,
        "index_requests_before_vs_after": 5,
        "index_requests_aiven_interface_own_store_before_vs_after": 5,
        "index_requests_miscounted": 0,
    }
