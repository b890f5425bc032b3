"""Offsets as a simulated Admin API answers them, read by the agent's own reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from collector.model import Answer, Partition, Reading
from collector.sources.admin.consumer_lag import LAG
from collector.sources.admin.group_answers import GroupAnswers, Groups
from collector.sources.admin.offsets import OffsetReader
from collector.sources.admin.watched_groups import GroupRules
from collector.sources.base.readings import split
from tests.truth.logs import GROUPS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from collector.sources.admin.client import Topics
    from collector.sources.admin.group_answers import ShareOffsets
    from tests.truth.schedule import Parts
    from tests.truth.sources import Look
    from tests.truth.world import World

_Found = TypeVar("_Found")

# The size decides too, so that no record has an age and no headroom: neither is simulated.
_CONFIG: Final = {"retention.bytes": "1073741824"}


class SimulatedOffsets:
    """Answers the calls of ``OffsetReader``, in part where the schedule has it.

    Args:
        world: What happens.
        broker: Whose agent asks.
        parts: What answers lack.
        described: The topics at an instant, as the Admin API describes them.
    """

    def __init__(
        self, world: World, broker: int, parts: Parts, described: Callable[[World, int], Topics]
    ) -> None:
        self._world, self._parts, self._described = world, parts, described
        self._reader = OffsetReader(broker, lambda: 0, GroupRules())
        self._look: Look = lambda: 0
        self._now_us = 0
        self.lacks = False

    def answer(self, look: Look) -> Answer:
        """One answer of the family; ``lacks`` says whether something did not come."""
        instants = sorted(look() for _ in range(5))  # in the order in which the reader asks
        self._look, self.lacks = iter(instants).__next__, False
        self._now_us = instants[0]
        values, offsets, _ = self._reader.read(self)  # type: ignore[arg-type]  # its calls alone
        lag = Reading(LAG, "gauge", *split(values[LAG]))
        return Answer((lag,), len(offsets.log_starts), offsets=offsets)

    def topics(self, _: int | None) -> tuple[Topics, dict[str, str]]:
        """All topics that have logs; they are never made again."""
        self._now_us = self._look()
        names = {partition.topic for partition in self._world.logs}
        topics = self._described(self._world, self._now_us)
        return {name: topics[name] for name in names}, {}

    def configs(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        """Retention goes by size, too."""
        return dict.fromkeys(topics, _CONFIG)

    def groups(self) -> Groups:
        """The ids of all groups."""
        return Groups([*GROUPS], [])

    def share_offsets(self, _: Collection[str]) -> GroupAnswers[ShareOffsets]:
        """Return nothing: no share group is simulated."""
        return GroupAnswers({}, {})

    def assigned_topics(self, groups: Sequence[str]) -> GroupAnswers[set[str]]:
        """The topics that the members of each group read."""
        return self._by_group(groups, lambda group: set(GROUPS[group]))

    def commits(self, groups: Collection[str]) -> GroupAnswers[dict[Partition, int]]:
        """Where each group goes on reading."""
        self._now_us = at_us = self._look()
        return self._by_group(
            groups,
            lambda group: {
                one.log: steps.at(at_us)
                for one, steps in self._world.commits.items()
                if one.group == group
            },
        )

    def offsets(self, partitions: Iterable[Partition], kind: str) -> dict[Partition, int]:
        """Where logs begin or end."""
        self._now_us = at_us = self._look()
        is_start, found = kind == "earliest", {}
        for partition in partitions:
            if is_start and _hit(self._parts.starts, partition, at_us):
                self.lacks = True
                continue
            log = self._world.logs[partition]
            found[partition] = (log.starts if is_start else log.ends).at(at_us)
        return found

    def offsets_since(self, _: Mapping[Partition, int]) -> dict[Partition, int]:
        """Nothing has an age."""
        return {}

    def _by_group(
        self, groups: Collection[str], of: Callable[[str], _Found]
    ) -> GroupAnswers[_Found]:
        silent = [one for one in groups if _hit(self._parts.groups, one, self._now_us)]
        self.lacks = self.lacks or bool(silent)
        found = {group: of(group) for group in groups if group not in silent}
        return GroupAnswers(found, dict.fromkeys(silent, "TimeoutException: silent"))


def _hit(faults: Iterable[tuple[object, tuple[int, int]]], what: object, at_us: int) -> bool:
    return any(one == what and start <= at_us < end for one, (start, end) in faults)
