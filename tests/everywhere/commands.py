"""``jmxlake`` as a process, from the wheel that is published, beside whatever Spark is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from lakehouse.cli.main import main
from tests import notebooks
from tests.everywhere import small_fleet
from tests.rig.spark_processes import bare_environment

PYTHON = "JMXLAKE_TEST_PYTHON"
"""Environment variable that names another Python for commands: with another client of Spark."""

_ROOT = Path(__file__).parents[2]
_MAIN = """
import sys, lakehouse
from lakehouse.cli.main import main
assert lakehouse.__file__.startswith(sys.argv.pop(1)), lakehouse.__file__
main(prog_name="jmxlake")
"""
_SQL = """
import json, sys
from lakehouse.core.spark_session import session
spark = session()
told = [[row.asDict() for row in spark.sql(one).collect()] for one in sys.argv[1:]]
print(json.dumps(told, default=str))
"""
_SPAN = ("--from", small_fleet.SPAN[0], "--to", small_fleet.SPAN[1])
_SECONDS = 1_200


def unpacked_wheel(folder: Path) -> Path:
    """Build the wheel and unpack it, as an installer does with one without scripts."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, timeout=_SECONDS)
    (built,) = folder.glob("jmxlake-*.whl")
    with zipfile.ZipFile(built) as wheel:
        wheel.extractall(folder / "wheel")
    return folder / "wheel"


class Command(ABC):
    """The command ``jmxlake``, somewhere."""

    @abstractmethod
    def __call__(self, *arguments: str) -> str:
        """What it says on standard output."""

    def statements(self, *lake: str) -> list[dict[str, Any]]:
        """What ``slo publish`` states of the fleet's four hours."""
        told: list[dict[str, Any]] = json.loads(self("slo", "publish", *lake, *_SPAN, "--json"))[
            "statements"
        ]
        return sorted(told, key=repr)

    def facts(self, *lake: str) -> dict[str, Any]:
        """The facts of a report on the fleet's four hours, but for when it was made."""
        told: dict[str, Any] = json.loads(self("report", *lake, *_SPAN, "--json", "-"))
        del told["generated_at"]
        return told


class Here(Command):
    """The command in this process, with its active session."""

    def __call__(self, *arguments: str) -> str:
        ran = CliRunner().invoke(main, arguments)
        assert ran.exit_code == 0, ran.output
        return ran.stdout


@dataclass(frozen=True)
class Jmxlake(Command):
    """The command of a wheel, as a process.

    Attributes:
        wheel: Where it was unpacked.
        folder: Where it runs: not in the repository.
        environment: What says which Spark is meant, and more of the kind.
        beside: A folder that Python finds modules in, too.
    """

    wheel: Path
    folder: Path
    environment: dict[str, str]
    beside: Path | None = None

    def __call__(self, *arguments: str) -> str:
        code, said, told = self.ended(*arguments)
        assert code == 0, said + told
        return said

    def ended(self, *arguments: str) -> tuple[int, str, str]:
        """Its exit code, standard output and standard error."""
        return self._run(_MAIN, str(self.wheel), *arguments)

    def refusal(self, *arguments: str) -> str:
        """The one line in which it says why it failed."""
        code, _, told = self.ended(*arguments)
        assert code == 1, told
        assert "Traceback" not in told
        return told.splitlines()[-1]

    def sql(self, *statements: str) -> list[list[dict[str, Any]]]:
        """The rows of each of some statements, in the session that the command would have."""
        code, said, told = self._run(_SQL, *statements)
        assert code == 0, told
        rows: list[list[dict[str, Any]]] = json.loads(said)
        return rows

    def python(self, code: str) -> str:
        """What a program prints."""
        ended, said, told = self._run(code)
        assert ended == 0, told
        return said

    def notebooks(self, values: dict[str, str], *paths: Path) -> dict[str, list[Any]]:
        """The cells of some notebooks, by their names, with the widgets filled in."""
        code = Path(notebooks.__file__).read_text("utf-8")
        ended, said, told = self._run(code, json.dumps(values), *map(str, paths))
        assert ended == 0, told
        shown: dict[str, list[Any]] = json.loads(said)
        return {Path(one).stem: cells for one, cells in shown.items()}

    def _run(self, code: str, *arguments: str) -> tuple[int, str, str]:
        path = [self.wheel, self.beside] if self.beside else [self.wheel]
        ran = subprocess.run(
            [os.environ.get(PYTHON, sys.executable), "-c", code, *arguments],
            cwd=self.folder,
            env=bare_environment(PYTHONPATH=":".join(map(str, path)), **self.environment),
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
        return ran.returncode, ran.stdout, ran.stderr
