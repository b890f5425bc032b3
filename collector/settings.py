"""Settings: the base of all sections of a configuration, and the kinds of values in them.

The sections of sources are in collector/sources/transports.py, the others in collector/config.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Self
from urllib.parse import urlsplit

import msgspec

from collector.errors import SettingError, SourceRefusedError
from lakehouse.tables.strict_files import UnreadableFileError, read_text

_SHOWN: Final = 40


class Quantity(int):
    """A number with a unit, as the amount in the smallest one.

    Attributes:
        units: Amount of each unit.
        expected: Description of a value.
        most: Largest value of any key; a key can have a lower limit.
    """

    units: ClassVar[dict[str, int]]
    expected: ClassVar[str]
    most: ClassVar[str]

    def __new__(cls, text: str) -> Self:
        """Parse a text such as ``10s``.

        Raises:
            ValueError: The text is not a number with a unit, or the amount is above the limit.
        """
        amount = cls._amount(text)
        if amount is None:
            shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
            raise ValueError(f"expected {cls.expected}, got {shown!r}")
        if amount > (cls._amount(cls.most) or 0):
            raise ValueError(f"must be at most {cls.most}")
        return super().__new__(cls, amount)

    @property
    def text(self) -> str:
        """Amount in the largest unit in which it is a whole number."""
        unit = next(name for name in reversed(self.units) if self % self.units[name] == 0)
        return f"{self // self.units[unit]}{unit}"

    @classmethod
    def _amount(cls, text: str) -> int | None:
        match = re.fullmatch(r"([0-9]{1,4000})\s*([A-Za-z]+)", text)
        unit = cls.units.get(match[2]) if match else None
        return int(match[1]) * unit if match and unit else None


class Duration(Quantity):
    """Duration, written as ``10s``, ``500ms``, ``5m`` or ``1h``."""

    units: ClassVar = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}
    expected = "a duration such as 10s or 5m"
    most = "24h"

    @property
    def us(self) -> int:
        """Microseconds."""
        return int(self)

    @property
    def seconds(self) -> float:
        """Seconds."""
        return self / 1e6


class Size(Quantity):
    """Bytes of memory or disk, written as ``512MiB`` or ``1GiB``."""

    units: ClassVar = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
    expected = "a size such as 512MiB"
    most = "16384GiB"


RESTART: Final = msgspec.Meta(extra={"restart": True})
"""A change of the key requires a restart."""
SecretFile = Annotated[Path | None, msgspec.Meta(extra={"secret": True})]
"""A file that may hold a secret."""
Port = Annotated[int, msgspec.Meta(ge=1, le=65_535)]


def within(least: str, most: str | None = None) -> msgspec.Meta:
    """Return the limits of a quantity. None: the limit of its class."""
    return msgspec.Meta(extra={"least": least, "most": most})


TIMEOUT: Final = within("100ms", "10m")


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of all sections: unknown keys are refused."""


def marked(section: Section, mark: str, above: str = "") -> Iterator[tuple[str, object]]:
    """Yield key and value of each marked key, in a section and in the sections below it.

    Args:
        section: The section.
        mark: ``restart``: a change requires a restart. ``secret``: a file that may hold a secret.
        above: Prefix of each key.
    """
    return ((key, value) for key, value, extra in _keys(section, above) if mark in extra)


def limited(section: Section) -> Iterator[tuple[str, Quantity, str, str | None]]:
    """Yield key, value, minimum and maximum of each quantity that declares limits."""
    for key, value, extra in _keys(section, ""):
        if isinstance(value, Quantity) and "least" in extra:
            yield key, value, extra["least"], extra["most"]


def _keys(section: Section, above: str) -> Iterator[tuple[str, object, dict[str, Any]]]:
    """Yield keys, values and marks of a section and of the sections below it."""
    for field in msgspec.structs.fields(section):
        key, value = f"{above}{field.name}", getattr(section, field.name)
        metas = getattr(field.type, "__metadata__", ())
        marks = {name: what for meta in metas for name, what in (meta.extra or {}).items()}
        yield key, value, marks
        for name, below in value.items() if isinstance(value, dict) else [("", value)]:
            if isinstance(below, Section):
                yield from _keys(below, f"{key}.{name}." if name else f"{key}.")


@dataclass(frozen=True, slots=True)
class Secret:
    """Place of a password. The password itself is in no attribute and no repr.

    Attributes:
        file: File with the password in its first line, or with a line ``user password``. The JVM's
            own file does not work: since Java 9 the JVM replaces the passwords in it with hashes
            at the first login (``jmxremote.password.toHashes``).
        variable: Name of an environment variable.
    """

    file: Path | None = None
    variable: str | None = None

    def read(self, where: str, user: str | None = None) -> str:
        """Return the current password; empty if none is configured.

        Args:
            where: Start of the error line, such as the host that needs the password.
            user: User, if the file has a line for each user.

        Raises:
            SourceRefusedError: The file or the variable does not exist, or the file is empty or
                holds a hash.
        """
        if self.variable is not None:
            value = os.environ.get(self.variable)
            if value is None:
                raise SourceRefusedError(f"{where}: the variable {self.variable} is not set")
            return value
        if self.file is None:
            return ""
        try:
            lines = read_text(self.file).splitlines()
        except UnreadableFileError as error:
            raise SourceRefusedError(f"{where}: cannot read the password file {error}") from None
        return self._password(where, lines, user)

    def _password(self, where: str, lines: list[str], user: str | None) -> str:
        for line in lines:
            name, *rest = line.split()[:4] or [""]
            if name == user and len(rest) == 1:
                return rest[0]
            if name == user and len(rest) > 1:
                why = f"{self.file} contains a hash, because a JVM uses it as its own password file"
                raise SourceRefusedError(f"{where}: {why}; use another file with the password")
        first = lines[0].strip() if lines else ""
        if not first:
            raise SourceRefusedError(
                f"{where}: the first line of {self.file} is empty; write the password there"
            )
        if user is not None and len(first.split()) > 1:
            why = f"{self.file} has no line for {user!r}, and its first line is not only a password"
            raise SourceRefusedError(f"{where}: {why}")
        return first


_PLACEHOLDER: Final = re.compile(r"\{(?:host|node|port)\}")
"""Part of an address that discovery fills in."""


def check_url(key: str, text: str) -> None:
    """Check a URL.

    Raises:
        SettingError: The URL is not http or https, contains a password, or has no host.
    """
    fits, why = text.startswith(("http://", "https://")) and "@" not in text, ""
    try:
        url = urlsplit(_PLACEHOLDER.sub("1", text))
        fits = fits and bool(url.hostname) and url.port != 0
    except ValueError as error:
        fits, why = False, f" ({error})"
    if not fits:
        text = "must be http:// or https:// with a host, without user and password"
        raise SettingError(key, f"{text}; a port must be 1 to 65535{why}")


def is_loopback(host: str) -> bool:
    """Return True if a name or an address is this host's own. It does not query DNS."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.casefold() in ("localhost", "localhost.localdomain")
