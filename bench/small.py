"""How long a person waits for a small lake: ``make bench-small``.

Four sources, two minutes, some 24,400 runs (``bench.small_lake``). Each figure is the median of
fresh processes of ``jmxlake``, from their start to their end, each on a copy of the lake that
nothing else has touched. A figure whose command fails is null; the standard error says why.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from bench import against, small_lake
from bench.rollup_process import FailedError, measure
from bench.small_lake import START, WINDOW_SECONDS
from bench.small_world import World
from bench.teller import Teller, new_table
from demo.agents import script

if TYPE_CHECKING:
    from collections.abc import Sequence

CLAIM: Final = "A small lake is rolled up and reported within seconds, without a JVM or with one"

_LAKE: Final = "{lake}"
_PAGE: Final = "{page}"
_WINDOW: Final = ("--window", f"{WINDOW_SECONDS}s")
_WEEK: Final = ("--week", f"{START:%G-W%V}")
_LOCAL: Final = ("--engine", "local")

Command = tuple[str, ...]


class _Figure(NamedTuple):
    """What is measured.

    Attributes:
        timed: Commands whose seconds count, one after the other.
        before: Commands that make the lake what it must be, once.
        empty: Whether there is no lake yet.
    """

    timed: tuple[Command, ...]
    before: tuple[Command, ...] = ()
    empty: bool = False


_REPORT: Final = ("report", _LAKE, *_WEEK, "--html", _PAGE)
_ROLLUP: Final = ("rollup", _LAKE, *_WINDOW)
_FIGURES: Final = {
    "rollup_spark_s": _Figure((_ROLLUP,)),
    "rollup_local_s": _Figure(((*_ROLLUP, *_LOCAL),)),
    "weekly_spark_s": _Figure((("weekly", _LAKE, *_WEEK, "--html", _PAGE),)),
    "weekly_local_s": _Figure((("weekly", _LAKE, *_WEEK, "--html", _PAGE, *_LOCAL),)),
    "report_s": _Figure((_REPORT,), before=(_ROLLUP,)),
    "sample_to_report_s": _Figure(
        (("sample", _LAKE), ("weekly", _LAKE, "--html", _PAGE, *_LOCAL)), empty=True
    ),
}


def seconds(name: str, lake: Path, repeats: int, teller: Teller) -> float | None:
    """The median of a figure; None where a command fails.

    Args:
        name: Of the figure.
        lake: The lake as agents left it; it stays as it is.
        repeats: How often.
        teller: Says what goes on.
    """
    figure = _FIGURES[name]
    teller.say(name)
    with tempfile.TemporaryDirectory(dir=lake.parent) as folder:
        made = Path(folder) / "made"
        try:
            if not figure.empty:
                shutil.copytree(lake, made)
            for command in figure.before:
                _run(command, made)
            return statistics.median(
                _one(figure, made, Path(folder) / f"copy-{number}") for number in range(repeats)
            )
        except FailedError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return None


def _one(figure: _Figure, made: Path, copy: Path) -> float:
    if not figure.empty:
        shutil.copytree(made, copy)
    took = sum(_run(command, copy) for command in figure.timed)
    shutil.rmtree(copy)
    return took


def _run(command: Command, lake: Path) -> float:
    places = {_LAKE: str(lake), _PAGE: str(lake.with_suffix(".html"))}
    line = [script("jmxlake"), *(places.get(one, one) for one in command)]
    return measure(line).seconds


def figures(
    folder: Path, seed: int, names: Sequence[str], repeats: int, teller: Teller
) -> dict[str, float | None]:
    """Make the lake, and measure."""
    lake = folder / "lake"
    written = small_lake.write(lake, World(seed))
    teller.say(f"{written.runs:,} runs of four sources in two minutes")
    found: dict[str, float | None] = {"runs": written.runs}
    for name in names:
        took = seconds(name, lake, repeats, teller)
        found[name] = None if took is None else round(took, 1)
    return found


def main() -> int:
    """Measure, tell, and print the one line that machines read."""
    parser = against.parser(__doc__)
    parser.add_argument("--seed", type=int, default=World.seed, help="of the lake")
    parser.add_argument("--repeats", type=int, default=3, help="processes for each figure (3)")
    parser.add_argument(
        "--only", nargs="*", choices=_FIGURES, default=list(_FIGURES), help="these figures only"
    )
    chosen = parser.parse_args()
    teller = Teller()
    with tempfile.TemporaryDirectory(prefix="jmxlake-bench-") as folder:
        found = figures(Path(folder), chosen.seed, chosen.only, chosen.repeats, teller)
    table = new_table("A small lake: medians of fresh processes", "seconds")
    for name in chosen.only:
        table.add_row(name, "failed" if found[name] is None else f"{found[name]:.1f}")
    teller.show(table)
    print(json.dumps({"claim": CLAIM, "figures": found, "ratios": {}}))
    return 0


if __name__ == "__main__":
    sys.exit(against.run("bench.small", main, ".*_s", "--repeats", "1"))
