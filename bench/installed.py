"""An agent as it is installed: with what the extra ``agent`` brings, and nothing else.

The environment of this repository has far more, and libraries load what they find: JPype all of
numpy, 15 MB.
"""

from __future__ import annotations

from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement

if TYPE_CHECKING:
    from collections.abc import Iterator

WITHOUT_SITE = "-S"
"""The option of Python that leaves this environment's packages out."""


def environment(folder: Path) -> dict[str, str]:
    """The variables of such a process, whose packages are linked from a new folder."""
    folder.mkdir()
    for installed in _brought("jmxlake", "agent", set()):
        for top in {file.parts[0] for file in installed.files or ()} - {"..", "__pycache__"}:
            if not (folder / top).exists():
                (folder / top).symlink_to(Path(str(installed.locate_file(top))))
    return {"PYTHONPATH": f"{folder}:{Path(__file__).parents[1]}"}


def _brought(name: str, extra: str, met: set[tuple[str, str]]) -> Iterator[Distribution]:
    """A distribution, and what it needs, with an extra or (an empty one) without."""
    if (name, extra) in met:
        return
    met.add((name, extra))
    found = distribution(name)
    yield found
    for needed in map(Requirement, found.requires or ()):
        if needed.marker is None or needed.marker.evaluate({"extra": extra}):
            for one in {"", *needed.extras}:
                yield from _brought(needed.name, one, met)
