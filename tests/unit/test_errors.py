"""Errors of libraries as one line, without secrets."""

from __future__ import annotations

import pytest

from lakehouse.errors import line_of_spark, one_line
from lakehouse.tables import error_text


@pytest.mark.parametrize(
    "text",
    [
        "GET https://a.blob.core.windows.net/c/x?sv=1&sig=HIDDEN failed",
        "error at https://user:HIDDEN@host/lake",
        "aws_secret_access_key=HIDDEN, region=x",
        "AWS_SESSION_TOKEN: HIDDEN",
        "Authorization: Bearer HIDDEN",
        "Authorization: Basic HIDDEN",
        "{'Authorization': 'SharedKey account:HIDDEN'}",
        'options {"aws_secret_access_key": "HIDDEN", "region": "x"}',
        "password='HIDDEN and HIDDEN'",
        "AccountKey=HIDDEN==;EndpointSuffix=x",
        "SharedAccessSignature sv=1&sig=HIDDEN",
        "https://HIDDEN@github.example/x",
        "http://user:HIDDEN/HIDDEN@host:9999/lake",
        "https://host/?token=HIDDEN",
        "x-api-key: HIDDEN",
        "client_secret=HIDDEN&grant=x",
        "-----BEGIN RSA PRIVATE KEY-----\nHIDDEN\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_no_secret_is_in_the_line(text: str) -> None:
    line = one_line(OSError(text))
    assert "HIDDEN" not in line
    assert "***" in line


def test_what_is_no_secret_stays() -> None:
    text = "S3 error:  \x1b[31mobject bronze/runs not found\x1b[0m\n  after 3 tries: no key x"
    expected = "S3 error: object bronze/runs not found after 3 tries: no key x"
    assert one_line(OSError(text)) == expected


@pytest.mark.parametrize(
    "secret",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "ASIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
    ],
)
def test_bare_credential_is_hidden(secret: str) -> None:
    assert one_line(OSError(f"refused {secret} at the store")) == "refused *** at the store"


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1:9999/metrics refused",
        "http://127.0.0.1:9999",
        "http://[::1]:9999/x",
        "error at http://broker-1:9464, retry",
        "http://broker-1:8080/a@b",
        "broker-1:9092,broker-2:9092",
        "abfss://container@account.dfs.core.windows.net/lake",
        "agent.yaml line 3: bad value",
        "s3://bucket/lake/bronze/runs",
        "primary key: id",
    ],
)
def test_address_and_prose_stay_readable(text: str) -> None:
    assert one_line(OSError(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "bad commit\n   0: <unknown>\n   1: <unknown>\n  12: start_thread\n"
        "             at ./nptl/pthread_create.c:442:8\n  13: clone3\n             at ./x.S:81:0\n",
        "bad commit\n\nstack backtrace:\n   0: std::panicking::begin\n   1: core::fmt\n",
        "bad commit\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace",
        'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\n    f()\n'
        "bad commit",
        "bad commit\n\tat org.apache.spark.sql.Dataset.collect(Dataset.scala:1)\n\t... 12 more\n",
    ],
)
def test_backtrace_is_removed(text: str) -> None:
    assert one_line(OSError(text)) == "bad commit"


def test_text_after_a_backtrace_is_kept() -> None:
    text = "no commit\n   0: <unknown>\n   1: <unknown>\ncaused by: disk full"
    assert one_line(OSError(text)) == "no commit caused by: disk full"


def test_error_without_text_has_its_type() -> None:
    assert one_line(OSError()) == "OSError"


def test_terminal_escapes_are_spelt_out() -> None:
    assert error_text.printable("a\x1b[2Jb\u202ec") == r"a\x1b[2Jb\u202ec"


@pytest.mark.parametrize(
    "part",
    ["token-", "-access_", "a-", "://", "http://", "://a:", "a?", "/?", "eyJ-", "\n 0: x", " at a"],
)
def test_hostile_long_text_ends(part: str) -> None:
    """Without bounds some of these patterns took hours, and held the lock of the interpreter."""
    line = error_text.one_line(part * (2_000_000 // len(part)) + " password=HIDDEN")
    assert len(line) <= 100_000
    assert "HIDDEN" not in line


def test_secrets_among_others_are_hidden() -> None:
    text = "a=password=HIDDEN my-token-x: HIDDEN b.sas=HIDDEN x_private_key => 'HIDDEN' key=shown"
    assert "HIDDEN" not in one_line(OSError(text))
    assert one_line(OSError(text)).endswith("key=shown")


def test_line_of_grpc_is_its_status() -> None:
    text = "<_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n>"
    assert line_of_spark(Exception(text)) == "status = StatusCode.UNAVAILABLE"
