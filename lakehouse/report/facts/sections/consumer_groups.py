"""Consumer groups: lag in records and time, and unread data loss (KIP-490).

A group that has read every record of the scrape before keeps up, and does not lag.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Annotated, Any, Final, NamedTuple

from lakehouse import tables
from lakehouse.core.metrics import PARTITION_LAG
from lakehouse.core.objective import Objective
from lakehouse.core.periods import iso
from lakehouse.core.subjects import peak_high
from lakehouse.engines.gold_reader import Row, is_same
from lakehouse.report.facts import fields
from lakehouse.report.facts.fields import Bounds, Known, Means, Question, Rows
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.gold_figures import duration, seen_us, unread
from lakehouse.slo.sla_statement import Statement, unknown_of
from lakehouse.slo.trends import NO_WEEKS, Weeks

ROUNDED_UP: Final = 2**0.25
"""Agents round records up by less than this factor."""

_LOST: Final = "kafka.group.non_consumed"
_SLACK_US: Final = 180_000_000
"""Shorter times without readings hide no group; a group is reported that soon after them."""
_Key = tuple[str, str]
_key: Final = itemgetter("consumer_group", "topic")
_FIGURES: Final = ("records_max", "seconds_low_max", "seconds_high_max", "seconds_unknown_us")


class Behind(NamedTuple):
    """Lag of a group in records and in the age of the oldest unread record."""

    records_low: Annotated[Known, Means("lower bound of the unread records")]
    records_high: Annotated[Known, Means("upper bound of the unread records")]
    seconds_low: Annotated[Known, Means(
        "lower bound of the age of the oldest unread record, seconds")]  # fmt: skip
    seconds_high: Annotated[Known, Means("upper bound of that age, seconds; empty: not known")]
    seconds_unknown_us: Annotated[
        int, Means("time in which that age had no upper bound, not in seconds_high, microseconds")
    ]


class GroupLag(NamedTuple):
    """A group that lagged in a topic."""

    group: Annotated[str, fields.GROUP]
    topic: Annotated[str, fields.TOPIC]
    behind_us: Annotated[Bounds, Means(
        "time in which records of the scrape before were still unread, microseconds")]  # fmt: skip
    most: Annotated[Behind, Means(
        "maximum", column="")]  # fmt: skip
    last: Annotated[Behind, Means("last window with data")]
    as_of: Annotated[str, Means("start of that window, UTC")]
    unknown_us: Annotated[int | None, fields.UNKNOWN]


class PartitionBehind(NamedTuple):
    """A partition in which a group lagged far."""

    group: Annotated[str, fields.GROUP]
    topic: Annotated[str, fields.TOPIC]
    partition: Annotated[int | None, fields.PARTITION]
    records_low: Annotated[float, Means("lower bound of the maximum of unread records")]
    records_high: Annotated[Known, Means(
        "its upper bound; empty: there is unknown time, so it can be more")]  # fmt: skip
    above_us: Annotated[Bounds, Means("time with more than 10,000 unread records, microseconds")]
    unknown_us: Annotated[int | None, fields.UNKNOWN]


class ConsumerLag(NamedTuple):
    """The section; lists are None if no agent collected the lag of a group."""

    groups: Annotated[list[GroupLag] | None, Means(
        "groups and topics with lag, the longest lag first")]  # fmt: skip
    partitions: Annotated[list[PartitionBehind] | None, Means(
        "partitions with more than 10,000 unread records")]  # fmt: skip
    groups_read: Annotated[int | None, Means("number of groups whose lag was collected")]
    unknown_us: Annotated[int | None, Means(
        "unknown time of the group and topic with most of it, microseconds")] = None  # fmt: skip


class LostOffsets(NamedTuple):
    """Offsets of a partition that were deleted before a group had read them."""

    group: Annotated[str, fields.GROUP]
    topic: Annotated[str, fields.TOPIC]
    partition: Annotated[int, fields.PARTITION]
    offsets_low: Annotated[int, Means(
        "lower bound of the offsets deleted before the group had read them")]  # fmt: skip
    offsets_high: Annotated[int | None, Means("their upper bound; empty: not known")]
    unknown_us: Annotated[int, Means(
        "unknown time of the group, microseconds; offsets that expired then are "
        "in neither bound")]  # fmt: skip


class LostOfGroup(NamedTuple):
    """Offsets that a group lost in all its partitions."""

    group: Annotated[str, fields.GROUP]
    topics: Annotated[int, Means("number of topics in which it lost offsets")]
    partitions: Annotated[int, Means("number of partitions in which it lost offsets")]
    offsets_low: Annotated[Known, Means("lower bound of the offsets lost in them")]
    offsets_high: Annotated[Known, Means("their upper bound; empty: not known")]
    unknown_us: Annotated[int | None, fields.UNKNOWN]


class LostInWeek(NamedTuple):
    """Offsets that a group lost in an earlier week."""

    week: Annotated[str, Means("ISO week")]
    group: Annotated[str, fields.GROUP]
    offsets_low: Annotated[Known, Means("lower bound of the lost offsets")]
    offsets_high: Annotated[Known, Means("their upper bound; empty: not known")]


class LostBeforeRead(NamedTuple):
    """The section on lost offsets."""

    groups: Annotated[list[LostOffsets], Means("groups and partitions, most lost first")]
    totals: Annotated[list[LostOfGroup], Means("groups, most lost first")]
    weeks: Annotated[list[LostInWeek], Means("groups that lost offsets in earlier weeks")]
    unknown_us: Annotated[int | None, Means(
        "unknown time of the group with most of it, microseconds")] = None  # fmt: skip


def consumer_lag(gold: Gold, objectives: Sequence[Objective]) -> ConsumerLag:
    """Return the groups that lagged, if an objective is on them; without objectives all."""
    chosen = [one for one in objectives if one.level == "group"]
    rows, last = gold.with_later(tables.CONSUMER_LAG, gold.sums(tables.CONSUMER_LAG)), _last(gold)
    expected = {subject.group: us for subject, us in gold.expected("group")}
    if not rows:  # newer tables have a row of every group that an agent read
        return ConsumerLag(None, None, None if any(expected.values()) else 0)
    reported = {row["consumer_group"] for row in rows}
    rows = [row for row in rows if gold.concerns(row, chosen)]
    unseen = [_unknown_us(row, expected.get(row["consumer_group"])) for row in rows]
    groups = [
        _group(row, last[_key(row)], unknown_us)
        for row, unknown_us in zip(rows, unseen, strict=True)
        if row["behind_high_us"] or row["seconds_low_max"]
    ]
    groups.sort(key=lambda one: (-(one.behind_us.high or 0), one.group, one.topic))
    unknown = {(one.group, one.topic): one.unknown_us for one in groups}
    far = (row for row in _stretches(gold) if gold.concerns(row, chosen))
    read = len({row["consumer_group"] for row in rows})
    silent = _expected(gold, chosen, but=reported).values()
    most_us = max([*silent, *(us for us in unseen if us is not None)], default=None)
    return ConsumerLag(groups, [_partition(row, unknown) for row in far], read, most_us)


def _expected(
    gold: Gold, objectives: Sequence[Objective], but: Collection[str] = ()
) -> dict[str, int]:
    """Return how long groups of some objectives existed in the period; without objectives all."""
    return {
        group: us
        for subject, us in gold.expected("group")
        if us
        and (group := str(subject.group)) not in but
        and gold.concerns({"consumer_group": group}, objectives)
    }


def lost_before_read(
    gold: Gold,
    statements: Sequence[Statement],
    objectives: Sequence[Objective],
    weeks: Weeks = NO_WEEKS,
) -> LostBeforeRead:
    """Return the section; ``weeks`` are the weeks before."""
    groups = _lost(gold, gold.sums(tables.LOST_OFFSETS), statements, objectives)
    totals = group_totals(one._asdict() for one in groups)
    unknown = _unknown_of_groups(gold, statements, objectives)
    return LostBeforeRead(
        groups,
        [LostOfGroup(**one) for one in totals],
        _weeks(gold, weeks, objectives),
        max(unknown.values(), default=None),
    )


def _unknown_of_groups(
    gold: Gold, statements: Sequence[Statement], objectives: Sequence[Objective]
) -> dict[str | None, int]:
    """Return the unknown time of the loss of each group; without an objective at least that."""
    seen = seen_us(gold, f"{_LOST}.high", tables.GROUPS, "consumer_group")
    chosen = [one for one in objectives if one.metric == _LOST]
    lived = _expected(gold, chosen).items()
    stated = {key[3]: us for key, us in unknown_of(statements, _LOST).items()}
    return {group: max(0, us - seen.get(group, 0)) for group, us in lived} | stated


def _weeks(gold: Gold, weeks: Weeks, objectives: Sequence[Objective]) -> list[LostInWeek]:
    """Return the offsets that each group lost in each of some weeks."""
    sums = gold.by_week(tables.LOST_OFFSETS, weeks.periods)
    found = []
    for name, week, stated, rows in zip(weeks.names, *weeks, sums, strict=True):
        lost = _lost(gold.within(week), rows, stated, objectives)
        found += [
            LostInWeek(name, row["group"], row["offsets_low"], row["offsets_high"])
            for row in group_totals(one._asdict() for one in lost)
        ]
    return found


def _lost(
    gold: Gold,
    rows: Sequence[Row],
    statements: Sequence[Statement],
    objectives: Sequence[Objective],
) -> list[LostOffsets]:
    """Return offsets that expired before a group had read them, for groups with objectives.

    Without objectives all groups count. Offsets that expired in unknown time of a group may have no
    row. So the result has that time as well, and no high bound. A group that was first reported
    just after a time without readings may be older, so its high bound is missing as well. Without
    an objective the unknown time of the loss is not known, and the high bound is missing.
    """
    unread_ends = _unread_ends(gold) if rows else []
    first_us = {one.group: one.first_us for one in gold.subjects if one.kind == "group"}
    unknown = {key[3]: us for key, us in unknown_of(statements, _LOST).items()}
    chosen = [one for one in objectives if one.metric == _LOST]
    groups = []
    for row in rows:
        if gold.concerns(row, chosen):
            group = row["consumer_group"]
            unknown_us = max(row["series_unknown_us"], unknown.get(group, 0))
            is_stated = group in unknown and not gold.is_incomplete(tables.LOST_OFFSETS)
            at_us = first_us.get(group, 0)
            is_older = any(end <= at_us <= end + _SLACK_US for end in unread_ends)
            is_open = unknown_us > 0 or is_older or not is_stated
            bounds = (row["offsets_low"], row["offsets_high"])
            own = LostOffsets(group, row["topic"], row["partition_id"], *bounds, unknown_us)
            groups.append(own._replace(offsets_high=None) if is_open else own)
    groups.sort(key=lambda one: (-one.offsets_low, str(one.group), str(one.topic)))
    return groups


def _unread_ends(gold: Gold) -> list[int]:
    """Return the ends of longer times in which a source did not read groups."""
    away = unread(gold, f"{_LOST}.low").values()
    return [end for spans in away for start, end in spans if end - start > _SLACK_US]


_OF_GROUP: Final = ("group", "team", "owner", "tier")


def group_totals(partitions: Iterable[Row]) -> list[dict[str, Any]]:
    """Return the offsets that each group lost in all its partitions, most first.

    Args:
        partitions: Rows of ``lost_before_read.groups``. If a partition lacks an upper bound, its
            group lacks it. The unknown time of a group is the longest of its partitions.
    """
    by_group: dict[Any, list[Row]] = {}
    for row in partitions:
        by_group.setdefault(row["group"], []).append(row)
    totals = [
        {
            **{key: row for key, row in rows[0].items() if key in _OF_GROUP},
            "topics": len({row.get("topic") for row in rows}),
            "partitions": len(rows),
            "offsets_low": _sum(
                [low for row in rows if (low := row.get("offsets_low")) is not None]
            ),
            "offsets_high": _sum([row.get("offsets_high") for row in rows]),
            "unknown_us": _most(row.get("unknown_us") for row in rows),
        }
        for rows in by_group.values()
    ]
    return sorted(totals, key=_most_lost)


def _most_lost(row: Row) -> tuple[float, str]:
    return -(row["offsets_high"] or row["offsets_low"] or 0), str(row["group"])


def _sum(values: Sequence[float | None]) -> float | None:
    return None if None in values or not values else sum(filter(None, values))


def _most(values: Iterable[int | None]) -> int | None:
    found = list(values)
    return None if None in found else max(value for value in found if value is not None)


def _unknown_us(row: Row, expected_us: int | None) -> int | None:
    return None if expected_us is None else max(0, expected_us - row["seen_us"])


def _group(row: Row, last: Row, unknown_us: int | None) -> GroupLag:
    most = _behind(row)
    most = most._replace(
        records_high=peak_high(most.records_high, unknown_us),
        seconds_high=peak_high(most.seconds_high, unknown_us),
    )
    at, behind_us = iso(last["window_start"]), duration(row, "behind")
    group, topic = _key(row)
    return GroupLag(group, topic, behind_us, most, _behind(last), at, unknown_us)


def _behind(row: Row) -> Behind:
    most, low, high = (row[name] for name in ("records_max", "seconds_low_max", "seconds_high_max"))
    if high is not None and low is not None and high < low:
        high = None  # it is older than a time without an upper bound
    least = None if most is None else _least(most)
    return Behind(least, most, low, high, row["seconds_unknown_us"])


def _least(records: float) -> int:
    return math.ceil(records / ROUNDED_UP)


def _last(gold: Gold) -> dict[_Key, Row]:
    """Return the figures of the last window with a report; ``window_start`` in microseconds."""
    chosen = ("consumer_group", "topic", "window_start", *_FIGURES)
    names = ", ".join(f"r.{name}" for name in chosen)
    rows = gold.ask(
        f"SELECT {names} FROM (SELECT r.*, row_number() OVER "
        "(PARTITION BY r.consumer_group, r.topic ORDER BY r.window_start DESC) AS place "
        "FROM {rows} r) r WHERE r.place = 1",
        rows=gold.finest(tables.CONSUMER_LAG),
    )
    return {_key(row): row for row in rows}


def _stretches(gold: Gold) -> list[Row]:
    """Return partitions with more records than the agents' threshold, greatest first."""
    length = "r.ended_at - r.started_at"
    return gold.ask(
        "SELECT r.consumer_group, r.topic, r.partition_id, max(r.worst) AS records, "
        f"CAST(sum({length}) AS BIGINT) AS above_us, "
        f"CAST(sum(greatest(0, {length} - r.tail_us)) AS BIGINT) AS above_low_us, "
        f"CAST(sum({length} + r.lead_us) AS BIGINT) AS above_high_us "
        f"FROM {{rows}} r WHERE {is_same('r.metric', PARTITION_LAG)} "
        "GROUP BY r.consumer_group, r.topic, r.partition_id "
        "ORDER BY records DESC, r.consumer_group, r.topic, r.partition_id",
        rows=gold.whole(tables.INCIDENTS),
    )


