"""Rows that must be set aside, one of each kind at most, among the good ones of a fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.oracle.fleets import Fleet


def sprinkle(made: Fleet, window: float) -> None:
    """One row of each kind that must be set aside, among the others."""
    batch, rng = made.batch, made.rng
    metric, where = "kafka.partition.under_min_isr", {"cluster": made.cluster, "topic": "t"}
    one = {**where, "partition": 0}
    kinds: list[Callable[[], None]] = [
        lambda: batch.run(metric, window + 50, window + 50, 1.0, **one),
        lambda: batch.run(metric, window + 50, window + 40, 1.0, **one),
        lambda: batch.run(metric, window + 290, window + 310, 1.0, **one),
        lambda: batch.run(metric, window + 50, window + 60, 1.0, **one, lead=-1.0),
        lambda: batch.run(metric, window + 50, window + 60, 1.0, **one, tail=-1e-6),
        lambda: batch.run(metric, window + 50, window + 60, 1.0, **one, lead=9e12),
        lambda: batch.run(metric, window + 50, window + 60, float("nan"), **one),
        lambda: batch.run(metric, window + 50, window + 60, float("inf"), **one),
        lambda: batch.run(metric, window + 50, window + 60, -1e300, **one),
        lambda: batch.run("", window + 50, window + 60, 1.0, **one),
        lambda: batch.run("kafka.\x00\n", window + 50, window + 60, 1.0, **one),
        lambda: batch.run("k" * 32_768, window + 50, window + 60, 1.0, **one),
        lambda: batch.run(metric, window, window + 60, 1.0, **{**one, "topic": ""}),
        lambda: batch.run(metric, window, window + 60, 1.0, **{**one, "topic": "n" * 32_768}),
        lambda: batch.run(metric, window, window + 60, 1.0, cluster=made.cluster, partition=1),
        lambda: batch.run(metric, window, window + 60, 1.0, **where, partition=-1),
        lambda: batch.run(metric, window, window + 60, 0.0, **one, series=0),
        lambda: batch.run(metric, window, window + 60, 0.0, **where, series=4),
        lambda: batch.run(metric, window, window + 60, 0.0, **where, series=4, members="nobody's"),
        lambda: _two_contents(made, metric, window),
        lambda: _other_size(made, metric, window),
        lambda: _set_of_another_cluster(made, metric, window),
        lambda: batch.scrape("min_isr", window + 9, window + 9, cluster=made.cluster),
        lambda: _other_date(made, metric, window),
        lambda: _not_zero(made, metric, window),
        lambda: _endless_seconds(made, window),
    ]  # fmt: skip
    for kind in rng.sample(kinds, rng.randint(1, len(kinds))):
        kind()


def _two_contents(made: Fleet, metric: str, window: float) -> None:
    name = made.batch.set_of("partitions", "t", [10, 11], None, made.cluster)
    made.batch.members.append({**made.batch.members[-1], "set": name, "partitions": [10, 12]})
    made.batch.run(
        metric, window, window + 60, 0.0, cluster=made.cluster, topic="t", series=2, members=name
    )


def _other_size(made: Fleet, metric: str, window: float) -> None:
    name = made.batch.set_of("partitions", "t", [20, 21], None, made.cluster)
    made.batch.run(
        metric, window, window + 60, 0.0, cluster=made.cluster, topic="t", series=3, members=name
    )


def _set_of_another_cluster(made: Fleet, metric: str, window: float) -> None:
    name = made.batch.set_of("partitions", "t", [30, 31], None, "elsewhere")
    made.batch.run(
        metric, window, window + 60, 0.0, cluster=made.cluster, topic="t", series=2, members=name
    )


def _not_zero(made: Fleet, metric: str, window: float) -> None:
    name = made.batch.set_of("partitions", "t", [40, 41], None, made.cluster)
    made.batch.run(
        metric, window, window + 60, 1.0, cluster=made.cluster, topic="t", series=2, members=name
    )


def _endless_seconds(made: Fleet, window: float) -> None:
    made.batch.scrape("min_isr", window, window + 60, cluster=made.cluster)
    made.batch.scrapes[-1]["seconds_total"] = 1e300


def _other_date(made: Fleet, metric: str, window: float) -> None:
    made.batch.run(metric, window, window + 60, 1.0, cluster=made.cluster, topic="t", partition=0)
    made.batch.runs[-1]["date"] -= 1
