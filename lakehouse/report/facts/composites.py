"""Composites as the facts have them: weighted means of shares of good time, with their bounds.

An objective's share is the mean over its subjects, by expected time and (of topics) by partitions;
a composite's is the mean over its objectives, by their weights, and so is its target. What was not
seen at all lies between 0 and 1. An objective without a subject is left out of both means.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import Any, Final, NamedTuple, Self

from lakehouse.report.facts.saved import Bounds

BY_OWNER: Final = ("team", "tier")
"""The labels of owners by which there are composites, too."""

_DIGITS: Final = 12
"""Decimals of a mean: fewer than rounding errors change."""

Row = Mapping[str, Any]


class Figures(NamedTuple):
    """A share of good time as the facts have it, and its verdicts."""

    attainment: Bounds
    verdict: str
    interval_verdict: str


class Member(NamedTuple):
    """An objective of a composite, on all of the composite's subjects together."""

    objective: str
    title: str
    window: str
    target: float
    weight: float
    subjects: int
    attainment: Bounds
    verdict: str
    interval_verdict: str


class Composite(NamedTuple):
    """A composite, on all subjects or those of a team or a tier; ``agreed``: with corrections."""

    composite: str
    title: str
    service: str
    team: str | None
    tier: str | None
    target: float | None
    attainment: Bounds
    verdict: str
    interval_verdict: str
    agreed: Figures | None
    objectives: list[Member]


class Share(NamedTuple):
    """A share of good time; every value has a weight.

    Attributes:
        low: The least that it may be.
        high: The most that it may be.
        floor: The least by how the objective takes unknown time.
        ceiling: The most, likewise.
        mid: That of what was seen; None: nothing was.
        weight: The weight of the first two.
        decides: The weight of the next two.
        seen: The weight of ``mid``.
    """

    low: float
    high: float
    floor: float
    ceiling: float
    mid: float | None
    weight: float
    decides: float
    seen: float

    @classmethod
    def of(cls, row: Row, policy: str | None) -> Self:
        """The share of a subject; ``policy`` says how its objective takes unknown time."""
        expected, good, mid = row["expected_us"], row["good_us"], row.get("attainment")
        count, seen = row.get("partitions", 1), good + row["bad_us"]
        if mid is None:
            return cls(0.0, 1.0, 0.0, 1.0, None, count * expected, count * expected, 0.0)
        low, high = row["attainment_low"], row["attainment_high"]
        floor, ceiling, decides = low, high, expected
        if policy == "exclude":
            floor, ceiling, decides = mid, mid, seen
        elif policy in {"good", "bad"}:
            as_good = row["unknown_us"] if policy == "good" else 0
            floor = ceiling = (good + as_good) / expected
        return cls(low, high, floor, ceiling, mid, count * expected, count * decides, count * seen)

    def weighing(self, weight: float) -> Self:
        """The same with another weight."""
        seen = 0.0 if self.mid is None else weight
        return self._replace(weight=weight, decides=weight, seen=seen)


def together(shares: Iterable[Share]) -> Share | None:
    """The mean of some shares; None where none has a weight."""
    known = [one for one in shares if one.weight > 0]
    if not known:
        return None
    return Share(
        _mean((one.weight, one.low) for one in known),
        _mean((one.weight, one.high) for one in known),
        _mean((one.decides, one.floor) for one in known),
        _mean((one.decides, one.ceiling) for one in known),
        _mean((one.seen, one.mid) for one in known if one.mid is not None)
        if any(one.seen for one in known)
        else None,
        *(fsum(column) for column in zip(*(one[-3:] for one in known), strict=True)),
    )


def figures(share: Share | None, target: float | None) -> Figures:
    """A share against a target."""
    if share is None or share.mid is None or target is None:
        return Figures(Bounds(None, None, None), "no_data", "no_data")
    verdicts = (_verdict(*ends, target) for ends in (share[2:4], share[:2]))
    return Figures(Bounds(share.mid, share.low, share.high), *verdicts)


def _verdict(low: float, high: float, target: float) -> str:
    if low >= target:
        return "met"
    return "missed" if high < target else "uncertain"


def _mean(weighted: Iterable[tuple[float, float]]) -> float:
    pairs = list(weighted)
    total = fsum(weight for weight, _ in pairs)
    return round(fsum(weight * value for weight, value in pairs) / total, _DIGITS)


def composites(objectives: Sequence[Row], labels: Sequence[str] = ()) -> list[Composite]:
    """Each composite on all subjects, then on those of each owner.

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
    """The target and the share of a composite; ``figures_of``: by these figures of subjects."""
    shares, targets = list[Share](), list[tuple[float, float]]()
    for one, part in own:
        rows = ({**row, **(row.get(figures_of) or {})} for row in _rows(one, owner))
        share = together(Share.of(row, one.get("unknown")) for row in rows)
        if share is not None:
            shares.append(share.weighing(part["weight"]))
            targets.append((part["weight"], one["target"]))
    return _mean(targets) if targets else None, together(shares)


def _rows(objective: Row, owner: Row) -> list[Row]:
    return [row for row in objective["subjects"] if owner.items() <= row.items()]


def _member(objective: Row, weight: float, rows: Sequence[Row]) -> Member:
    share = together(Share.of(row, objective.get("unknown")) for row in rows)
    name, title, window, target = (objective[key] for key in ("name", "title", "window", "target"))
    return Member(name, title, window, target, weight, len(rows), *figures(share, target))
