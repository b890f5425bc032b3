"""How long topics were not wholly seen, and what that makes unknown of their partitions.

Of a topic time is unknown while it is neither good nor seen to be bad. But while one partition is
bad, another may be unseen: then it is unknown of the other one.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from lakehouse.metrics import UNAVAILABLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakehouse.report.gather import Gold
    from lakehouse.sla import Statement


class Unseen(NamedTuple):
    """Of one topic; microseconds, None: nothing is promised of it, so nobody reckoned.

    Attributes:
        expected_us: Time in which it existed.
        us: Time in which not all its partitions were seen.
    """

    expected_us: int | None = None
    us: int | None = None

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
        """What is unknown of all partitions, summed over them.

        Args:
            partitions: How many there are.
            found: What gold has of the topic.
        """
        if self.expected_us is None or partitions is None:
            return None
        return max(0, self.expected_us * partitions - (found.get("observed_us") or 0))


def unseen(gold: Gold, stated: Sequence[Statement]) -> Mapping[str, Unseen]:
    """By topic; of a topic that is not there, nobody knows."""
    found: defaultdict[str, Unseen] = defaultdict(Unseen)
    asked = [one for one in stated if one.objective.metric == UNAVAILABLE]
    seen = gold.wholly_seen({one.objective.name for one in asked}) if asked else {}
    for one in asked:
        topic, whole = str(one.subject.topic), one.whole_us
        found[topic] = Unseen(whole, max(0, whole - seen.get(topic, 0)))
    return found
