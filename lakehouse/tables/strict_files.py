"""Strict reader of small text files and JSON.

Agents and the lakehouse read every settings file through this module or ``strict_yaml``. It accepts
only regular text files of a limited size. Its errors are one line and quote no value, because a
file can contain secrets.
"""

import codecs
import json
import os
import stat
from math import isfinite
from pathlib import Path
from typing import Any, Final, NoReturn

SETTINGS_BYTES: Final = 1_000_000
"""Maximum size of a file of settings, bytes."""

CERTIFICATE_BYTES: Final = 10_000_000
"""Maximum size of a key store or a bundle of certificates, bytes."""

DEEPEST: Final = 40
"""Maximum nesting of YAML and JSON."""

GREATEST: Final = 2**63 - 1
"""Maximum absolute value of an integer (64 bits)."""

_KEY_CHARACTERS: Final = 60
_OTHER_ENCODINGS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)


class UnreadableFileError(Exception):
    """A file or text that cannot be read. The error quotes keys but no values.

    Attributes:
        place: The file, with line and column where they are known.
        problem: The problem.
        line: Line, from 1. None: unknown.
        column: Column, from 1. None: unknown.
    """

    def __init__(
        self, where: str, problem: str, line: int | None = None, column: int | None = None
    ) -> None:
        parts = (where, *(str(number) for number in (line, column) if number is not None))
        self.place = ":".join(part for part in parts if part)
        self.problem, self.line, self.column = problem, line, column
        super().__init__(": ".join(part for part in (self.place, problem) if part))

    def advised(self, advice: str) -> str:
        """Return the error's line, with advice for a file whose content is not the problem.

        Args:
            advice: Advice for a file that cannot be read.
        """
        return str(self) if self.line is not None else f"{self}. {advice}"


def read_text(path: Path, most: int = SETTINGS_BYTES) -> str:
    """Return the text of a regular file in UTF-8, without a byte order mark.

    Args:
        path: The file.
        most: Maximum size, bytes.

    Raises:
        UnreadableFileError: It cannot be read, or is not a regular text file of this size.
    """
    data = read_bytes(path, most)
    where = str(path)
    if data.startswith(_OTHER_ENCODINGS):
        raise UnreadableFileError(where, "UTF-16 or UTF-32. Save it as UTF-8", 1)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnreadableFileError(where, "not UTF-8 text", line) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise UnreadableFileError(where, "a NUL character, so not text", line)
    return text


def read_bytes(path: Path, most: int = SETTINGS_BYTES) -> bytes:
    """Return the content of a regular file without blocking on a FIFO, a device or a socket.

    Args:
        path: The file.
        most: Maximum size, bytes.

    Raises:
        UnreadableFileError: It cannot be read, or is not a regular file of this size.
    """
    where = str(path)
    try:
        _refuse_special(where, path.stat())  # opening some devices has an effect
        with open(path, "rb", opener=_without_waiting) as file:
            _refuse_special(where, os.fstat(file.fileno()))
            data = file.read(most + 1)
    except OSError as error:
        raise UnreadableFileError(where, error.strerror or type(error).__name__) from None
    except ValueError:
        raise UnreadableFileError(where, "not a file name") from None
    if len(data) > most:
        raise UnreadableFileError(where, f"larger than {most:,} bytes")
    return data


def read_certificates(path: Path | None) -> str | None:
    """Return the certificates of a PEM file for ``cadata`` of an SSL context.

    Args:
        path: The file. None: the authorities of this machine, as an SSL context has them.

    Raises:
        UnreadableFileError: It cannot be read, or has no certificate. An SSL context replaces an
            empty text with the authorities of this machine.
    """
    if path is None:
        return None
    text = read_bytes(path, CERTIFICATE_BYTES).decode("ascii", "ignore")  # not comments
    if "-----BEGIN " not in text:
        raise UnreadableFileError(str(path), "no certificate in PEM")
    return text


def parse_json(text: str, where: str = "") -> Any:
    """Return the content of a JSON text.

    Args:
        text: The text.
        where: Its name in errors.

    Raises:
        UnreadableFileError: It is not JSON, has a key twice, is nested too deeply, or has a number
            that is not finite or an integer beyond 64 bits.
    """
    try:
        content = json.loads(
            text, object_pairs_hook=_mapping, parse_constant=_refuse_constant,
            parse_int=_integer, parse_float=_float,
        )  # fmt: skip
    except json.JSONDecodeError as error:
        raise UnreadableFileError(where, "not JSON", error.lineno, error.colno) from None
    except _ContentError as error:
        raise UnreadableFileError(where, str(error)) from None
    except RecursionError:
        raise UnreadableFileError(where, "nested too deeply") from None
    level = [content]
    for _ in range(DEEPEST):
        level = [child for value in level for child in _children(value)]
    if level:
        raise UnreadableFileError(where, "nested too deeply")
    return content


def shown_key(key: object) -> str:
    """Return a key as an error shows it: quoted, on one line and not long."""
    text = str(key)
    return repr(text if len(text) <= _KEY_CHARACTERS else f"{text[:_KEY_CHARACTERS]}…")


class _ContentError(ValueError):
    """JSON that is refused for its content."""


def _refuse_special(where: str, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise UnreadableFileError(where, "a folder, not a file")
    if not stat.S_ISREG(found.st_mode):
        raise UnreadableFileError(where, "not a regular file")


def _without_waiting(name: str, flags: int) -> int:
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for number, key in enumerate(keys) if key in keys[:number])
        raise _ContentError(f"duplicate key {shown_key(twice)}")
    return found


def _refuse_constant(text: str) -> NoReturn:
    raise _ContentError(f"not JSON: {text}")


def _integer(text: str) -> int:
    if len(text) > len(str(-GREATEST)) or abs(value := int(text)) > GREATEST:
        raise _ContentError("an integer beyond 64 bits")
    return value


def _float(text: str) -> float:
    if not isfinite(value := float(text)):
        raise _ContentError("a number beyond the range of 64-bit floats")
    return value


def _children(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
