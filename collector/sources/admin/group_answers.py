"""Answers of group coordinators: one result per group, and the errors of single groups."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar

from collector.model import Partition
from collector.sources.java.jvm import java

_Found = TypeVar("_Found")

_ERRORS: Final = "org.apache.kafka.common.errors"
NO_SUCH_GROUP: Final = f"{_ERRORS}.GroupIdNotFoundException"
TOO_OLD: Final = f"{_ERRORS}.UnsupportedVersionException"
# Protocols of groups that commit offsets. A group without members and protocol can have commits.
_COMMITTING: Final = ("consumer", "")


class Groups(NamedTuple):
    """IDs of groups.

    Attributes:
        committing: Groups that commit offsets: consumer and Streams groups.
        share: Share groups (KIP-932).
    """

    committing: list[str]
    share: list[str]


class ShareOffset(NamedTuple):
    """Progress of a share group in a partition.

    Attributes:
        start: First offset that the group has not completed. It can be older than the log start.
        lag: Records from ``start`` on that the group has not completed (KIP-1226). None: unknown.
    """

    start: int
    lag: int | None


ShareOffsets = dict[Partition, ShareOffset | None]
"""Progress by partition. None: the group has not read the partition yet.

A partition of the group's topics without an entry is unknown: its share coordinator did not answer,
and Kafka's client drops the error.
"""


class GroupAnswers(NamedTuple, Generic[_Found]):
    """Results by group, and the errors of groups that failed while others responded."""

    found: dict[str, _Found]
    failed: dict[str, str]


def get(future: Any, *absent: str) -> Any:
    """Return the result of a future. None: it failed with one of these exceptions."""
    try:
        return future.get()
    except java("java.util.concurrent.ExecutionException") as error:
        cause = error.getCause()
        if str(cause.getClass().getName()) in absent:
            return None
        raise


def of_groups(futures: Mapping[str, Any], read: Callable[[Any], _Found]) -> GroupAnswers[_Found]:
    """Return the results by group, from Java's futures. For a deleted group, ``read`` gets None.

    Raises:
        java.util.concurrent.ExecutionException: All groups failed. It is the first group's error.
    """
    answers, first = _answers(futures, read)
    if first is not None and not answers.found:
        raise first
    return answers


def of_share_groups(futures: Mapping[str, Any]) -> GroupAnswers[ShareOffsets]:
    """Return the progress by share group. It does not raise if all fail: others can respond.

    A broker without the request (before Kafka 4.1) has no share groups with offsets.
    """
    return _answers(futures, _share_offsets, TOO_OLD)[0]


def _answers(
    futures: Mapping[str, Any], read: Callable[[Any], _Found], *absent: str
) -> tuple[GroupAnswers[_Found], Any]:
    found, failed, first = {}, {}, None
    for group, future in futures.items():
        try:
            found[group] = read(get(future, NO_SUCH_GROUP, *absent))
        except java("java.util.concurrent.ExecutionException") as error:
            first = first or error
            failed[group] = str(error.getCause().getClass().getSimpleName())
    return GroupAnswers(found, failed), first


def listed(groups: Collection[Any]) -> Groups:
    """Return the IDs of listed groups by kind. Brokers before Kafka 3.8 do not return types.

    Args:
        groups: Java's GroupListing, or ConsumerGroupListing of clients before Kafka 4.0.
    """
    found = Groups([], [])
    for group in groups:
        kind = str(group.type().orElse("")).upper() if hasattr(group, "protocol") else "CONSUMER"
        if kind == "SHARE":
            found.share.append(str(group.groupId()))
        elif kind in {"CONSUMER", "STREAMS"} or str(group.protocol()) in _COMMITTING:
            found.committing.append(str(group.groupId()))
    return Groups(sorted(set(found.committing)), sorted(set(found.share)))


def committed(offsets: Any) -> dict[Partition, int]:
    """Return the committed offsets of a group. None: the group was deleted."""
    return {
        Partition(str(one.topic()), int(one.partition())): int(offset.offset())
        for one, offset in (offsets.items() if offsets is not None else ())
        if offset is not None
    }


def topics_of(group: Any) -> set[str]:
    """Return the topics that are assigned to members of a described group."""
    return {
        str(partition.topic())
        for member in (group.members() if group is not None else ())
        for partition in member.assignment().topicPartitions()
    }


def _share_offsets(offsets: Any) -> ShareOffsets:
    """Return the progress of a share group. None: the group was deleted."""
    return {
        Partition(str(one.topic()), int(one.partition())): None if info is None else _progress(info)
        for one, info in (offsets.items() if offsets is not None else ())
    }


def _progress(info: Any) -> ShareOffset:
    lag = info.lag().orElse(None)
    return ShareOffset(int(info.startOffset()), None if lag is None else int(lag))
