"""Words, pages and commands of the documentation.

The blocks of a page that have no title run in one shell, in a folder with the sample's lake and its
report. A block with a title runs elsewhere: its calls of jmxlake are checked. README.md and the
quickstart run on a real broker (tests/docs/test_commands.py).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.docs.pages import NOT_HERE
from tests.hands import command_line
from tests.hands.page_script import Step, bash, is_stale, outputs, steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ROOT: Final = Path(__file__).parents[2]
GENERATED: Final = {"seeds.md"}
_AT_ONCE: Final = 2
_SECONDS: Final = 900
_PROGRAMS: Final = ("jmxlake", "jmxlake-agent", "python")
_WEEKLY: Final = (
    "weekly", "lake", "--owners", "lake-owners.yaml", "--maintenance", "lake-maintenance.yaml",
    "--html", "report.html",
)  # fmt: skip


class Result(NamedTuple):
    """The result of a page.

    Attributes:
        run: Number of commands that ran.
        failed: Each failed command, with its line and its output.
        stale: Each output that differs from the page.
        wrong: Each call of jmxlake with an unknown command or option.
    """

    run: int = 0
    failed: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()


def pages() -> list[Path]:
    """Return the pages that people write."""
    return sorted(one for one in (ROOT / "docs").glob("*.md") if one.name not in GENERATED)


def counts(
    log: Callable[[str], object], only: Iterable[str] = (), made: Path | None = None
) -> dict[str, int]:
    """Run all pages and README.md, and return the figures.

    Args:
        log: Gets a line for each problem.
        only: Names of pages to run. Empty: all.
        made: Folder with the sample's lake and report. None: make them, about a minute.
    """
    chosen = [one for one in [ROOT / "README.md", *pages()] if not only or one.name in only]
    with tempfile.TemporaryDirectory(prefix="jmxlake-docs-") as name:
        folder = Path(name)
        prepare(folder, made)
        of_broker = Result() if only else with_broker()
        _log(log, ROOT / "docs" / "quickstart.md", of_broker)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            results = [of_broker]
            for page, result in zip(
                chosen, pool.map(partial(run, folder=folder), chosen), strict=True
            ):
                _log(log, page, result)
                results.append(result)
    return {
        "docs_words": sum(len(page.read_text("utf-8").split()) for page in pages()),
        "docs_pages": len(pages()),
        "doc_commands_run": sum(one.run for one in results),
        "doc_commands_failed": sum(len(one.failed) for one in results),
        "doc_outputs_stale": sum(len(one.stale) for one in results),
        "doc_options_unknown": sum(len(one.wrong) for one in results),
    }


def _log(log: Callable[[str], object], page: Path, result: Result) -> None:
    log(f"{page.name}: {result.run} commands")
    for kind in ("failed", "stale", "wrong"):
        for text in getattr(result, kind):
            log(f"{kind} {page.relative_to(ROOT)}:{text}")


def prepare(folder: Path, made: Path | None) -> None:
    """Create the programs of a shell, and the sample's lake and report."""
    programs, lake = folder / "bin", folder / "lake"
    programs.mkdir()
    (folder / "home").mkdir()
    for name in _PROGRAMS:
        script = programs / name
        script.write_text(f'#!/bin/sh\nexec "{Path(sys.executable).parent / name}" "$@"\n')
        script.chmod(0o755)
    pip = programs / "pip"
    pip.write_text("#!/bin/sh\n# jmxlake is installed: tests/hands/first_report.py installs it\n")
    pip.chmod(0o755)
    if made is not None:
        shutil.copytree(made, lake)
        return
    lake.mkdir()
    for command in (("sample", "lake"), _WEEKLY):
        subprocess.run(
            [programs / "jmxlake", *command], cwd=lake, env=environment(folder),
            check=True, capture_output=True, timeout=_SECONDS,
        )  # fmt: skip


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a shell: only the programs of a page, and an empty home."""
    path = f"{folder / 'bin'}:/usr/local/bin:/usr/bin:/bin"
    return {"PATH": path, "HOME": str(folder / "home"), "LANG": "C.UTF-8", "TMPDIR": str(folder)}


def with_broker() -> Result:
    """Run the blocks with a title of README.md and the quickstart, which need a broker or pip."""
    command = [sys.executable, "-m", "pytest", "-q", "tests/docs/test_commands.py"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        return Result(failed=(ran.stdout[-4000:],))
    titled = [
        step
        for name in ("README.md", "docs/quickstart.md")
        for step in steps((ROOT / name).read_text("utf-8"))
        if step.title and not step.script.startswith((*NOT_HERE, "uvx "))
    ]
    return Result(sum(step.count for step in titled))


def run(page: Path, folder: Path) -> Result:
    """Run a page in a copy of the sample's folder."""
    markdown = page.read_text("utf-8")
    wrong = tuple(command_line.problems(markdown))
    here = [step for step in steps(markdown) if not step.title]
    if not here:
        return Result(wrong=wrong)
    place = folder / page.stem
    shutil.copytree(folder / "lake", place)
    try:
        printed = outputs(_shell(bash(here), place, environment(folder)))
    finally:
        shutil.rmtree(place)
    return _result(here, printed)._replace(wrong=wrong)


def _result(here: list[Step], printed: dict[int, list[str]]) -> Result:
    finished = [step for at, step in enumerate(here) if at + 1 in printed]
    failed = [
        f"{step.line}: {step.script.strip()}\n  " + "\n  ".join(printed[at][-8:])
        for at, step in enumerate(here)
        if at in printed and at + 1 not in printed
    ]
    left = [f"{one.line}: not reached" for one in here[len(finished) + len(failed) :]]
    stale = [
        f"{step.line}: {step.script.strip()}\n  " + "\n  ".join(printed[at])
        for at, step in enumerate(finished)
        if step.expected is not None and is_stale(step.expected, printed[at])
    ]
    return Result(sum(one.count for one in finished), (*failed, *left), tuple(stale))


def _shell(script: str, folder: Path, environ: dict[str, str]) -> str:
    shell = subprocess.Popen(
        ["bash", "-c", script], cwd=folder, env=environ, process_group=0,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace",
    )  # fmt: skip
    try:
        printed, _ = shell.communicate(timeout=_SECONDS)
    finally:
        with contextlib.suppress(ProcessLookupError):  # a program in the background
            os.killpg(shell.pid, signal.SIGKILL)
    return printed
