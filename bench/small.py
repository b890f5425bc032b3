"""How long a person waits for a small lake: ``make bench-small``.

Four sources, two minutes, some 26,900 runs (``bench.small_lake``). Each figure is the median of
fresh processes of ``jmxlake``, from their start to their end, each on a copy of the lake that
nothing else has touched. ``spark_start_s`` is a process that only starts Spark. A figure whose
command fails is null; the standard error says why.
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
from bench.rollup_process import Cost, FailedError, measure, spark_start
from bench.small_lake import START, WINDOW_SECONDS
from bench.small_world import World
from demo.agents import script
from tests.rig.teller import Teller, new_table

if TYPE_CHECKING:
    from collections.abc import Sequence

CLAIM: Final = "A small lake is rolled up and reported within seconds, without a JVM or with one"

_LAKE: Final = "{lake}"
_PAGE: Final = "{page}"
_WINDOW: Final = ("--window", f"{WINDOW_SECONDS}s")
_WEEK: Final = ("--week", f"{START:%G-W%V}")
_LOCAL: Final = ("--engine", "local")
_SPARK: Final = ("--engine", "spark")

Command = tuple[str, ...]


class _Figure(NamedTuple):
    """What is measured.

    Attributes:
        timed: Commands whose seconds count, one after the other.
        before: Commands that make the lake what it must be, once.
        empty: Whether the commands make the lake.
    """

    timed: tuple[Command, ...]
    before: tuple[Command, ...] = ()
    empty: bool = False


_REPORT: Final = ("report", _LAKE, *_WEEK, "--html", _PAGE)
_ROLLUP: Final = ("rollup", _LAKE, *_WINDOW)
_FIGURES: Final = {
    "rollup_spark_s": _Figure(((*_ROLLUP, *_SPARK),)),
    "rollup_local_s": _Figure(((*_ROLLUP, *_LOCAL),)),
    "weekly_spark_s": _Figure((("weekly", _LAKE, *_WEEK, "--html", _PAGE, *_SPARK),)),
    "weekly_local_s": _Figure((("weekly", _LAKE, *_WEEK, "--html", _PAGE, *_LOCAL),)),
    "report_s": _Figure((_REPORT,), before=(_ROLLUP,)),
    "sample_to_report_s": _Figure(
        (("sample", _LAKE), ("weekly", _LAKE, "--html", _PAGE, *_LOCAL)), empty=True
    ),
    **{
        f"sample_rollup_{engine}_s": _Figure(
            (("rollup", _LAKE, "--engine", engine),),
            before=(("sample", _LAKE, "--weeks", "3"),),
            empty=True,
        )
        for engine in ("spark", "local")
    },
}
_START: Final = "spark_start_s"
_NAMES: Final = (_START, *_FIGURES)
_RATIOS: Final = {
    "spark_vs_local_clock": ("sample_rollup_spark_s", "sample_rollup_local_s"),
    "spark_vs_local_cpu": ("sample_rollup_spark_cpu_s", "sample_rollup_local_cpu_s"),
    "small_spark_vs_local": ("rollup_spark_s", "rollup_local_s"),
}


def seconds(name: str, lake: Path, repeats: int, teller: Teller) -> dict[str, float | None]:
    """The medians of a figure and of its processor seconds; None where a command fails.

    Args:
        name: Of the figure.
        lake: The lake as agents left it; it stays as it is.
        repeats: How often.
        teller: Says what goes on.
    """
    cpu_name = f"{name.removesuffix('_s')}_cpu_s"
    teller.say(name)
    with tempfile.TemporaryDirectory(dir=lake.parent) as folder:
        try:
            each = _each(name, lake, Path(folder), repeats)
            clock, cpu = (round(statistics.median(values), 1) for values in zip(*each, strict=True))
        except FailedError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return {name: None, cpu_name: None}
    return {name: clock, cpu_name: cpu}


def _each(name: str, lake: Path, folder: Path, repeats: int) -> list[tuple[float, float]]:
    """Seconds and processor seconds of each repeat."""
    if name == _START:
        return [spark_start()[:2] for _ in range(repeats)]
    figure, made = _FIGURES[name], folder / "made"
    if not figure.empty:
        shutil.copytree(lake, made)
    for command in figure.before:
        _run(command, made)
    return [_one(figure, made, folder / f"{number}") for number in range(repeats)]


def _one(figure: _Figure, made: Path, copy: Path) -> tuple[float, float]:
    if made.exists():
        shutil.copytree(made, copy)
    costs = [_run(command, copy) for command in figure.timed]
    shutil.rmtree(copy)
    return sum(one.seconds for one in costs), sum(one.cpu_seconds for one in costs)


def _run(command: Command, lake: Path) -> Cost:
    places = {_LAKE: str(lake), _PAGE: str(lake.with_suffix(".html"))}
    line = [script("jmxlake"), *(places.get(one, one) for one in command)]
    return measure(line)


def figures(
    folder: Path, seed: int, names: Sequence[str], repeats: int, teller: Teller
) -> dict[str, float | None]:
    """Make the lake, and measure."""
    lake = folder / "lake"
    written = small_lake.write(lake, World(seed))
    teller.say(f"{written.runs:,} runs of four sources in two minutes")
    found: dict[str, float | None] = {"runs": written.runs}
    for name in names:
        found |= seconds(name, lake, repeats, teller)
    return found


def ratios(found: dict[str, float | None]) -> dict[str, float]:
    """Spark by this process, where both are known."""
    pairs = {name: [found.get(one) for one in both] for name, both in _RATIOS.items()}
    return {
        name: round(spark / local, 2) for name, (spark, local) in pairs.items() if spark and local
    }


def main() -> int:
    """Measure, tell, and print the one line that machines read."""
    parser = against.parser(__doc__)
    parser.add_argument("--seed", type=int, default=World.seed, help="of the lake")
    parser.add_argument("--repeats", type=int, default=3, help="processes for each figure (3)")
    parser.add_argument(
        "--only", nargs="*", choices=_NAMES, default=_NAMES, help="these figures only"
    )
    chosen = parser.parse_args()
    teller = Teller()
    with tempfile.TemporaryDirectory(prefix="jmxlake-bench-") as folder:
        found = figures(Path(folder), chosen.seed, chosen.only, chosen.repeats, teller)
    table = new_table("A small lake: medians of fresh processes", "seconds")
    for name in chosen.only:
        table.add_row(name, "failed" if found[name] is None else f"{found[name]:.1f}")
    teller.show(table)
    print(json.dumps({"claim": CLAIM, "figures": found, "ratios": ratios(found)}))
    return 0


if __name__ == "__main__":
    sys.exit(against.run("bench.small", main, ".*_s", "--repeats", "1"))
