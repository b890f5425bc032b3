"""Figures of a newcomer: first report, documentation, packages, notebooks, commands.

The last line is one JSON object. Each part is a module of this folder with a function that returns
its figures. ``--only`` runs one part, ``--only docs --page views.md`` one page.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CLAIM: Final = "installed in one line, documented with commands that run, at home in other tools"


class Part(NamedTuple):
    """A part of the figures.

    Attributes:
        module: Module of this folder.
        function: Its function, which returns the figures.
        has_log: Whether the function gets a function that prints a line.
    """

    module: str
    function: str = "counts"
    has_log: bool = True


PARTS: Final[Mapping[str, Part]] = {
    "docs": Part("doc_pages"),
    "first_report": Part("first_report"),
    "schemas": Part("schemas"),
    "packages": Part("packages", has_log=False),
    "notebooks": Part("notebooks", "notebooks_equal"),
    "views": Part("duckdb_cli"),
    "agent": Part("agent"),
}

AT_LEAST: Final[Mapping[str, float]] = {
    "doc_commands_run": 120, "schemas": 5, "packages": 4, "packages_started": 2,
    "notebooks_equal": 10,
}  # fmt: skip
AT_MOST: Final[Mapping[str, float]] = {
    "commands_to_first_report": 2, "docs_words": 40_000, "docs_pages": 24, "doc_outputs_stale": 0,
    "doc_commands_failed": 0, "doc_options_unknown": 0, "duckdb_cli_lines_failed": 0,
    "log_lines_per_outage": 3, "check_lines": 15,
}  # fmt: skip


def missed(figures: Mapping[str, float]) -> list[str]:
    """Return a line for each figure outside its limit."""
    low = (f"{name} {figures[name]} < {bar}" for name, bar in AT_LEAST.items()
           if figures.get(name, bar) < bar)  # fmt: skip
    high = (f"{name} {figures[name]} > {bar}" for name, bar in AT_MOST.items()
            if figures.get(name, bar) > bar)  # fmt: skip
    return [*low, *high]


def measured(name: str, log: Callable[[str], object], *options: object) -> dict[str, float]:
    """Return the figures of a part."""
    part = PARTS[name]
    module = import_module(f"tests.hands.{part.module}")
    function: Callable[..., dict[str, float]] = getattr(module, part.function)
    return function(log, *options) if part.has_log else function()


def main() -> None:
    """Print the figures, and exit with 1 if one is outside its limit."""
    parser = argparse.ArgumentParser(prog="python -m tests.hands", description=__doc__)
    parser.add_argument("--only", choices=PARTS, action="append", help="one part only; repeatable")
    parser.add_argument("--page", action="append", default=[], help="one page of docs; repeatable")
    parser.add_argument("--lake", type=Path, help="folder with the sample's lake and report")
    asked = parser.parse_args()
    log = partial(print, flush=True)
    figures: dict[str, float] = {}
    for name in asked.only or PARTS:
        figures |= measured(name, log, *((asked.page, asked.lake) if name == "docs" else ()))
    bad = [] if asked.page else missed(figures)
    for line in bad:
        log(f"missed: {line}")
    log(json.dumps({"claim": CLAIM, "figures": figures, "ratios": {}}))
    sys.stdout.flush()
    os._exit(bool(bad))  # threads of a JVM in this process would keep it alive


if __name__ == "__main__":
    main()
