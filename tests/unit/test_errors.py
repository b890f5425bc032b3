"""Errors of libraries as one line, without secrets."""

from __future__ import annotations

import pytest

from lakehouse.errors import one_line


@pytest.mark.parametrize(
    "text",
    [
        "GET https://a.blob.core.windows.net/c/x?sv=1&sig=HIDDEN failed",
        "error at https://user:HIDDEN@host/lake",
        "aws_secret_access_key=HIDDEN, region=x",
        "AWS_SESSION_TOKEN: HIDDEN",
        "Authorization: Bearer HIDDEN",
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
