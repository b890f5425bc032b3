"""Composites in report data: weighted means of attainments, with their bounds.

An objective's share is the mean over its subjects, weighted by expected time and, for topics, by
partitions. A composite's share and target are means over its objectives, by their weights. A share
without any observation is between 0 and 1. An objective without a subject is left out of both
means.
"""

from collections.abc import Iterable, Sequence
from math import fsum
from statistics import fmean
from typing import Annotated, Final, NamedTuple, Self

from lakehouse.report.facts.fields import (
    INTERVAL_VERDICT,
    OBJECTIVE,
    TARGET,
    TITLE,
    VERDICT,
    Bounds,
    Means,
)
from lakehouse.report.figures import Row
from lakehouse.slo.sla_statement import verdict_between

BY_OWNER: Final = ("team", "tier")
"""Labels of owners with composites of their own."""

_DIGITS: Final = 12
"""Decimals of a mean. Rounding errors change further decimals."""


SHARE: Final = Means(
    "weighted mean of the attainments of its subjects, 0 to 1; its bounds count unknown time as "
    "bad and as good"
)


class Figures(NamedTuple):
    """A share of good time, and its verdicts."""

    attainment: Annotated[Bounds, SHARE]
    verdict: Annotated[str, VERDICT]
    interval_verdict: Annotated[str, INTERVAL_VERDICT]


class Member(NamedTuple):
    """An objective of a composite, on all of the composite's subjects together."""

    objective: Annotated[str, OBJECTIVE]
    title: Annotated[str, TITLE]
    weight: Annotated[float, Means("weight in the composite")]
    target: Annotated[float, TARGET]
    window: Annotated[str, Means("window of the objective, such as 1w or 28d")]
    subjects: Annotated[int, Means("number of subjects; 0: the objective is left out")]
    attainment: Annotated[Bounds, SHARE]
    verdict: Annotated[str, VERDICT]
    interval_verdict: Annotated[str, INTERVAL_VERDICT]


class Composite(NamedTuple):
    """A composite on all subjects, or on the subjects of a team or a tier."""

    composite: Annotated[str, Means("name of the composite")]
    title: Annotated[str, Means("title of the composite")]
    service: Annotated[str, Means("service that it is on")]
    team: Annotated[str | None, Means("team whose subjects these are; empty: all")]
    tier: Annotated[str | None, Means("tier whose subjects these are; empty: all")]
    target: Annotated[float | None, Means("weighted mean of the targets of its objectives")]
    attainment: Annotated[Bounds, SHARE]
    verdict: Annotated[str, VERDICT]
    interval_verdict: Annotated[str, INTERVAL_VERDICT]
    agreed: Annotated[Figures | None, Means("with corrections")]
    objectives: Annotated[list[Member], Means("its objectives")]


class Part(NamedTuple):
    """A share of good time between two bounds, and its weight."""

    weight: float
    low: float
    high: float


class Share(NamedTuple):
    """A share of good time.

    Attributes:
        whole: The share for any meaning of unknown time.
        decides: The share with unknown time as the objective counts it.
        seen: The share of observed time, without weight if there is none.
    """

    whole: Part
    decides: Part
    seen: Part

    @classmethod
    def of(cls, row: Row, policy: str | None) -> Self:
        """Return the share of a subject; ``policy``: how its objective counts unknown time."""
        expected, good, mid = row["expected_us"], row["good_us"], row.get("attainment")
        count = row.get("partitions", 1)
        if mid is None:
            anything = Part(count * expected, 0.0, 1.0)
            return cls(anything, anything, Part(0.0, 0.0, 0.0))
        whole = Part(count * expected, row["attainment_low"], row["attainment_high"])
        seen = Part(count * (good + row["bad_us"]), mid, mid)
        if policy not in {"good", "bad"}:
            return cls(whole, seen if policy == "exclude" else whole, seen)
        as_good = row["unknown_us"] if policy == "good" else 0
        taken = (good + as_good) / expected
        return cls(whole, Part(whole.weight, taken, taken), seen)

    def weighing(self, weight: float) -> Self:
        """Return the same share with another weight."""
        return type(self)(*(one._replace(weight=weight if one.weight else 0.0) for one in self))


def together(shares: Iterable[Share]) -> Share | None:
    """Return the mean of some shares; None without any weight."""
    known = [one for one in shares if one.whole.weight > 0]
    return Share._make(map(_joined, zip(*known, strict=True))) if known else None


def _joined(parts: Sequence[Part]) -> Part:
    weights, lows, highs = zip(*parts, strict=True)
    if not any(weights):
        return Part(0.0, 0.0, 0.0)
    return Part(fsum(weights), _mean(lows, weights), _mean(highs, weights))


def figures(share: Share | None, target: float | None) -> Figures:
    """Return the figures of a share, judged by a target."""
    if share is None or not share.seen.weight or target is None:
        return Figures(Bounds(), "no_data", "no_data")
    verdicts = (verdict_between(it.low, it.high, target) for it in (share.decides, share.whole))
    return Figures(Bounds(share.seen.low, share.whole.low, share.whole.high), *verdicts)


def _mean(values: Sequence[float], weights: Sequence[float]) -> float:
    return round(fmean(values, weights), _DIGITS)


def composites(objectives: Sequence[Row], labels: Sequence[str] = ()) -> list[Composite]:
    """Return each composite on all subjects, then on the subjects of each owner.

    Args:
        objectives: As in the facts.
        labels: Labels of owners.
    """
    parts = [(one, part) for one in objectives for part in one.get("composites") or ()]
    found = []
    for name in dict.fromkeys(part["composite"] for _, part in parts):
        own = [(one, part) for one, part in parts if part["composite"] == name]
        rows = [row for one, _ in own for row in one["subjects"]]
        owners = [
            {key: value}
            for key in labels
            for value in sorted({row[key] for row in rows if row.get(key)})
        ]
        found += [_composite(own, owner) for owner in ({}, *owners)]
    return found


def _composite(own: Sequence[tuple[Row, Row]], owner: Row) -> Composite:
    target, share = _weighed(own, owner)
    corrected = any(row.get("agreed") for one, _ in own for row in _rows(one, owner))
    agreed = figures(*_weighed(own, owner, "agreed")[::-1]) if corrected else None
    part = own[0][1]
    return Composite(
        part["composite"], part["title"], part["service"], owner.get("team"), owner.get("tier"),
        target, *figures(share, target), agreed,
        [_member(one, part["weight"], _rows(one, owner)) for one, part in own],
    )  # fmt: skip


def _weighed(
    own: Sequence[tuple[Row, Row]], owner: Row, figures_of: str = ""
) -> tuple[float | None, Share | None]:
    """Return the target and the share of a composite; ``figures_of``: the subjects' figures."""
    shares, targets = list[Share](), list[tuple[float, float]]()
    for one, part in own:
        rows = ({**row, **(row.get(figures_of) or {})} for row in _rows(one, owner))
        share = together(Share.of(row, one.get("unknown")) for row in rows)
        if share is not None:
            shares.append(share.weighing(part["weight"]))
            targets.append((one["target"], part["weight"]))
    return _mean(*zip(*targets, strict=True)) if targets else None, together(shares)


def _rows(objective: Row, owner: Row) -> list[Row]:
    return [row for row in objective["subjects"] if owner.items() <= row.items()]


def _member(objective: Row, weight: float, rows: Sequence[Row]) -> Member:
    share = together(Share.of(row, objective.get("unknown")) for row in rows)
    name, title, window, target = (objective[key] for key in ("name", "title", "window", "target"))
    return Member(name, title, weight, target, window, len(rows), *figures(share, target))
