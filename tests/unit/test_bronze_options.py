"""For how long an agent waits for a store, unless the user says otherwise."""

from __future__ import annotations

import pytest

from collector.bronze_options import bounded


@pytest.mark.parametrize("lake", ["/var/lib/lake", "lake", "file:///var/lib/lake"])
def test_a_folder_needs_no_bounds(lake: str) -> None:
    assert bounded(lake, {"a": "b"}) == {"a": "b"}


@pytest.mark.parametrize("lake", ["s3://b/l", "abfss://c@a.dfs.core.windows.net/l", "gs://b/l"])
def test_a_store_has_bounds(lake: str) -> None:
    found = bounded(lake, {})
    assert set(found) == {"timeout", "connect_timeout", "max_retries", "retry_timeout"}


@pytest.mark.parametrize(
    "name", ["timeout", "TIMEOUT", "aws_timeout", "AWS_TIMEOUT", "azure_timeout", "google_timeout"]
)
def test_the_user_goes_before_however_it_is_spelled(name: str) -> None:
    """delta-rs would take either of two spellings of one option, and not say which."""
    found = bounded("s3://b/l", {name: "60s"})
    assert {key: value for key, value in found.items() if key.lower().endswith("timeout")} == {
        name: "60s",
        "connect_timeout": "5s",
        "retry_timeout": "15s",
    }
