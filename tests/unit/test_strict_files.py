"""The one strict reader of settings: hostile files and texts are one line, at once."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from lakehouse.tables import strict_files, strict_yaml
from lakehouse.tables.strict_files import UnreadableFileError

SECRET = "hunter2"
BOMB = "\n".join(
    ["l0: &l0 [1, 1, 1]", *(f"l{n}: &l{n} [*l{n - 1}, *l{n - 1}, *l{n - 1}]" for n in range(1, 20))]
)
CHAIN = "\n".join(["l0: &l0 [1]", *(f"l{n}: &l{n} [*l{n - 1}]" for n in range(1, 60))])
MERGES = "\n".join(
    [
        "l0: &l0 {a: 1}",
        *(f"l{n}: &l{n} {{<<: [{', '.join([f'*l{n - 1}'] * 9)}]}}" for n in range(1, 9)),
    ]
)
YAML = {
    "duplicate key": ("a: 1\nb: {k: hunter2, k: 2}", "f:2:17: duplicate key 'k'"),
    "duplicate number": ("1: 2\n1: 3", "f:2:1: duplicate key '1'"),
    "flow depth": ("[" * 5_000, "f:1:41: nested too deeply"),
    "map depth": ("{a: " * 5_000, "nested too deeply"),
    "block depth": ("- " * 500 + "a", "nested too deeply"),
    "alias bomb": (BOMB, "more than 50,000 values"),
    "merge bomb": (MERGES, "more than 50,000 values"),
    "alias chain": (CHAIN, "nested too deeply"),
    "many nodes": ("- a\n" * 60_000, "f:50000:3: more than 50,000 values"),
    "self reference": ("a: &x [*x]", "f:1:8: an alias within its own anchor"),
    "no anchor": ("password: *hunter2", "an alias without its anchor"),
    "two anchors": ("- &hunter2 a\n- &hunter2 b", "f:2:3: an anchor that another value has"),
    "tag": ("password: !hunter2", "f:1:11: a tag. Quote a text that starts with !"),
    "tag of Python": ("!!python/object/apply:os.system [hunter2]", "a tag"),
    "tag handle": ("password: !hunter2!x y", "found undefined tag handle"),
    "no date": ("a: 2026-99-99", "f:1:4: not a valid timestamp: quote it"),
    "no time zone": ("a: 2026-01-01 10:00:00 +99:99", "not a valid timestamp"),
    "no number": ("a: 0x_", "not a valid int"),
    "no truth": ("!!bool hunter2", "not a valid bool"),
    "beyond 64 bits": ("a: " + "9" * 400, "f:1:4: an integer beyond 64 bits"),
    "beyond Python": ("a: " + "9" * 5_000, "f:1:4: not a valid int"),
    "infinite": ("a: .inf", "a number that is not finite"),
    "not a number": ("a: .nan", "a number that is not finite"),
    "beyond floats": ("a: 1.0e+400", "a number that is not finite"),
    "control": ("a: b\nc: \x07", "f:2:4: not YAML: special character U+0007"),
    "surrogate": ("a: \ud800", "special character U+D800"),
    "list as key": ("? [hunter2]\n: b", "not YAML: found unhashable key"),
    "several": ("a: 1\n---\nb: hunter2", "f:3:1: a second document"),
    "open quote": ("a: 'hunter2", "not YAML"),
    "escape": ('a: "hunter2\\q"', "not YAML"),
    "colons": ("a: hunter2: x", "f:1:11: not YAML"),
    "merged scalar": ("a: {<<: hunter2}", "not YAML"),
    "scalar as map": ("!!map hunter2", "not YAML"),
}
JSON = {
    "duplicate key": ('{"a": 1, "b": {"k": "hunter2", "k": 2}}', "f: duplicate key 'k'"),
    "NaN": ('{"a": NaN}', "NaN"),
    "infinity": ("[-Infinity]", "-Infinity"),
    "beyond floats": ("[1e400]", "beyond the range of 64-bit floats"),
    "beyond 64 bits": ("[1" + "0" * 400 + "]", "an integer beyond 64 bits"),
    "beyond Python": ("[1" + "0" * 5_000 + "]", "an integer beyond 64 bits"),
    "depth": ("[" * 60 + "]" * 60, "nested too deeply"),
    "deep maps": ('{"a":' * 60 + "1" + "}" * 60, "nested too deeply"),
    "beyond the stack": ("[" * 200_000, "nested too deeply"),
    "cut": ('{\n"a": "hunter2"', "f:2:"),
    "text": ("hunter2", "f:1:1: not JSON"),
    "empty": ("", "f:1:1: not JSON"),
}
BYTES = {
    "UTF-16": ("a: hunter2".encode("utf-16"), "UTF-16 or UTF-32. Save it as UTF-8"),
    "UTF-32": ("a: hunter2".encode("utf-32"), "UTF-16 or UTF-32"),
    "UTF-16 without a mark": ("a: b".encode("utf-16-be"), ":1: a NUL character"),
    "Latin-1": (b"a: b\nb: hunter\xe4", ":2: not UTF-8 text"),
    "NUL": (b"a: b\n\nhunter2\0", ":3: a NUL character"),
    "too large": (b"#" * 1_000_001, "larger than 1,000,000 bytes"),
}


def refused(error: pytest.ExceptionInfo[UnreadableFileError]) -> str:
    line = str(error.value)
    assert "\n" not in line
    assert SECRET not in line
    return line


@pytest.mark.parametrize(("text", "told"), YAML.values(), ids=YAML)
def test_hostile_yaml_is_one_line_without_values(text: str, told: str) -> None:
    with pytest.raises(UnreadableFileError) as caught:
        strict_yaml.load(text, "f")
    assert told in refused(caught)


@pytest.mark.parametrize(("text", "told"), JSON.values(), ids=JSON)
def test_hostile_json_is_one_line_without_values(text: str, told: str) -> None:
    with pytest.raises(UnreadableFileError) as caught:
        strict_files.parse_json(text, "f")
    assert told in refused(caught)


@pytest.mark.parametrize(("data", "told"), BYTES.values(), ids=BYTES)
def test_hostile_bytes_are_one_line(tmp_path: Path, data: bytes, told: str) -> None:
    file = tmp_path / "f.yaml"
    file.write_bytes(data)
    with pytest.raises(UnreadableFileError) as caught:
        strict_yaml.load_file(file)
    assert refused(caught).startswith(f"{file}:")
    assert told in str(caught.value)


def test_special_files_are_refused_without_waiting(tmp_path: Path) -> None:
    fifo, unix = tmp_path / "fifo", tmp_path / "socket"
    os.mkfifo(fifo)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(unix))
        for place in (fifo, unix, Path("/dev/zero"), Path("/dev/null")):
            with pytest.raises(UnreadableFileError, match="not a regular file"):
                strict_yaml.load_file(place)
    with pytest.raises(UnreadableFileError, match="a folder, not a file"):
        strict_yaml.load_file(tmp_path)
    with pytest.raises(UnreadableFileError, match="No such file"):
        strict_yaml.load_file(tmp_path / "none")
    with pytest.raises(UnreadableFileError, match="not a file name"):
        strict_yaml.load_file(Path("a\0b"))


def test_fifo_that_replaces_a_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at a file and its opening."""
    fifo, file = tmp_path / "fifo", tmp_path / "file"
    os.mkfifo(fifo)
    file.write_text("a: 1")
    before = file.stat()
    monkeypatch.setattr(Path, "stat", lambda *_, **__: before)
    with pytest.raises(UnreadableFileError, match="not a regular file"):
        strict_yaml.load_file(fifo)


def test_ordinary_files_are_read(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_bytes(b"\xef\xbb\xbfa: [1, 2.5, yes, ~, 2026-01-31]\r\nb: &x {c: d}\r\ne: *x\r\n")
    found = strict_yaml.load_file(file)
    assert found["a"][:4] == [1, 2.5, True, None]
    assert found["b"] == found["e"] == {"c": "d"}
    assert strict_yaml.load("") is None
    file.write_bytes(b'\xef\xbb\xbf{"a": [1, -2.5e3, null, "\\ud800"], "b": 9223372036854775807}')
    assert strict_files.parse_json(strict_files.read_text(file)) == {
        "a": [1, -2500.0, None, "\ud800"],
        "b": 2**63 - 1,
    }


def test_a_key_may_override_what_was_merged_in() -> None:
    text = "a: {b: &x {<<: {k: 1}, k: 2}}\nc: {<<: *x, k: 3}\n"
    assert strict_yaml.load(text) == {"a": {"b": {"k": 2}}, "c": {"k": 3}}


def test_the_last_of_two_keys_wins_where_asked() -> None:
    text = "a: {k: 1, k: 2}\na: {k: 3, k: 4}"
    assert strict_yaml.load(text, duplicates="last") == {"a": {"k": 4}}
