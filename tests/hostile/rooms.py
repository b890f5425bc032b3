"""What stands in a room: lakes, a lake next door, and the places that no command may touch."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.hostile.case import NEIGHBOUR, OUTSIDE
from tests.hostile.watch import program
from tests.lake_builder import Batch
from tests.story_lake import Story

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hostile.case import Room

PERIOD: Final = ("--from", "2026-11-16T10:00", "--to", "2026-11-16T12:00")
"""Two hours of which the small lakes are."""
ROLLUP: Final = ("jmxlake", "rollup", "@ROOM@/lake", "--engine", "local")
REPORT: Final = ("jmxlake", "report", "@ROOM@/lake", *PERIOD)

_LOCK: Final = threading.Lock()
_MADE: Final[dict[str, Path]] = {}
_FOLDER: Final = tempfile.TemporaryDirectory(prefix="jmxlake-hostile-lakes-")


def furnish(room: Room) -> None:
    """The folders of every room."""
    for name in ("home", "tmp", "out", "outside"):
        (room.path / name).mkdir(parents=True, exist_ok=True)
    (room.outside / "secret.txt").write_text(f"{OUTSIDE}\n")


def bronze(room: Room, name: str = "lake") -> Path:
    """A small lake that no rollup has read yet."""
    return _copy("bronze", _told, room.path / name)


def lake(room: Room, name: str = "lake") -> Path:
    """A small lake with gold."""
    return _copy("gold", _rolled, room.path / name)


def neighbour(room: Room, name: str = "outside/next") -> Path:
    """A lake of others, with gold; its topic may be in no figure."""
    return _copy("neighbour", _next_door, room.path / name)


def facts(room: Room) -> Path:
    """The facts of a report on the small lake, as ``report --json`` writes them."""
    made = _shared("facts", _reported)
    return Path(shutil.copy(made / "report.json", room.path / "report.json"))


def rolled_up(folder: Path) -> None:
    """Roll a lake of ours up, with the product."""
    words = (program("jmxlake"), "rollup", str(folder), "--engine", "local", "--tidy", "never")
    subprocess.run(words, check=True, capture_output=True, timeout=300)


def _copy(kind: str, make: Callable[[Path], None], place: Path) -> Path:
    shutil.copytree(_shared(kind, make), place, symlinks=True)
    return place


def _shared(kind: str, make: Callable[[Path], None]) -> Path:
    """A folder that every room takes its copy of; made once."""
    with _LOCK:
        if kind not in _MADE:
            made = Path(_FOLDER.name) / kind
            make(made)
            _MADE[kind] = made
        return _MADE[kind]


def _told(folder: Path) -> None:
    Story(hours=2).tell().commit(folder)


def _rolled(folder: Path) -> None:
    _told(folder)
    rolled_up(folder)


def _next_door(folder: Path) -> None:
    batch = Batch(agent="agent-next")
    for start in range(0, 7200, 300):
        batch.run("kafka.partition.under_min_isr", start, start + 300, 1.0, topic=NEIGHBOUR,
                  partition=0, source="broker-1")  # fmt: skip
        batch.run("kafka.client.produce.throttle_time", start, start + 300, 9.0, user=NEIGHBOUR,
                  client_id=NEIGHBOUR, source="broker-1")  # fmt: skip
        for family in ("min_isr", "quotas"):
            batch.scrape(family, start, start + 300)
    batch.commit(folder)
    rolled_up(folder)


def _reported(folder: Path) -> None:
    _rolled(folder / "lake")
    words = (program("jmxlake"), "report", str(folder / "lake"), *PERIOD,
             "--json", str(folder / "report.json"))  # fmt: skip
    subprocess.run(words, check=True, capture_output=True, timeout=300)
