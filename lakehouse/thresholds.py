"""Totals of a metric over a topic's brokers, and what they may have been in between.

An objective with a threshold asks when a total was above it. A value is known at the instants at
which it was read: between two of them it was either one. So within a run's edges its value may be
the neighbour's as well, or none where there is no neighbour; and the total's bounds are the sums
of the least and of the most of each series.

A window does not look at the next one. So where a total falls below the threshold from one value
above zero to another, and a window ends within that edge, what lies before the window's end counts
as surely above: the lower bound is too high by one interval of scrapes, at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from lakehouse import claims, edges, sweep
from lakehouse.claims import TOPIC_KEYS
from lakehouse.edges import BOUNDED
from lakehouse.pieces import WINDOW, quoted, with_

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from lakehouse.bronze import Bronze

_ATOM: Final = (*TOPIC_KEYS, "partition", "part")
_SERIES: Final = (*_ATOM, "source", "agent")


def topic_events(bronze: Bronze, metrics: Sequence[str]) -> DataFrame:
    """Events of topics that carry BOUNDED, for a sweep over TOPIC_KEYS.

    Args:
        bronze: What is read.
        metrics: Their metrics; of one that is told per partition the total is over partitions.
    """
    if not {*metrics} <= {*bronze.survey.totalled}:  # of partitions, whose runs were put together
        bronze = bronze.as_written()
    pieces = claims.in_each_window(bronze, claims.topic_pieces(bronze, metrics))
    each = F.explode(F.coalesce("partitions", F.array("partition")))
    pieces = bronze.with_sets(pieces).withColumn("partition", each)
    # What is told of the topic itself are parts of one figure, each broker's its own.
    part = F.concat_ws(" ", "source", F.to_json("labels"))
    told = {"part": F.when(F.col("partition").isNull(), part), "weight": F.lit(1)}
    rows = _with_edges(pieces.withColumns(told))
    claimed = edges.events(rows, _ATOM, BOUNDED).unionByName(edges.uncertain(rows, _ATOM))
    atoms = sweep.atoms(sweep.sweep(claimed, _ATOM, BOUNDED), _ATOM, BOUNDED)
    return sweep.again(atoms, TOPIC_KEYS, BOUNDED)


def _with_edges(pieces: DataFrame) -> DataFrame:
    """Pieces with ``lead_from`` and ``tail_from``, and by how much the bounds differ in there.

    Where one run follows another of its series there is one edge, the later one's.
    """
    along = Window.partitionBy(*quoted(_SERIES)).orderBy("s")
    follows = F.lag("e").over(along) == F.col("s")
    beside = pieces.withColumns(
        {
            "before": F.when(follows, F.lag("val").over(along)),
            "tail_before": F.when(follows, F.lag("tail_us").over(along)),
            "is_followed": F.coalesce(F.lead("s").over(along) == F.col("e"), F.lit(False)),  # noqa: FBT003
        }
    )
    change, lead = "val - coalesce(before, 0D)", "greatest(lead_us, coalesce(tail_before, 0L))"
    return with_(
        beside,
        {
            "lead_from": f"greatest({WINDOW}, s - {lead})",
            "spilled_us": f"IF({change} > 0, greatest(0L, {lead} - (s - {WINDOW})), 0L)",
            "rise": f"greatest({change}, 0D)",
            "fall": f"greatest(-({change}), 0D)",
            "tail_from": "IF(is_followed, e, greatest(s, e - tail_us))",
            "sink": "greatest(val, 0D)",
            "lift": "-least(val, 0D)",
        },
    )
