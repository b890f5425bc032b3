"""For how long an agent waits for a store, unless the user says otherwise."""

from __future__ import annotations

import pytest

from collector.delivery.store import bounded, secrets
from collector.errors import ConfigError


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


@pytest.mark.parametrize(
    ("name", "value"),
    [("AWS_S3_LOCKING_PROVIDER", "dynamodb"), ("aws_copy_if_not_exists", "multipart"),
     ("AWS_S3_ALLOW_UNSAFE_RENAME", "true"), ("conditional_put", "disabled")],
)  # fmt: skip
def test_what_makes_commits_overwrite_one_another_is_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"lake.options_file: {name} lets agents overwrite"):
        bounded("s3://b/l", {name: value}, {})
    with pytest.raises(ConfigError, match="the environment: "):
        bounded("s3a://b/l", {}, {name.upper(): value})
    assert bounded("abfss://c@a/l", {}, {name.upper(): value})
    assert bounded("lake", {}, {name.upper(): value}) == {}


def test_what_leaves_commits_as_they_are_is_taken() -> None:
    safe = {"AWS_S3_ALLOW_UNSAFE_RENAME": "false", "aws_conditional_put": "etag"}
    assert bounded("s3://b/l", safe, {}).items() >= safe.items()


def test_a_secret_is_told_by_the_name_of_its_option_and_known_as_a_url_has_it() -> None:
    given = {
        "AWS_SECRET_ACCESS_KEY": "ab/cd+ef/gh==", "azure_storage_sas_token": "sv=1&sig=x",
        "aws_allow_http": "true", "AWS_REGION": "us-east-1", "aws_sse_bucket_key_enabled": "true",
        "aws_web_identity_token_file": "/run/token", "aws_endpoint": "http://127.0.0.1:9",
        "google_application_credentials": "/etc/gcp.json", "timeout": "20s",
    }  # fmt: skip
    environ = {"AWS_SESSION_TOKEN": "tok/en", "AWS_DEFAULT_REGION": "us-west-2", "API_KEY": "mine"}
    assert secrets(given, environ) == sorted(
        [
            "ab/cd+ef/gh==", "ab%2Fcd%2Bef%2Fgh%3D%3D", "sv=1&sig=x", "sv%3D1%26sig%3Dx",
            "tok/en", "tok%2Fen",
        ],
        key=len,
        reverse=True,
    )  # fmt: skip
