"""Missing replicas, leaders out of sync, and reassignments, from the metadata log.

Under-replicated partitions are also in MBeans (family ``replication``), the rest only in the log.
Partitions without a leader are in ``unavailable``.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple

from lakehouse import tables
from lakehouse.core.metrics import UNAVAILABLE
from lakehouse.report.facts.fields import TOPIC, UNKNOWN, Bounds, Means, Question, Rows
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.gold_figures import AnyTime, figures
from lakehouse.slo.sla_statement import Statement, unknown_of

_UNCLEAN: Final = "kafka.partition.unclean_leader"


class Topic(NamedTuple):
    """Time in which any partition of a topic was in a state; all None: not observed."""

    topic: Annotated[str, TOPIC]
    under_replicated_any_us: Annotated[Bounds, Means(
        "time in which any partition had an out-of-sync replica, microseconds; empty: the metric "
        "was not collected", AnyTime("kafka.partition.under_replicated"))]  # fmt: skip
    without_spare_any_us: Annotated[Bounds, Means(
        "time in which only the leader of any replicated partition was in sync, microseconds",
        AnyTime("kafka.partition.without_spare"))]  # fmt: skip
    reassigning_any_us: Annotated[Bounds, Means(
        "time in which any partition was being reassigned, microseconds",
        AnyTime("kafka.partition.reassigning"))]  # fmt: skip
    unclean_leader_any_us: Annotated[Bounds, Means(
        "time from the election of an out-of-sync leader until its recovery, microseconds",
        AnyTime(_UNCLEAN))]  # fmt: skip
    unclean_elections: Annotated[int | None, Means("number of unclean leader elections")]
    unknown_us: Annotated[int | None, UNKNOWN]


class Replication(NamedTuple):
    """The section: only topics with such time or elections."""

    topics: Annotated[list[Topic], Means("topics with missing or moving replicas")]


def replication(
    gold: Gold, statements: Sequence[Statement], events: Iterable[Mapping[str, Any]]
) -> Replication:
    """Return topics with missing or moving replicas, or with a leader out of sync."""
    elected = Counter(row["topic"] for row in events if row["kind"] == "unclean_election")
    unknown = {key[0]: us for key, us in unknown_of(statements, UNAVAILABLE).items()}
    rows = gold.raised(tables.TOPICS)
    topics = [
        Topic(
            topic,
            **figures(Topic, rows[topic]),
            # Unknown without an election and without a reading that would have detected it.
            unclean_elections=elected[topic] if elected[topic] or rows[topic][_UNCLEAN] else None,
            unknown_us=unknown.get(topic),
        )
        for topic in sorted(rows.keys() | elected.keys())
    ]
    return Replication([one for one in topics if one.unclean_elections or _happened(one)])


def _happened(topic: Topic) -> bool:
    return any(one.high for one in topic if isinstance(one, Bounds))


QUESTION: Final = Question(
    name="replication",
    read="kafka.partition.under_replicated",
    family="replication",
    gold=("topics",),
    judged=(
        "kafka.partition.under_replicated", "kafka.partition.without_spare", _UNCLEAN,
    ),
    noun="topic",
    names=("topic",),
    fact="replication.topics",
    bad=(
        Rows(Topic, "replication.topics", (
            "under_replicated_any_us", "under_replicated_any_high_us", "without_spare_any_us",
            "without_spare_any_high_us", "unclean_leader_any_us", "unclean_leader_any_high_us",
            "unclean_elections",
        )),
    ),
    shows=(
        Topic,
        "kafka.partition.under_replicated*",
    ),
)  # fmt: skip
