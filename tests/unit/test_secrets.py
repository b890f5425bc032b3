"""A password file holds a password alone, or a line for each user."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.errors import SourceRefusedError
from collector.settings import Secret

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("content", "user"),
    [("s3cret\n", "monitor"), ("s3cret", None), ("admin other\nmonitor s3cret\n", "monitor")],
)
def test_both_forms_are_read(tmp_path: Path, content: str, user: str | None) -> None:
    file = tmp_path / "password"
    file.write_text(content)
    assert Secret(file).read("JMX", user) == "s3cret"


def test_another_users_line_is_not_sent_as_our_password(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("admin other-secret\n")
    with pytest.raises(SourceRefusedError, match="has no line for 'monitor'") as refused:
        Secret(file).read("JMX", "monitor")
    assert "other-secret" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "\n", "  \nhunter2\n"])
def test_empty_password_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "secret"
    file.write_text(text)
    with pytest.raises(SourceRefusedError, match=r"the first line of .* is empty"):
        Secret(file).read("JMX")


def test_a_variable_goes_without_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_PASSWORD", "s3cret")
    assert Secret(variable="SOME_PASSWORD").read("JMX") == "s3cret"
    monkeypatch.delenv("SOME_PASSWORD")
    with pytest.raises(SourceRefusedError, match="the variable SOME_PASSWORD is not set"):
        Secret(variable="SOME_PASSWORD").read("JMX")