def _partition(row: Row, unknown: Mapping[_Key, int | None]) -> PartitionBehind:
    (group, topic), most = _key(row), row["records"]
    above, unseen = duration(row, "above"), unknown.get((group, topic))
    high = peak_high(most, unseen)
    return PartitionBehind(group, topic, row["partition_id"], _least(most), high, above, unseen)


_NO_GROUP: Final = "no consumer group was observed"

LAG_QUESTION: Final = Question(
    name="lag",
    section="lag",
    read="kafka.group.lag",
    gold=("consumer_lag",),
    noun="group",
    names=("group",),
    counted="consumer_lag.groups_read",
    not_applicable=_NO_GROUP,
    fact="consumer_lag.groups",
    bad=(Rows(GroupLag, "consumer_lag.groups", ("behind_us", "behind_high_us")),),
    unknown=(Rows(ConsumerLag, "consumer_lag", ("unknown_us",)),),
    shows=("kafka.group.lag", "kafka.group.partition_lag", "kafka.group.time_lag.*"),
)

LOST_QUESTION: Final = Question(
    name="lost",
    section="loss",
    read="kafka.group.non_consumed.low",
    gold=("lost_offsets",),
    judged=("kafka.group.non_consumed",),
    noun="group",
    names=("group",),
    not_applicable=_NO_GROUP,
    fact="lost_before_read.totals",
    bad=(Rows(LostOfGroup, "lost_before_read.totals", ("offsets_high", "offsets_low")),),
    unknown=(Rows(LostBeforeRead, "lost_before_read", ("unknown_us",)),),
    shows=("kafka.group.non_consumed.*",),
)
