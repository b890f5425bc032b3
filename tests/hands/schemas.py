"""Count the JSON Schemas of settings files in the wheel of this checkout."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from docs.tools import schemas

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT: Final = Path(__file__).parents[2]
_SECONDS: Final = 300


def counts(log: Callable[[str], object]) -> dict[str, int]:
    """Return the number of schemas in the wheel that are equal to the printed ones.

    Args:
        log: Gets a line for each schema that is missing or differs.
    """
    with tempfile.TemporaryDirectory(prefix="jmxlake-schemas-") as folder:
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=_SECONDS)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            shipped = {
                Path(name).name.partition(".")[0]: json.loads(archive.read(name))
                for name in archive.namelist()
                if "/share/jmxlake/schemas/" in name
            }
    wanted = {name: json.loads(text) for name, text in schemas.texts()}
    for name in sorted(wanted.keys() | shipped.keys()):
        if wanted.get(name) != shipped.get(name):
            log(f"schema {name}: the wheel has a different schema. Run make definitions")
    return {"schemas": sum(shipped.get(name) == one for name, one in wanted.items())}
