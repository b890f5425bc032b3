"""The classes of Kafka that read the metadata log, where each release has them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from collector.errors import ConfigError
from collector.sources.metadata_log import records, segments

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGES: Final = {
    "3.6": ("record", "utils"),
    "4.1": ("record", "utils"),
    "4.2": ("record.internal", "utils"),
    "4.3": ("record.internal", "utils"),
    "4.4": ("record.internal", "utils.internals"),
}
"""Packages of FileRecords and BufferSupplier, below org.apache.kafka.common."""


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    records.record_class.cache_clear()
    yield
    records.record_class.cache_clear()


def fake_java(*names: str) -> object:
    """Java with these classes alone; JPype raises TypeError for others."""

    def java(name: str) -> str:
        if name not in names:
            raise TypeError(name)
        return name

    return java


@pytest.mark.edge(15)
@pytest.mark.parametrize("release", PACKAGES)
def test_a_class_is_found_where_the_release_has_it(
    release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_record, of_buffers = PACKAGES[release]
    files = f"org.apache.kafka.common.{of_record}.FileRecords"
    buffers = f"org.apache.kafka.common.{of_buffers}.BufferSupplier"
    monkeypatch.setattr(records, "java", fake_java(files, buffers))
    assert records.record_class("FileRecords") == files
    assert records.record_class("BufferSupplier") == buffers


@pytest.mark.edge(15)
def test_a_class_that_no_package_has_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "java", fake_java())
    with pytest.raises(ConfigError, match="kafka-clients does not have BufferSupplier"):
        records.record_class("BufferSupplier")


class FakeFile:
    """A FileRecords of Kafka 4.4, which has one way to close it."""

    def __init__(self) -> None:
        self.closed: list[str] = []

    def close(self) -> None:
        self.closed.append("close")


class FakeOlderFile(FakeFile):
    """One of before, whose close() writes."""

    def closeHandlers(self) -> None:  # noqa: N802 - Java's name
        self.closed.append("closeHandlers")


class FakeFileRecords:
    """The class, which opens the one file."""

    def __init__(self, file: FakeFile) -> None:
        self._file = file

    def open(self, *_: object) -> FakeFile:
        return self._file


@pytest.mark.edge(15)
@pytest.mark.parametrize(
    ("file", "closed"),
    [(FakeFile(), "close"), (FakeOlderFile(), "closeHandlers")],
    ids=["4.4", "before"],
)
def test_a_file_is_closed_without_a_write(
    file: FakeFile, closed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "record_class", lambda _: FakeFileRecords(file))
    monkeypatch.setattr(segments, "java", lambda _: lambda path: path)
    with segments.MetadataFolder(Path("log"))._open(Path("0.log")) as opened:
        assert opened is file
    assert file.closed == [closed]
