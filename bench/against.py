"""Compare this tree with another commit in one run: ``BENCH="--against COMMIT"``.

The same benchmark runs with the product of either tree in turn (A B A B ...), so that what else the
machine does meets both. A ratio is the median over pairs of ours now by theirs then: below 1 is
faster than before.

The commit's tree gets ``bench``, ``demo`` and ``tests/rig`` of this tree. Both then do the same
work on the same version of Kafka. If they cannot be imported there, the commit's own run. Both use
the packages of this environment.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

PAIRS: Final = 5
_OPTION: Final = "--against"
_PAIRS_OPTION: Final = "--pairs"
_ROOT: Final = Path(__file__).parents[1]
_BENCHMARKS: Final = ("bench", "demo", "tests/rig")
_UNIT: Final = re.compile(r"_(s|ms|us|mb|mib|gib|seconds)$")
CLAIM: Final = "Below 1: less than at the commit before, as the median of pairs in one run"

Figures = dict[str, float]


class AgainstError(Exception):
    """The two trees cannot be compared; one line."""


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with the options of every benchmark."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument(_OPTION, metavar="COMMIT", help="compare with a commit, in turn")
    made.add_argument(_PAIRS_OPTION, type=_pairs, default=PAIRS, help=f"how often ({PAIRS})")
    return made


def _pairs(text: str) -> int:
    if (number := int(text)) < PAIRS:
        raise argparse.ArgumentTypeError(f"at least {PAIRS}: fewer say nothing on a busy machine")
    return number


def run(
    module: str,
    main: Callable[[], int],
    timed: str,
    *more: str,
    within: Callable[[], AbstractContextManager[Sequence[str]]] = lambda: nullcontext(()),
) -> int:
    """Run a benchmark, or compare it with another commit if that is asked for.

    Args:
        module: The benchmark, such as ``bench.small``.
        main: Measures, and prints a last line of JSON.
        timed: A pattern of the names of the figures that are compared; of a nested one its path
            with dots.
        more: Options of each run of a comparison, such as fewer repeats: pairs repeat, too.
        within: Context with further arguments, such as the address of a broker for both trees.
    """
    own = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    own.add_argument(_OPTION)
    own.add_argument(_PAIRS_OPTION, type=_pairs, default=PAIRS)
    chosen, rest = own.parse_known_args()
    if chosen.against is None or {"-h", "--help"} & {*rest}:
        return main()
    try:
        with within() as arguments:
            options = [*more, *rest, *arguments]
            told = compare(module, options, chosen.against, chosen.pairs, timed)
    except AgainstError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(json.dumps({"claim": CLAIM, **told}))
    return 0


def compare(
    module: str, arguments: Sequence[str], commit: str, pairs: int, timed: str
) -> dict[str, Any]:
    """Both trees' figures as medians, and their ratios, with those that this tree's runs have."""
    with tempfile.TemporaryDirectory(prefix="jmxlake-against-") as folder:
        theirs = checked_out(_ROOT, commit, Path(folder) / "tree", module)
        ours: list[dict[str, Any]] = []
        before: list[dict[str, Any]] = []
        for number in range(pairs):
            for tree, found in ((theirs, before), (_ROOT, ours)):
                name = commit if tree is theirs else "this tree"
                print(f"pair {number + 1} of {pairs}: {name}", file=sys.stderr)
                found.append(_measured(tree, module, arguments))
    ours_now, theirs_then = ([picked(told, timed) for told in each] for each in (ours, before))
    if not all((*ours_now, *theirs_then)):
        raise AgainstError(f"{module} measured none of the figures that are compared; see above")
    return {
        "figures": {
            **medians(ours_now),
            **{f"{name}_before": value for name, value in medians(theirs_then).items()},
            "pairs": pairs,
        },
        "ratios": {**medians(own_ratios(ours)), **ratios(ours_now, theirs_then)},
    }


def checked_out(root: Path, commit: str, folder: Path, module: str) -> Path:
    """The tree of a commit, with this tree's benchmarks if they can be imported in it.

    Raises:
        AgainstError: There is no such commit.
    """
    packed = subprocess.run(
        ["git", "-C", str(root), "archive", "--format=tar", commit],
        capture_output=True,
        check=False,
    )
    if packed.returncode:
        said = packed.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise AgainstError(
            f"{_OPTION} {commit}: {' '.join(said)}; name a commit of this repository"
        )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as tree:
        tree.extractall(folder, filter="data")
    if (cache := root / ".cache").exists():
        (folder / ".cache").symlink_to(cache.resolve())  # jars
    then = folder.with_name("then")
    _exchange(folder, then, root)
    if (then / "bench").exists() and _imported(folder, module):
        print(f"{module} of {commit} runs, as this tree's does not fit it", file=sys.stderr)
        _exchange(folder, folder.with_name("now"), then)
    if why := _imported(folder, module):
        raise AgainstError(f"{_OPTION} {commit}: {module} cannot be run there: {why}")
    for each in (folder, root):  # else the first run of one of them compiles
        subprocess.run(
            [sys.executable, "-m", "compileall", "-q", *_packages(each)], cwd=each, check=False
        )
    return folder


def _exchange(tree: Path, aside: Path, source: Path) -> None:
    """Put the benchmarks of another tree into a tree, and its own aside."""
    for name in _BENCHMARKS:
        if (tree / name).exists():
            shutil.copytree(tree / name, aside / name)
            shutil.rmtree(tree / name)
        if (source / name).exists():
            skipped = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source / name, tree / name, ignore=skipped)


def _packages(tree: Path) -> list[str]:
    names = (*_BENCHMARKS, "collector", "lakehouse")
    return [name for name in names if (tree / name).is_dir()]


def _imported(tree: Path, module: str) -> str:
    """Why a module cannot be imported in a tree; empty: it can."""
    done = subprocess.run(
        [sys.executable, "-c", f"import {module}"],
        cwd=tree, env=_environment(tree), capture_output=True, check=False, text=True,
    )  # fmt: skip
    return "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def _environment(tree: Path) -> dict[str, str]:
    """Makes every process import this tree's packages, not those that are installed."""
    return {**os.environ, "PYTHONPATH": str(tree)}


