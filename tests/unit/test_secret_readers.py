"""Files of the agent that hold secrets: hostile ones are refused at once, in one line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from collector.config import loader
from collector.config.schema import Lake, UnityCatalog
from collector.delivery.store import from_file
from collector.delivery.vended_credentials import VendedCredentials
from collector.errors import JmxlakeError
from collector.settings import Secret

if TYPE_CHECKING:
    from collections.abc import Callable

READERS: dict[str, Callable[[Path], Any]] = {
    "password_file": lambda file: Secret(file).read("jmx"),
    "options_file": lambda file: from_file(Lake("/lake", options_file=file)),
    "config": lambda file: loader.load(file, {}),
    "unity ca_file": lambda file: VendedCredentials(
        UnityCatalog("https://localhost:9", token_file=file, ca_file=file), "s3://lake"
    )(),
}
FILES: dict[str, Callable[[Path], object]] = {
    "fifo": os.mkfifo,
    "folder": Path.mkdir,
    "device": lambda file: file.symlink_to("/dev/zero"),
    "UTF-16": lambda file: file.write_bytes("hunter2".encode("utf-16")),
    "bytes": lambda file: file.write_bytes(b"hunter2\xff"),
    "NUL": lambda file: file.write_bytes(b"hunter2\0"),
    "large": lambda file: file.write_bytes(b"hunter2 " * 2_000_000),
}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("reader", READERS)
def test_hostile_file_is_refused_in_one_line(tmp_path: Path, reader: str, kind: str) -> None:
    file = tmp_path / "secret"
    FILES[kind](file)
    with pytest.raises(JmxlakeError) as caught:
        READERS[reader](file)
    line = str(caught.value)
    assert str(file) in line
    assert "\n" not in line
    assert "hunter2" not in line


@pytest.mark.parametrize(
    "text",
    ["[" * 5_000, "key: 2026-99-99", "key: hunter2\nkey: hunter2", "key: *hunter2", "hunter2: ["],
)
def test_hostile_options_are_refused_without_values(tmp_path: Path, text: str) -> None:
    file = tmp_path / "options.yaml"
    file.write_text(text)
    with pytest.raises(JmxlakeError, match=r"lake.options_file .*options.yaml:\d+:\d+: ") as caught:
        from_file(Lake("/lake", options_file=file))
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)
