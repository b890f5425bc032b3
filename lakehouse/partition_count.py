"""How many partitions topics had while they were wholly seen, and what is to be expected of these.

gold/subjects has the number that was reported last. A topic that grew had fewer before, and one
that was made again may have had more. While a topic is wholly seen, as many are seen as there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lakehouse.gold_rows import is_one_of
from lakehouse.metrics import UNAVAILABLE, UNDER_MIN_ISR

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from lakehouse.gold_rows import GoldRows
    from lakehouse.rollup.engine import Relation

_COUNTED_AS: Final = (UNDER_MIN_ISR, UNAVAILABLE)
"""A partition of which it is reported that it has no leader is in the second, not in the first."""


def by_count(
    gold: GoldRows, sli: Relation, topics: Relation, metrics: Collection[str]
) -> list[tuple[str, str, str | None, int, int]]:
    """How long topics were wholly seen, by how many partitions they had then.

    Args:
        gold: Where the rows are from.
        sli: Rows of gold/sli.
        topics: Rows of gold/topics of the same windows; of an hour the count is the greatest in it.
        metrics: Those of partitions that are asked for.

    Returns:
        cluster, objective, topic, count (0 where nobody reports it), microseconds.
    """
    rows = gold.ask(
        # Rows that an older version rolled up do not say it: there no bad time counts as seen.
        f"""
        SELECT s.cluster, s.objective, s.topic, coalesce(t.count, 0) AS count,
            CAST(sum(coalesce(s.seen_us, s.good_us)) AS BIGINT) AS us
        FROM {{sli}} s LEFT JOIN (
            SELECT r.cluster, r.topic, r.window AS window, max(r.series) AS count FROM {{topics}} r
            WHERE {is_one_of("r.metric", sorted({*_COUNTED_AS, *metrics}))}
            GROUP BY r.cluster, r.topic, r.window) t
        ON t.cluster = s.cluster AND t.topic = s.topic AND t.window = s.window
        WHERE coalesce(s.seen_us, s.good_us) > 0
        GROUP BY s.cluster, s.objective, s.topic, coalesce(t.count, 0)
        """,
        sli=sli,
        topics=topics,
    )
    names = ("cluster", "objective", "topic", "count", "us")
    return [tuple(row[name] for name in names) for row in rows]


def expected_us(
    lived_us: int, seen: Mapping[int, int], series: int | None, told: int | None
) -> int | None:
    """Time in which a topic's partitions existed, summed over them; never too short.

    The rest of the time there may have been as many as ever in the period.

    Args:
        lived_us: Time in which the topic existed.
        seen: How long it was wholly seen, by how many partitions it had then.
        series: Most partitions that were seen at once; of a topic that was not wholly seen then
            there was one more, at least.
        told: How many there are, as reported last.

    Returns:
        Microseconds; None: nobody reported any partition.
    """
    counted = {count: us for count, us in seen.items() if count}
    whole = max(counted, default=0)
    more = series + 1 if series and series > whole else 0
    most = max(told or 0, whole, more)
    if not most:
        return None
    rest = max(0, lived_us - sum(counted.values()))
    return sum(count * us for count, us in counted.items()) + most * rest
