"""Consumer groups, and configuration risks.

Groups have their lag, and messages that retention deleted before a group had read them. Risks are
replicas, quotas and retention that are likely to hurt next.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from lakehouse.core import display
from lakehouse.report import evidence
from lakehouse.report.facts.fields import Rows
from lakehouse.report.facts.sections import replication_and_risks
from lakehouse.report.facts.sections.consumer_groups import (
    LAG_QUESTION,
    LOST_QUESTION,
    LostOffsets,
    PartitionBehind,
)
from lakehouse.report.figures import Facts, Row, length
from lakehouse.report.tables.requests import quantity
from lakehouse.report.tables.section import (
    Claim,
    Part,
    counted,
    coverage_clause,
    plain,
    section,
    unanswered,
)
from lakehouse.report.tables.table_spec import (
    Cell,
    Column,
    Content,
    TableSpec,
    between,
    instant,
    least_to_most,
    longest,
    most,
    name,
    number,
    of,
    partition,
    time,
    word,
)

_PARTITION_LAG: Final = "kafka.group.partition_lag"


def _records(when: str) -> Content:
    """Unread records: the ``most``, or the ``last`` that were reported."""
    keys = f"{when}.records_low", f"{when}.records_high"

    def cell(row: Row) -> Cell:
        behind = row.get(when) or {}
        low, high = behind.get("records_low"), behind.get("records_high")
        return _between(low, high)

    return of(cell, *keys)._replace(is_peak=when == "most")


def _between(low: float | None, high: float | None) -> Cell:
    """Return a number that a histogram gives between two bounds, with three digits."""
    if low and high and low < high:
        return Cell((display.rough_between(low, high),), order=high)
    return least_to_most(low, high, lambda one: display.rough(one or 0, "down"))


def _observed(facts: Facts) -> Facts:
    """Return the facts with the upper bounds of the lag while it was observed."""
    lag = facts.get("consumer_lag")
    if not lag:
        return facts
    found = {**lag}
    if lag.get("groups"):
        found["groups"] = [_of_group(row, facts) for row in lag["groups"]]
    if lag.get("partitions"):
        found["partitions"] = [_of_partition(row, facts) for row in lag["partitions"]]
    return {**facts, "consumer_lag": found}


def _of_group(row: Row, facts: Facts) -> Row:
    """Return a row of a group of one topic with the highest value of its timeline.

    The low bound of a histogram may be above that: then the highest value is not known.
    """
    topics = [one for one in facts["consumer_lag"]["groups"] if one["group"] == row["group"]]
    highs = [
        point[3]
        for line in facts.get("timelines") or ()
        if (line.get("name"), line.get("subject")) == ("consumer_lag", row["group"])
        for point in line.get("points") or ()
        if point[3] is not None
    ]
    most = row.get("most") or {}
    if len(topics) > 1:
        return row
    return {**row, "most": _with_high(most, highs)}


def _of_partition(row: Row, facts: Facts) -> Row:
    """Return a row of a partition with the highest value of its incidents."""
    keys = ("group", "topic", "partition")
    highs = [
        one["worst"]
        for one in facts.get("incidents") or ()
        if one["metric"] == _PARTITION_LAG and all(one.get(key) == row[key] for key in keys)
    ]
    return _with_high(row, highs)


def _with_high(row: Row, highs: Sequence[float]) -> Row:
    high = max(highs, default=None)
    if row.get("records_high") is not None or high is None or high < (row.get("records_low") or 0):
        return row
    return {**row, "records_high": high}


def _of_records(row: Row) -> Cell:
    return _between(row.get("records_low"), row.get("records_high"))


def _age(row: Row) -> Cell:
    oldest = row.get("most") or {}
    return least_to_most(oldest.get("seconds_low"), oldest.get("seconds_high"), _seconds)


def _seconds(seconds: float | None) -> str:
    return length(None if seconds is None else seconds * 1e6)


def _behind(row: Row) -> str:
    topic = display.visible(display.shorten(str(row.get("topic"))))
    return f"{length(row.get('behind_us'))} on \u2068{topic}\u2069"


GROUPS_BEHIND: Final = TableSpec(
    rows=LAG_QUESTION.bad[0],
    caption="Groups behind",
    noun="group",
    columns=(
        Column("Group", name("group")),
        Column("Topic", name("topic")),
        Column("Behind", time("behind")),
        Column("Unread records, max", _records("most")),
        Column("Oldest unread record, max age", of(_age, "most.seconds_low", "most.seconds_high")),
        Column("Unread records at the end", _records("last")),
    ),
    file="consumer_lag",
    worst=longest("behind"),
    quiet="did not lag",
)

PARTITIONS_BEHIND: Final = TableSpec(
    rows=Rows(PartitionBehind, "consumer_lag.partitions"),
    caption="Partitions with more than 10,000 unread records",
    noun="partition",
    columns=(
        Column("Group", name("group")),
        Column("Partition", partition()),
        Column("Unread records, max", of(_of_records, "records_low", "records_high")),
        Column("Time above 10,000", time("above")),
    ),
    worst=most("records_low"),
    unknown="",
)

_part: Final = counted(LAG_QUESTION, Claim(GROUPS_BEHIND, _behind), more=(PARTITIONS_BEHIND,))

LAG: Final = section("lag", "Consumer lag", lambda facts: _part(_observed(facts)))


def _lost(row: Row) -> str:
    low, high = row.get("offsets_low"), row.get("offsets_high")
    if high is None:
        return f"at least {display.count(low)} messages"
    return f"up to {display.count(high)} messages"


GROUPS_WITH_LOSS: Final = TableSpec(
    rows=LOST_QUESTION.bad[0],
    caption="Groups affected",
    noun="group",
    columns=(
        Column("Group", name("group")),
        Column("Messages (offsets)", between("offsets")),
        Column("Partitions", number("partitions")),
    ),
    file="lost_by_group",
    worst=most("offsets_high", "offsets_low"),
    quiet="lost no messages",
)

PARTITIONS_WITH_LOSS: Final = TableSpec(
    rows=Rows(LostOffsets, "lost_before_read.groups", ("offsets_high", "offsets_low")),
    caption="Messages lost by partition",
    noun="partition",
    columns=(
        Column("Group", name("group")),
        Column("Partition", partition()),
        Column("Messages (offsets)", between("offsets")),
    ),
    file="lost_before_read",
    worst=most("offsets_high", "offsets_low"),
    unknown="",
)

LOSS: Final = section(
    "loss",
    "Unread data loss",
    counted(LOST_QUESTION, Claim(GROUPS_WITH_LOSS, _lost), more=(PARTITIONS_WITH_LOSS,)),
)


class Risk(NamedTuple):
    """A list of findings.

    Attributes:
        table: Its table.
        lists: Its keys in the facts.
        one: Predicate of one row.
        several: Predicate of several rows.
        unknown: The name of the list in a sentence.
    """

    table: TableSpec
    lists: tuple[str, ...]
    one: str
    several: str
    unknown: str


def _left(row: Row) -> str:
    seconds = row.get("least_seconds")
    return length(seconds * 1e6) if seconds else "overtaken"


def _suggested(row: Row) -> str:
    text = display.quantity(row.get("suggested"), str(row.get("rate_unit") or ""))
    return f"≥ {text}" if row.get("suggested_at_least") else text


def _entity(row: Row) -> Cell:
    return name("user", "client_id").cell(row.get("quota_of") or {})


REPLICAS: Final = TableSpec(
    rows=Rows(replication_and_risks.Replicas, "hygiene.no_spare_replica"),
    caption="Topics without a spare replica",
    noun="topic",
    columns=(
        Column("Topic", name("topic")),
        Column("Partitions", number("partitions")),
        Column("Replication factor", number("replication_factor")),
        Column("Min ISR", number("min_insync_replicas")),
    ),
    file="hygiene_topics",
)

NEAR_QUOTA: Final = TableSpec(
    rows=Rows(replication_and_risks.NearQuota, "hygiene.near_quota"),
    caption="Clients near their quota",
    noun="client",
    columns=(
        Column("Client", name("user", "client_id")),
        Column("Quota for", word("kind", "kind")),
        Column("Rate on a broker, max", quantity("rate_max_of_a_broker")),
        Column("Quota", quantity("quota")),
        Column("Quota entity", of(_entity, "quota_of", is_figure=False)),
        Column("Suggested quota", of(_suggested, "suggested", "suggested_at_least", "rate_unit")),
    ),
)

UNUSED_QUOTAS: Final = TableSpec(
    rows=Rows(replication_and_risks.UnusedQuota, "hygiene.unused_quotas"),
    caption="Unused quotas",
    noun="quota",
    columns=(
        Column("Quota entity", name("user", "client_id")),
        Column("Quota for", word("kind", "kind")),
        Column("Quota", quantity("quota")),
    ),
)

OVERTAKEN: Final = TableSpec(
    rows=Rows(replication_and_risks.Overtaken, "hygiene.overtaken"),
    caption="Groups that retention will overtake",
    noun="group",
    columns=(
        Column("Group", name("group")),
        Column("Topic", name("topic")),
        Column("Time left, min", of(_left, "least_seconds")),
        Column("As of", instant("as_of")),
    ),
)

RISKS: Final = (
    Risk(
        OVERTAKEN, ("overtaken",), "group will lose records to retention",
        "groups will lose records to retention", "groups close to retention",
    ),
    Risk(
        REPLICAS, ("no_spare_replica", "replication_one"), "topic has no spare replica",
        "topics have no spare replica", "spare replicas",
    ),
    Risk(NEAR_QUOTA, ("near_quota",), "client near its quota", "clients near their quota",
         "clients near their quota"),
    Risk(UNUSED_QUOTAS, ("unused_quotas",), "unused quota", "unused quotas", "unused quotas"),
)  # fmt: skip


def _risks(facts: Facts) -> Part:
    decided = evidence.decide(facts, replication_and_risks.HYGIENE_QUESTION)
    found = facts.get("hygiene") or {}
    lists = {risk: _rows(facts, found, risk) for risk in RISKS}
    if not any(lists.values()) and not decided.is_answered:
        return unanswered(decided)
    said = [
        f"{len(rows):,} {risk.one if len(rows) == 1 else risk.several}"
        for risk, rows in lists.items()
        if rows
    ]
    if not said and any(rows is not None for rows in lists.values()):
        said.append("0 risks found")
    clause = coverage_clause(decided, "source") if said else ""
    if unknown := [risk.unknown for risk, rows in lists.items() if rows is None]:
        said.append(f"not known: {', '.join(unknown)}")
    said.append(clause)
    tables = tuple(risk.table.listing(facts, rows) for risk, rows in lists.items() if rows)
    return Part(plain("; ".join(filter(None, said))), tables, _notes(found))


def _rows(facts: Facts, found: Row, risk: Risk) -> list[Row] | None:
    """Return the rows of a list; None: it is not known."""
    lists = [found.get(key) for key in risk.lists]
    if risk.table is UNUSED_QUOTAS:  # "unused" is a statement on observed time
        use = evidence.observed(facts, replication_and_risks.USE_OF_QUOTAS)
        if use.expected_us and use.state(evidence.floor_of(facts)) == "not_known":
            return None
    if None in lists and not any(lists):
        return None
    rows: list[Any] = [row for one in lists for row in one or ()]
    return rows


def _notes(found: Row) -> tuple[str, ...]:
    untold = found.get("replicas_untold")
    if not untold:
        return ()
    return (f"The number of replicas is not known for {display.plural(untold, 'topic')}.",)


CONFIGURATION_RISKS: Final = section("risks", "Configuration risks", _risks)
