"""Commands and seconds from an empty home to the report of the sample, with uv.

uv installs the wheel of this checkout from a folder, with its libraries in the versions of
requirements.lock. The folder is filled from the package index first; that time does not count.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.hands.page_script import logical_lines, steps

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT: Final = Path(__file__).parents[2]
UV: Final = Path(sys.executable).parent
_SECONDS: Final = 1800


def commands() -> list[str]:
    """Return the commands of README.md that install and run jmxlake with uv."""
    markdown = (ROOT / "README.md").read_text("utf-8")
    scripts = (one.script for one in steps(markdown) if one.script.startswith("uvx "))
    return [line for script in scripts for line in logical_lines(script)]


def counts(log: Callable[[str], object]) -> dict[str, float]:
    """Run the commands in an empty home, and return their number and seconds.

    Args:
        log: Gets the output of each command.
    """
    with tempfile.TemporaryDirectory(prefix="jmxlake-first-") as name:
        folder = Path(name)
        home = folder / "home"
        settings = home / ".config" / "uv" / "uv.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(f'no-index = true\nfind-links = ["{index(folder / "index")}"]\n')
        environ = {
            "PATH": f"{UV}:/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8",
            "UV_PYTHON": sys.executable, "UV_PYTHON_DOWNLOADS": "never",
        }  # fmt: skip
        run = commands()
        started = time.monotonic()
        # The first command installs; --version shows how long that takes.
        install = shlex.join([*shlex.split(run[0])[:4], "--version"])
        seconds = [_seconds(one, home, environ, log) for one in (install, *run)]
        if not (home / "report.html").stat().st_size:
            raise ValueError("report.html is empty")
        return {
            "commands_to_first_report": len(run),
            "seconds_to_first_report": round(time.monotonic() - started, 1),
            "pip_seconds": round(seconds[0], 1),
        }


def index(folder: Path) -> Path:
    """Fill a folder with the wheel of this checkout and its libraries, and return it."""
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder))
    (wheel,) = folder.glob("jmxlake-*.whl")
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    versions = folder.with_suffix(".txt")  # without hashes, which the new wheel does not have
    versions.write_text("\n".join(re.findall(r"(?m)^[\w.-]+==[^\\\n]+", lock)), "utf-8")
    _run(
        sys.executable, "-m", "pip", "download", "--quiet", "--only-binary", ":all:",
        "--constraint", str(versions), "--dest", str(folder), f"{wheel}[local]",
    )  # fmt: skip
    return folder


def _run(*command: str) -> None:
    ran = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=_SECONDS
    )
    if ran.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {ran.stderr[-2000:]}")


def _seconds(
    command: str, home: Path, environ: dict[str, str], log: Callable[[str], object]
) -> float:
    started = time.monotonic()
    ran = subprocess.run(
        ["bash", "-c", command], cwd=home, env=environ,
        capture_output=True, text=True, check=False, timeout=_SECONDS,
    )  # fmt: skip
    log(f"$ {command}\n{ran.stdout}{ran.stderr}".rstrip())
    if ran.returncode != 0:
        raise RuntimeError(f"{command}: exit code {ran.returncode}")
    return time.monotonic() - started
