"""What a rollup is about: versions of bronze, and hours of clusters."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final, NamedTuple

FIRST: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
LAST: Final = dt.datetime(9998, 12, 31, 23, tzinfo=dt.UTC)
"""Instants that Python, Spark and partitions have names for."""


class Versions(NamedTuple):
    """Versions of bronze that are read together."""

    runs: int
    scrapes: int
    members: int


class Pair(NamedTuple):
    """An hour of a cluster: what is recomputed at once."""

    cluster: str
    hour: dt.datetime


@dataclass(frozen=True, slots=True)
class Units:
    """Hours of clusters that are recomputed together: every hour for every cluster named here.

    Rarely more than needed, and the predicates stay two plain lists.
    """

    clusters: tuple[str, ...]
    hours: tuple[dt.datetime, ...]

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.clusters)

    @property
    def pairs(self) -> frozenset[Pair]:
        """Every hour of every cluster."""
        return frozenset(Pair(cluster, hour) for cluster in self.clusters for hour in self.hours)
