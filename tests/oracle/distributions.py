"""gold/distributions in plain Python: time per value, in exponential buckets."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tests.oracle import claims
from tests.oracle.intervals import cuts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.oracle.intervals import Span
    from tests.oracle.plain import Key, Rows
    from tests.oracle.rows import Run

_OTHER = "__other__"
_NEAR_ZERO = 1e-12


def distributions(runs: list[Run]) -> Rows:
    """Return rows by cluster, window, metric, subject, sign and bucket."""
    asked = [
        run
        for run in runs
        if "distribution" in run.flags
        and not run.counter
        and run.value is not None
        and _OTHER not in (run.topic, run.client_id)
    ]
    rows: defaultdict[Key, dict[str, Any]] = defaultdict(
        lambda: {"series_us": 0, "value_seconds": Fraction()}
    )
    for key, value, duration in (*_of_topics(asked), *_of_others(asked)):
        row = rows[(*key, *bucket(float(value)))]
        row["series_us"] += duration
        row["value_seconds"] += Fraction(value) * duration / 1_000_000
    return {key: {**row, "value_seconds": float(row["value_seconds"])} for key, row in rows.items()}


def bucket(value: float) -> tuple[int, int]:
    """Return sign and bucket i, for absolute values above 2^(i/64) up to 2^((i+1)/64)."""
    if abs(value) <= _NEAR_ZERO:
        return 0, 0
    return (1 if value > 0 else -1), math.ceil(math.log2(abs(value)) * 64) - 1


def _of_topics(runs: list[Run]) -> Iterator[tuple[Key, Fraction, int]]:
    """Yield values of partitions per topic, and totals of metrics that brokers report per topic."""
    for (cluster, window, metric, topic), subject in claims.topics(runs).items():
        key = (cluster, window, metric, topic, None, None, None, None)
        brokers = []
        for name, atom in subject.atoms.items():
            if name[0] == "partition":  # type: ignore[index]
                yield from ((key, value, end - start) for (start, end), value in atom.values())
            else:
                brokers += atom.values()
        for start, end, value in _totals(brokers):
            yield key, value, end - start


def _totals(values: list[tuple[Span, Fraction]]) -> Iterator[tuple[int, int, Fraction]]:
    for start, end in cuts(span for span, _ in values):
        held = [value for span, value in values if span[0] <= start and end <= span[1]]
        if held:
            yield start, end, sum(held, Fraction())


def _of_others(runs: list[Run]) -> Iterator[tuple[Key, Fraction, int]]:
    """Yield values of clients, groups and sources, per series."""
    for run in runs:
        value, length = Fraction(run.value or 0.0), run.end - run.start
        place = (run.cluster, run.window, run.metric)
        if run.level == "client":
            for client in run.clients or ((run.user, run.client_id),):
                yield (*place, None, *client, None, None), value, length
        elif run.level == "group":
            key = (*place, run.topic, None, None, run.group, None)
            yield key, value, length * run.series
        elif run.level == "source":
            yield (*place, None, None, None, None, run.source), value, length * run.series
