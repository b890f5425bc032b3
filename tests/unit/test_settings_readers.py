"""Files that commands of jmxlake are given: hostile ones are refused at once, in one line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse.core import delta_rs
from lakehouse.errors import LakehouseError
from lakehouse.report import owners
from lakehouse.report.send import delivery
from lakehouse.slo import report_calendar
from lakehouse.slo.openslo.objective_files import read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECRET = "hunter2"


def objectives(file: Path) -> None:
    """Read a file of objectives, whose findings are raised as their line."""
    for one in read([file]):
        for finding in one.findings:
            raise LakehouseError(str(finding))


READERS: dict[str, Callable[[Path], Any]] = {
    "objectives": objectives,
    "options": delta_rs.storage_options,
    "owners": owners.load,
    "maintenance": report_calendar.load_maintenance,
    "corrections": report_calendar.load_corrections,
    "send": delivery.load,
    "password": lambda file: delivery.Secret("file", str(file)).read("mail"),
    "ca_file": lambda file: delivery.trust(str(file), "mail"),
}
SPECIAL: dict[str, Callable[[Path], object]] = {
    "fifo": os.mkfifo,
    "device": lambda file: file.symlink_to("/dev/zero"),
    "missing": lambda _: None,
    "UTF-16": lambda file: file.write_bytes(SECRET.encode("utf-16")),
    "bytes": lambda file: file.write_bytes(b"hunter2: \xff"),
    "NUL": lambda file: file.write_bytes(b"hunter2: \0"),
    "large": lambda file: file.write_bytes(b"- hunter2\n" * 2_000_000),
}
NO_YAML = {"password", "ca_file"}
BOMB = "\n".join(["l0: &l0 [1]", *(f"l{n}: &l{n} [*l{n - 1}, *l{n - 1}]" for n in range(1, 30))])
TEXTS = {
    "depth": "[" * 5_000,
    "map depth": "{a: " * 5_000,
    "bomb": BOMB,
    "self reference": "a: &a [*a]",
    "alias": "a: *hunter2",
    "tag": "a: !!python/name:os.system hunter2",
    "special": "a: hunter2\x07",
    "flow": "a: [hunter2",
}


def refused(reader: str, file: Path) -> None:
    with pytest.raises(LakehouseError) as caught:
        READERS[reader](file)
    line = str(caught.value)
    assert str(file) in line
    assert "\n" not in line
    assert SECRET not in line


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize("reader", READERS)
def test_special_file_is_refused_in_one_line(tmp_path: Path, reader: str, kind: str) -> None:
    file = tmp_path / "settings.yaml"
    SPECIAL[kind](file)
    refused(reader, file)


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("reader", [one for one in READERS if one not in NO_YAML])
def test_hostile_yaml_is_refused_in_one_line(tmp_path: Path, reader: str, kind: str) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(TEXTS[kind])
    refused(reader, file)


def test_duplicate_setting_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "send.yaml"
    file.write_text("mail: {host: h, host: localhost, from: a, to: b}")
    with pytest.raises(LakehouseError, match=r"send.yaml:1:17: duplicate key 'host'"):
        delivery.load(file)


@pytest.mark.parametrize(
    "text", ["a: 2026-99-99", "a: hunter2\na: hunter2", "a: " + "9" * 5_000, "a: 1", "[]", "{b: }"]
)
def test_hostile_options_are_refused_without_values(tmp_path: Path, text: str) -> None:
    file = tmp_path / "options.yaml"
    file.write_text(text)
    refused("options", file)


def test_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    file = tmp_path / "options.yaml"
    file.write_bytes(b"\xef\xbb\xbfaws_region: x\r\n")
    assert delta_rs.storage_options(file) == {"aws_region": "x"}
