"""Which model forecasts weeks best: ``python -m bench.forecast``.

Of every history the thirteen weeks before an origin are shown, and the four after it are held out.
What is scored is the pinball loss at 10, 50 and 90 % on the scale of trends (see
``lakehouse.slo.trends.weeks.scale``), and how often the interval held the truth.
"""

from __future__ import annotations

import json
import math
import random
import sys
import time
import warnings
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from rich import box
from rich.table import Table

from bench import against
from bench.forecast_models import MODELS
from bench.forecast_weeks import WEEKS, histories
from bench.teller import Teller
from lakehouse.slo.trends.forecast import AHEAD, Ahead
from lakehouse.slo.trends.weeks import WEEKS as SHOWN, scale, share_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_ORIGINS: Final = range(SHOWN, WEEKS - AHEAD + 1, AHEAD)
_QUANTILES: Final = (0.1, 0.5, 0.9)
_MISSING: Final = 0.1
_NAIVE: Final = "seasonal naive"


class Score:
    """What a model came to."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.minutes: list[float] = []
        self.held: list[bool] = []
        self.seconds = 0.0
        self.failed = 0

    def add(self, told: Sequence[Ahead], true: Sequence[float]) -> None:
        """The weeks ahead, as forecast and as they came."""
        for one, share in zip(told, true, strict=True):
            value, low = scale(share), max(0.0, one.low)
            self.losses.extend(map(_loss, _QUANTILES, (low, one.middle, one.high), [value] * 3))
            self.minutes.append(abs(share_of(one.middle) - share) * 10_080)
            self.held.append(low <= value <= one.high)

    def figures(self) -> dict[str, Any]:
        """Means over all weeks."""
        count = len(self.held)
        return {
            "loss": round(math.fsum(self.losses) / len(self.losses), 4),
            "minutes_off": round(math.fsum(self.minutes) / count, 1),
            "held_percent": round(100 * sum(self.held) / count, 1),
            "ms": round(1e3 * self.seconds / count * AHEAD, 1),
            "failed": self.failed,
        }


def _loss(quantile: float, told: float, true: float) -> float:
    return (quantile if true >= told else quantile - 1) * (true - told)


def trials(subjects: int, seed: int) -> Iterator[tuple[str, list[float | None], list[float]]]:
    """Kind, the weeks that are shown, the weeks that are held out; also with weeks missing."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    for kind, all_shares in histories(subjects, seed).items():
        for shares in all_shares:
            for origin in _ORIGINS:
                shown: list[float | None] = [scale(s) for s in shares[origin - SHOWN : origin]]
                held_out = shares[origin : origin + AHEAD]
                yield kind, shown, held_out
                holes = [None if rng.random() < _MISSING else week for week in shown]
                yield f"{kind}, weeks missing", holes, held_out


def measure(subjects: int, seed: int, teller: Teller) -> dict[str, dict[str, Score]]:
    """Scores by kind and model."""
    scores: defaultdict[str, defaultdict[str, Score]] = defaultdict(lambda: defaultdict(Score))
    every = list(trials(subjects, seed))
    for name, model in MODELS.items():
        teller.say(name)
        for kind, shown, held_out in every:
            for row in (kind, "all"):
                _try(scores[row][name], model, shown, held_out)
    return {kind: dict(of_kind) for kind, of_kind in scores.items()}


def _try(
    score: Score, model: Callable[..., list[Ahead]], shown: list[float | None], true: list[float]
) -> None:
    began = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits that did not settle: their score tells
            told = model(shown, AHEAD)
    except Exception:  # noqa: BLE001 - whatever it is, there is no forecast then
        score.failed += 1
        told = MODELS[_NAIVE](shown, AHEAD)
    if any(math.isnan(number) for one in told for number in one):
        score.failed += 1
        told = MODELS[_NAIVE](shown, AHEAD)
    score.seconds += time.perf_counter() - began
    score.add(told, true)


def show(scores: dict[str, dict[str, Score]]) -> Table:
    """A row for each model, loss by loss of the naive one."""
    table = Table(title="Four weeks ahead", box=box.SIMPLE_HEAD, title_justify="left")
    table.add_column("", no_wrap=True)
    columns = ("loss by naive's", "minutes off", "held %", "ms", "failed")
    for column in columns:
        table.add_column(column, justify="right")
    for kind in (kind for kind in scores if "missing" not in kind):
        table.add_section()
        naive = scores[kind][_NAIVE].figures()["loss"]
        for name, score in scores[kind].items():
            told = score.figures()
            rest = (told[key] for key in ("minutes_off", "held_percent", "ms", "failed"))
            table.add_row(f"{kind}: {name}", f"{told['loss'] / naive:.3f}", *map(str, rest))
    return table


def main() -> int:
    """Measure, tell, and print the one line that machines read."""
    parser = against.parser(__doc__)
    parser.add_argument("--subjects", type=int, default=20, help="of each kind (20)")
    parser.add_argument("--seed", type=int, default=164, help="other histories (164)")
    chosen = parser.parse_args()
    teller = Teller()
    scores = measure(chosen.subjects, chosen.seed, teller)
    teller.show(show(scores))
    told = {kind: {m: s.figures() for m, s in by.items()} for kind, by in scores.items()}
    naive = told["all"][_NAIVE]["loss"]
    ratios = {name: round(figures["loss"] / naive, 3) for name, figures in told["all"].items()}
    print(json.dumps({"claim": CLAIM, "figures": told, "ratios": ratios}))
    return 0


CLAIM: Final = "The chosen model forecasts held-out weeks better than the seasonal naive one does"


if __name__ == "__main__":
    sys.exit(against.run("bench.forecast", main, r"all\..*\.(loss|ms)"))
