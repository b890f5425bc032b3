"""One hostile input: how it is laid out, which commands get it, and what must come of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NamedTuple

SECRET: Final = "hidden-marker-7d1f0c"
"""Every password, key and secret address of an input; no output may have it."""
OUTSIDE: Final = "outside-marker-91be44"
"""Content of the files beside a lake; no output may have it."""
NEIGHBOUR: Final = "neighbour-topic-5ac2"
"""Name of a topic of the lake next door; no output may have it."""

Figure = Literal[
    "tracebacks", "hangs", "code_run", "files_outside", "connections", "ports_opened",
    "secrets_seen", "wrong_codes",
]  # fmt: skip
FIGURES: Final[tuple[Figure, ...]] = (
    "tracebacks", "hangs", "code_run", "files_outside", "connections", "ports_opened",
    "secrets_seen", "wrong_codes",
)  # fmt: skip


class Found(NamedTuple):
    """One thing that must not happen, and did."""

    figure: Figure
    text: str


@dataclass(frozen=True)
class Room:
    """The folder of one case.

    Attributes:
        path: The folder. Commands run in it.
        canary: Host and port on which nobody may call.
        stack: What ends with the case: servers, open files.
        places: Further marks of hostile values, and what they mean in this room.
    """

    path: Path
    canary: str = "127.0.0.2:9"
    stack: ExitStack = field(default_factory=ExitStack)
    places: dict[str, str] = field(default_factory=dict)

    @property
    def outside(self) -> Path:
        """The folder that no command may read or change."""
        return self.path / "outside"

    @property
    def ran(self) -> Path:
        """The file that only the code in a hostile value makes."""
        return self.outside / "ran"

    def fill(self, text: str) -> str:
        """A hostile value with the places of this room."""
        places = {
            "@RAN@": str(self.ran), "@OUTSIDE@": str(self.outside / "secret.txt"),
            "@ROOM@": str(self.path), "@CANARY@": self.canary, **self.places,
        }  # fmt: skip
        for mark, place in places.items():
            text = text.replace(mark, place)
        return text

    def write(self, name: str, content: str | bytes) -> Path:
        """A file of the room."""
        place = self.path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
        return place


Codes = frozenset[int]
TAKEN: Final[Codes] = frozenset({0})
REFUSED: Final[Codes] = frozenset({1, 2, 3, 4, 78})
"""Codes with which the two programs refuse an input, or report that something is wrong."""
EITHER: Final[Codes] = TAKEN | REFUSED


@dataclass(frozen=True)
class Outcome:
    """What came of a command.

    Attributes:
        code: Exit code; None for a command that was killed at its deadline.
        out: Standard output.
        err: Standard error.
        seconds: Duration.
        peak_mb: Largest resident memory (MB, 10**6 bytes).
        ports: Listening sockets that it had.
    """

    code: int | None
    out: str
    err: str
    seconds: float
    peak_mb: float
    ports: frozenset[str]


@dataclass(frozen=True)
class Command:
    """One run of the product; counts as one input.

    Attributes:
        words: The program's name and its arguments, with the room's places in ``@``.
        codes: Exit codes that are right.
        name: Short name; by default the subcommand.
        environ: Further variables.
        writes: Places of the room that it may change, beside ``out``.
        seconds: Deadline. A command that needs longer hangs.
        lines: Most lines of error that it may print.
        listens: Number of ports that it may open.
        inputs: Inputs that it gets one after the other, where a start takes long; ``judged``
            looks at each.
        prepared: Makes further changes before it runs.
        meanwhile: Runs beside it, is told whether it runs, and says what it found; SIGTERM follows.
        judged: Looks at what came of it.
    """

    words: tuple[str, ...]
    codes: Codes = EITHER
    name: str = ""
    environ: Mapping[str, str] = field(default_factory=dict)
    writes: tuple[str, ...] = ()
    seconds: float = 60.0
    lines: int = 6
    listens: int = 0
    inputs: int = 1
    prepared: Callable[[Room], None] | None = None
    meanwhile: Callable[[Room, Callable[[], bool]], Iterable[Found]] | None = None
    judged: Callable[[Room, Outcome], Iterable[Found]] | None = None

    @property
    def shown(self) -> str:
        """Its name in lists."""
        return self.name or " ".join(self.words[1:2])

    @property
    def is_agent(self) -> bool:
        """Whether it is the program that runs beside a broker."""
        return self.words[0] == "jmxlake-agent"


@dataclass(frozen=True)
class Case:
    """A hostile value at a place, and the commands that get it in turn.

    Attributes:
        place: Where it enters.
        name: What it is.
        lay: Lays the room out.
        commands: What runs in it.
    """

    place: str
    name: str
    lay: Callable[[Room], None]
    commands: tuple[Command, ...]

    @property
    def full(self) -> str:
        """The name that ``--only`` takes."""
        return f"{self.place}/{self.name}"
