"""How long topics were not wholly seen, and what that makes unknown of their partitions.

Of a topic time is unknown while it is neither good nor seen to be bad. But while one partition is
bad, another may be unseen: then it is unknown of the other one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from lakehouse import partitions as parts
from lakehouse import tables
from lakehouse.gold_rows import is_one_of
from lakehouse.metrics import UNAVAILABLE

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from lakehouse.report.gather import Gold
    from lakehouse.sla import Statement


class Unseen(NamedTuple):
    """Of one topic; microseconds, None: nothing is promised of it, so nobody reckoned.

    Attributes:
        expected_us: Time in which it existed.
        us: Time in which not all its partitions were seen.
        counted: How long it was wholly seen, by how many partitions it had then.
    """

    expected_us: int | None = None
    us: int | None = None
    counted: Mapping[int, int] = MappingProxyType({})

    def alone(self, found: Mapping[str, Any]) -> int | None:
        """What is unknown of one partition, at most.

        Gold has rows of it only where it was not zero; the rest, the topic knows.

        Args:
            found: What gold has of it; it was seen while it was bad.
        """
        if self.expected_us is None or self.us is None:
            return None
        return min(self.us, max(0, self.expected_us - (found.get("positive_us") or 0)))

    def together(self, partitions: int | None, found: Mapping[str, Any]) -> int | None:
        """What is unknown of all partitions, summed over them, at most.

        Args:
            partitions: How many there are, as told last.
            found: What gold has of the topic.
        """
        if self.expected_us is None or partitions is None:
            return None
        series = found.get("series")
        expected = parts.expected_us(self.expected_us, self.counted, series, partitions)
        return max(0, (expected or 0) - (found.get("observed_us") or 0))


def unseen(gold: Gold, stated: Sequence[Statement]) -> Mapping[str, Unseen]:
    """By topic; of a topic that is not there, nobody knows."""
    found: defaultdict[str, Unseen] = defaultdict(Unseen)
    asked = [one for one in stated if one.objective.metric == UNAVAILABLE]
    seen = _wholly_seen(gold, {one.objective.name for one in asked}) if asked else {}
    for one in asked:
        topic, whole = str(one.subject.topic), one.whole_us
        counted = seen.get(topic, {})
        found[topic] = Unseen(whole, max(0, whole - sum(counted.values())), counted)
    return found


def _wholly_seen(gold: Gold, objectives: Collection[str]) -> dict[str, dict[int, int]]:
    """How long topics were wholly seen, by how many partitions they had then.

    Of several objectives it is by the one that tells of most.
    """
    sli = gold.engine.query(
        f"SELECT r.* FROM {{rows}} r WHERE {is_one_of('r.objective', sorted(objectives))}",
        rows=gold.whole(tables.SLI),
    )
    told: defaultdict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    rows = parts.by_count(gold.rows, sli, gold.whole(tables.TOPICS), ())
    for _, objective, topic, count, us in rows:
        if topic is not None:
            told[objective, topic][count] = us
    found: dict[str, dict[int, int]] = {}
    for (_, topic), counted in sorted(told.items()):
        if sum(counted.values()) > sum(found.get(topic, {}).values()):
            found[topic] = counted
    return found
