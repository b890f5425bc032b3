"""The agent's configuration: one YAML file, every key known, every duration with its unit."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import msgspec
import yaml

from collector.errors import ConfigError
from lakehouse.tables import DEFAULT_WINDOW_SECONDS

_UNITS: Final = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}
_SHORTEST_US: Final = 1_000_000
_SIZES: Final = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


class Quantity:
    """A number with a unit, as people write it; equal where the amounts are."""

    units: ClassVar[dict[str, int]]
    expected: ClassVar[str]

    def __init__(self, text: str) -> None:
        match = re.fullmatch(r"(\d+)\s*([A-Za-z]+)", text)
        if match is None or match[2] not in self.units:
            raise ValueError(f"expected {self.expected}, got {text!r}")
        self.amount = int(match[1]) * self.units[match[2]]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.amount == other.amount

    def __hash__(self) -> int:
        return hash(self.amount)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.amount})"


class Duration(Quantity):
    """A span of time, written as ``10s``, ``500ms``, ``5m`` or ``1h``."""

    units = _UNITS
    expected = "a duration such as 10s or 5m"

    @property
    def us(self) -> int:
        """In microseconds."""
        return self.amount


class Size(Quantity):
    """An amount of memory or disk, written as ``512MiB`` or ``1GiB``."""

    units = _SIZES
    expected = "a size such as 512MiB"

    @property
    def bytes(self) -> int:
        """In bytes."""
        return self.amount


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What all sections have in common: unknown keys are refused."""


class Jmx(Section, frozen=True):
    """How to reach the JMX port; the password is read from a file and never kept in a config."""

    port: int
    host: str = "127.0.0.1"
    user: str | None = None
    password_file: Path | None = None
    timeout: Duration = msgspec.field(default_factory=lambda: Duration("5s"))


class Attach(Section, frozen=True):
    """Which JVM on this host to attach to: by pid, or the one that runs this node."""

    pid: int | None = None


class Admin(Section, frozen=True):
    """How Kafka's Admin client reaches the cluster; its security is set in a properties file."""

    bootstrap: str
    libs: Path
    properties_file: Path | None = None
    timeout: Duration = msgspec.field(default_factory=lambda: Duration("5s"))


class Source(Section, frozen=True):
    """What is read: one broker, controller or client JVM."""

    node: int | str
    role: Literal["broker", "controller", "client"] = "broker"
    cluster: str | None = None
    jmx: Jmx | None = None
    attach: Attach | None = None

    @property
    def name(self) -> str:
        """The source's name in the lake."""
        return f"{self.role}-{self.node}"


class Lake(Section, frozen=True):
    """Where the Delta tables lie; ``options_file`` holds delta-rs storage options as YAML."""

    path: str
    options_file: Path | None = None
    commit_interval: Duration = msgspec.field(default_factory=lambda: Duration("10s"))


class Spool(Section, frozen=True):
    """Where the agent keeps what is not in the lake yet."""

    path: Path
    max_size: Size = msgspec.field(default_factory=lambda: Size("1GiB"))


class FamilySettings(Section, frozen=True):
    """Overrides for one family of the catalogue."""

    interval: Duration | None = None
    memory: Duration | None = None
    enabled: bool = True


class Config(Section, frozen=True):
    """The whole file.

    Attributes:
        source: What is read.
        lake: Where it goes.
        spool: Where it waits.
        admin: Kafka's Admin API; without it there are no leaders, offsets, quotas and topology.
        window: Length of the wall-clock windows at which runs are cut; it divides five minutes or
            is a multiple of it.
        families: Overrides by family name.
        catalogue: Folder with further catalogue files.
    """

    source: Source
    lake: Lake
    spool: Spool
    admin: Admin | None = None
    window: Duration = msgspec.field(default_factory=lambda: Duration(f"{DEFAULT_WINDOW_SECONDS}s"))
    families: dict[str, FamilySettings] = msgspec.field(default_factory=dict)
    catalogue: Path | None = None


def load(path: Path) -> Config:
    """Read and validate a configuration file.

    Raises:
        ConfigError: One line: which file, which key, what is wrong with it.
    """
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; give --config a readable file") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    return parse(raw, str(path))


def parse(raw: Any, where: str) -> Config:
    """Validate a configuration that was read already; ``where`` begins the error's line."""
    try:
        config = msgspec.convert(raw, Config, dec_hook=_hook)
        _validate(config)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {_explain(str(error))}") from error
    return config


def storage_options(lake: Lake) -> dict[str, str]:
    """The storage options of delta-rs from their own file, so that no secret is in the config.

    Raises:
        ConfigError: The file cannot be read or is not a mapping of names to text.
    """
    if lake.options_file is None:
        return {}
    try:
        raw = yaml.safe_load(lake.options_file.read_text(encoding="utf-8"))
        return msgspec.convert(raw, dict[str, str])
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError) as error:
        # Not the error's own text: it may quote the file, and the file holds secrets.
        raise ConfigError(
            f"lake.options_file {lake.options_file}: not a readable mapping of names to text"
        ) from error


def _validate(config: Config) -> None:
    node = str(config.source.node)
    if config.source.role != "client" and not node.isdecimal():
        raise msgspec.ValidationError(f"node id {node!r} is no number - at `$.source`")
    if not config.lake.path:
        raise msgspec.ValidationError("must not be empty - at `$.lake.path`")
    spans = {f"families.{name}.interval": f.interval for name, f in config.families.items()}
    for key, span in {**spans, "lake.commit_interval": config.lake.commit_interval}.items():
        if span is not None and span.us < _SHORTEST_US:
            raise msgspec.ValidationError(f"must be at least 1s - at `$.{key}`")
    if (config.source.jmx is None) == (config.source.attach is None):
        raise msgspec.ValidationError("give either jmx or attach - at `$.source`")
    five_minutes = DEFAULT_WINDOW_SECONDS * 1_000_000
    if config.window.us <= 0 or (
        five_minutes % config.window.us and config.window.us % five_minutes
    ):
        raise msgspec.ValidationError("must divide 5m or be a multiple of it - at `$.window`")


def _hook(type_: type, value: Any) -> Any:
    if issubclass(type_, Quantity) and isinstance(value, str):
        return type_(value)
    if issubclass(type_, Path) and isinstance(value, str):
        return Path(value)
    raise ValueError(f"expected text with a unit, got {value!r}")


def _explain(message: str) -> str:
    """The message of msgspec with the key spelled as in the file, and the nearest known name."""
    text, _, place = message.partition(" - at ")
    key = place.strip("`").removeprefix("$").strip(".") or "top level"
    unknown = re.search(r"unknown field `(.+)`", text)
    if unknown is None:
        return f"{key}: {text}"
    near = difflib.get_close_matches(unknown[1], known_keys(), n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"{key}: unknown key {unknown[1]!r}{hint}"


def known_keys() -> list[str]:
    """Every key of every section."""
    return sorted(
        {name for section in Section.__subclasses__() for name in section.__struct_fields__}
    )
