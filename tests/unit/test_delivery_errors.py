"""Errors of an unusable lake: one stable line with a fix and without secrets."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from collector.delivery.bronze_table import BronzeTable
from collector.delivery.store import explain, scrubbed, secrets
from collector.errors import LakeError
from demo.ports import free_ports
from lakehouse import tables
from tests.rig.s3.proxy import FaultyProxy
from tests.rig.s3.rules import Answer, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
KEY_ID = "AKIAIOSFODNN7EXAMPLE"


def options(endpoint: str) -> dict[str, str]:
    return {
        "aws_endpoint": endpoint, "aws_region": "us-east-1", "aws_allow_http": "true",
        "aws_access_key_id": KEY_ID, "aws_secret_access_key": SECRET,
        "max_retries": "0", "timeout": "1s",
    }  # fmt: skip


def said_of(lake: str, given: dict[str, str]) -> str:
    with pytest.raises(LakeError) as caught:
        BronzeTable(lake, tables.RUNS, lambda: given).load()
    return str(caught.value)


@pytest.fixture(scope="module")
def store() -> Iterator[FaultyProxy]:
    """A fake store with responses that a real store cannot be made to return."""
    with FaultyProxy("http://127.0.0.1:9") as proxy:
        yield proxy


@pytest.mark.parametrize(
    ("status", "code", "advice"),
    [
        (
            404,
            "NoSuchBucket",
            "the bucket or container does not exist; create it or correct lake.path",
        ),
        (400, "ExpiredToken", "rejected the credentials, because they are wrong, expired"),
        (403, "InvalidAccessKeyId", "rejected the credentials, because they"),
        (403, "SignatureDoesNotMatch", "rejected the credentials, because they"),
        (403, "RequestTimeTooSkewed", "clock differs too much"),
        (403, "AccessDenied", "access is forbidden; grant the agent list, get and put"),
        (401, "Unauthorized", "rejected the credentials, because they"),
        (301, "PermanentRedirect", "the bucket is in another region; set AWS_REGION"),
        (400, "AuthorizationHeaderMalformed", "the bucket is in another region"),
        (503, "SlowDown", "limits requests or has an internal error"),
        (500, "InternalError", "limits requests or has an internal error"),
    ],
)
def test_refusal_of_a_store_has_a_fix(
    store: FaultyProxy, status: int, code: str, advice: str
) -> None:
    store.clear()
    store.plan(Rule(forward=False, answer=Answer(status, code), times=None))
    said = said_of("s3://bucket/lake", options(store.endpoint))
    assert said.startswith("lake table s3://bucket/lake/bronze/runs: ")
    assert advice in said
    assert status == 301 or code in said  # delta-rs does not show the body of a redirect
    assert "\n" not in said
    assert len(said) < 250
    assert said_of("s3://bucket/lake", options(store.endpoint)) == said, "the log contains it once"


def test_missing_or_silent_store() -> None:
    nobody = f"http://127.0.0.1:{free_ports(1)[0]}"
    assert "the store cannot be reached; check the endpoint" in said_of("s3://b/l", options(nobody))
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert "did not respond in time" in said_of("s3://b/l", options(endpoint))


def test_invalid_lake_path() -> None:
    assert "does not support this URL" in said_of("ftp://b/l", {})
    assert "abfss://CONTAINER@ACCOUNT" in said_of("abfss://container/l", {})
    plain = options("http://127.0.0.1:9")
    del plain["aws_allow_http"]
    assert "AWS_ALLOW_HTTP" in said_of("s3://b/l", plain)


def test_local_faults(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    assert "the path or its parent is not a folder" in said_of(str(tmp_path / "file"), {})
    if os.path.ismount("/sys"):
        said = said_of("/sys/lake", {})
        assert "cannot be written: " in said
        assert "PermissionDenied" in said or "Read-only file system" in said
    log = tmp_path / "bronze/runs/_delta_log"
    log.mkdir(parents=True)
    (log / "00000000000000000000.json").write_text("garbage\n")
    assert "version 0 of its log is damaged: 000000000" in said_of(str(tmp_path), {})


# Texts of delta-rs 1.6.6 that need a full disk, a backtrace or another process.
_FULL = (
    "Generic LocalFileSystem error\n          \x1b[31m\u21b3\x1b[0m Unable to copy data to file\n"
    "           \x1b[31m\u21b3\x1b[0m No space left on device (os error 28)\n"
)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (_FULL, "No space left on device; free disk space"),
        ("Read-only file system (os error 30)", "cannot be written: Read-only file system"),
        ("Permission denied (os error 13)", "correct its owner"),
        (
            "error sending request: client error (Connect): dns error",
            "the store cannot be reached; check",
        ),
        ("Unsupported table features required: [ClusteredTable]", "[ClusteredTable]): another"),
        ("Failed to commit transaction: 100", "raise lake.commit_interval"),
        ("Failed to commit transaction: Concurrent transaction failed.", "of this agent succeeded"),
        (
            "Operation not supported\n failed to load IMDS session token",
            "expired or missing; check",
        ),
    ],
)
def test_observed_texts(text: str, advice: str) -> None:
    assert advice in explain(OSError(text), [])


def test_unknown_text_is_stable_without_secrets() -> None:
    def text(seconds: str, retries: int, part: str, request: str) -> str:
        return (
            f"Generic S3 error \u21b3 Error performing PUT http://user:hunter22@host/b/part-{part}"
            f"?X-Amz-Credential={KEY_ID}&X-Amz-Signature=0123abcd&sig=c2ln in {seconds}s,"
            f" after {retries} retries, max_retries: 2, retry_timeout: 15s  - Server: 418 Teapot"
            f" <RequestId>{request}</RequestId> Authorization: Bearer eyJhbGciOi"
            f" SharedAccessSignature sig=abc%2F secret_key={SECRET} {SECRET}\n"
            "   0: <unknown>\n   1: start_thread\n             at ./nptl/x.c:442:8\n"
        )

    given = secrets({"aws_secret_access_key": SECRET}, {"AWS_ACCESS_KEY_ID": KEY_ID, "HOME": "b"})
    first = text("1.25", 2, "0b7b1d2c-8f3e-4c5d-9a6b-7c8d9e0f1a2b", "R2ZMCOQ")
    later = text("17.5", 1, "1c8c2e3d-8f3e-4c5d-9a6b-7c8d9e0f1a2b", "F2LM466")
    said = explain(OSError(first), given)
    assert said == explain(OSError(later), given)
    assert "418 Teapot" in said
    assert said.endswith("; check lake.path and its credentials")
    for secret in (SECRET, KEY_ID, "hunter22", "0123abcd", "c2ln", "abc%2F", "eyJhbGciOi", "nptl"):
        assert secret not in said, secret


def test_token_in_lake_path_is_hidden() -> None:
    assert "SIG" not in scrubbed("https://a.blob.core.windows.net/c/l?sv=1&sig=SIG", [])
    assert scrubbed("s3://bucket/lake/bronze/runs", []) == "s3://bucket/lake/bronze/runs"
