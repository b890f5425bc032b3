"""Lines of pages in the DuckDB CLI: the shell lines and queries of views, on a sample lake."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from demo.jars import cache_folder
from deploy.tools import uv

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT: Final = Path(__file__).parents[2]
VERSION: Final = "1.5.5"
"""Newest version whose extension ``delta`` the package index has."""

_SECONDS: Final = 900
_VIEWS: Final = re.compile(r"jmxlake views --dialect duckdb\b[^`\n]*> ?[\w.]+")
_CLI: Final = re.compile(r"`(duckdb [^`\n]+)`|^ *(?:\$ )?(duckdb .+)$", re.MULTILINE)
_QUERY: Final = re.compile(r"(?ms)^```sql\n(.*?)^```$")
_OF_VIEWS: Final = re.compile(r"\b(FROM|JOIN) kafka\.")
_PLACE: Final = re.compile(r"/var/lib/jmxlake|s3://[\w./-]+")
_ROWS: Final = (
    "duckdb lake.duckdb \"SELECT CASE WHEN count(*) = 0 THEN error('no rows') END "
    'FROM kafka.topic_hours"'
)
"""The views must have rows of the lake."""


class Line(NamedTuple):
    """A line of a page: a shell command, with SQL as its input if it is a query."""

    page: str
    command: str
    query: str | None = None


def lines() -> Iterator[Line]:
    """Yield the lines of each page that uses the DuckDB CLI, in an order in which they run."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = page.read_text("utf-8")
        typed = dict.fromkeys(one or other for one, other in _CLI.findall(text))
        if not typed:
            continue
        commands = [*dict.fromkeys(_VIEWS.findall(text)), *typed]
        yield from (Line(page.name, _PLACE.sub("lake", one)) for one in commands)
        for query in filter(_OF_VIEWS.search, _QUERY.findall(text)):
            yield Line(page.name, "duckdb lake.duckdb", query)


def counts(log: Callable[[str], object]) -> dict[str, int]:
    """Run the lines, and return the number of failed lines.

    Args:
        log: Gets each failed line.
    """
    failed, found = 0, [*lines(), Line("this test", _ROWS)]
    with tempfile.TemporaryDirectory(prefix="jmxlake-duckdb-") as name:
        environ = _prepare(Path(name))
        for line in found:
            ran = subprocess.run(
                ["/bin/sh", "-ec", line.command], cwd=name, env=environ, input=line.query or "",
                capture_output=True, text=True, check=False, timeout=_SECONDS,
            )  # fmt: skip
            if ran.returncode:
                failed += 1
                reason = " ".join(ran.stderr.split())[:300]
                log(f"failed {line.page}: {line.command} {line.query or ''}: {reason}")
    log(f"{len(found)} lines ran in the DuckDB CLI {VERSION}")
    return {"duckdb_cli_lines_failed": failed}


def _prepare(folder: Path) -> dict[str, str]:
    """Create programs, a home with the extension, and a lake; return the environment."""
    programs, installed = folder / "bin", _installed()
    programs.mkdir()
    for name, program in (
        ("duckdb", installed / "bin/duckdb"), ("jmxlake", Path(sys.executable).parent / "jmxlake"),
    ):  # fmt: skip
        script = programs / name
        script.write_text(f'#!/bin/sh\nexec "{program}" "$@"\n')
        script.chmod(0o755)
    (extension,) = installed.rglob("delta.duckdb_extension")
    environ = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}

    def run(*command: str) -> str:
        ran = subprocess.run(
            command, cwd=folder, env=environ, capture_output=True, text=True, check=True,
            timeout=_SECONDS,
        )  # fmt: skip
        return ran.stdout

    platform = run("duckdb", "-noheader", "-list", "-c", "PRAGMA platform").strip()
    place = folder / f".duckdb/extensions/v{VERSION}/{platform}"  # the folder of INSTALL
    place.mkdir(parents=True)
    shutil.copy(extension, place)
    run("jmxlake", "sample", "lake", "--weeks", "1")
    run("jmxlake", "rollup", "lake")
    return environ


def _installed() -> Path:
    """Return an environment with the DuckDB CLI and its extension, created once."""
    folder = cache_folder() / f"duckdb-cli-{VERSION}-{sys.version_info.minor}"
    if not (folder / ".done").exists():
        wanted = [f"{name}=={VERSION}" for name in ("duckdb-cli", "duckdb-extension-delta")]
        python = folder / "bin/python"
        for command in (
            ["venv", "--quiet", "--allow-existing", "--python", sys.executable, str(folder)],
            ["pip", "install", "--quiet", "--python", str(python), *wanted],
        ):
            subprocess.run([str(uv()), *command], check=True, env=dict(os.environ))
        (folder / ".done").touch()
    return folder


if __name__ == "__main__":
    sys.exit(bool(counts(print)["duckdb_cli_lines_failed"]))