def own_ratios(runs: Sequence[Mapping[str, Any]]) -> list[Figures]:
    """The ratios that a benchmark has by itself, of each of its runs."""
    return [dict(_flat(told.get("ratios", {}))) for told in runs]


def _measured(tree: Path, module: str, arguments: Sequence[str]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=tree, env=_environment(tree), stdout=subprocess.PIPE, check=False, text=True,
    )  # fmt: skip
    lines = done.stdout.strip().splitlines()
    if not lines or not lines[-1].startswith("{"):
        raise AgainstError(f"{module} ended with {done.returncode} and no figures; see above")
    told: dict[str, Any] = json.loads(lines[-1])
    return told


def picked(told: Mapping[str, Any], timed: str) -> Figures:
    """The figures that are compared, of the last line of a benchmark.

    A null stays out: a command that failed took no time.
    """
    wanted = re.compile(timed)
    figures = told.get("figures", told)
    return {name: value for name, value in _flat(figures) if wanted.fullmatch(name)}


def _flat(found: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, float]]:
    if isinstance(found, dict):
        for name, value in found.items():
            yield from _flat(value, (*path, name))
    elif isinstance(found, list):
        for number, value in enumerate(found):
            yield from _flat(value, (*path, str(number)))
    elif isinstance(found, int | float) and not isinstance(found, bool) and math.isfinite(found):
        yield ".".join(path), float(found)


def medians(runs: Sequence[Figures]) -> Figures:
    """The median of each figure that every run has."""
    return {name: round(statistics.median(run[name] for run in runs), 3) for name in _common(runs)}


def ratios(ours: Sequence[Figures], theirs: Sequence[Figures]) -> Figures:
    """By figure: the median over pairs of ours by theirs."""
    return {
        ratio_name(name): round(
            statistics.median(
                mine[name] / other[name] for mine, other in zip(ours, theirs, strict=True)
            ),
            3,
        )
        for name in _common((*ours, *theirs))
        if all(other[name] for other in theirs)
    }


def ratio_name(figure: str) -> str:
    """The name of a figure's ratio: without its unit, and without dots."""
    plain = re.sub(r"\W+", "_", _UNIT.sub("", figure)).strip("_")
    return f"{plain}_vs_commit_before"


def _common(runs: Iterable[Figures]) -> list[str]:
    every = [*runs]
    return [name for name in every[0] if all(name in run for run in every)]
