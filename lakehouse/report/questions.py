"""The five questions a report answers: what each asks, what was found, and its lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakehouse.report import figures, findings, tables, words
from lakehouse.report.findings import Finding
from lakehouse.report.listing import Listing

if TYPE_CHECKING:
    from lakehouse.report.figures import Row


@dataclass(frozen=True, slots=True)
class Question:
    """One question with its answer.

    Attributes:
        anchor: Its place in the page.
        title: The question in words people use.
        kip: The document that asks it.
        meaning: Why it matters, in a sentence.
        finding: What was found, as words, names and figures in reading order.
        listings: The tables behind it.
        charts: Names of the timelines that belong to it, with what they show.
    """

    anchor: str
    title: str
    kip: str
    meaning: str
    finding: Finding
    listings: tuple[Listing, ...]
    charts: Mapping[str, str]


def questions(facts: Mapping[str, Any]) -> tuple[Question, ...]:
    """The five questions in the order of the page."""
    return (_min_isr(facts), _throttling(facts), _tier_lag(facts), _lost(facts), _remote(facts))


def _min_isr(facts: Mapping[str, Any]) -> Question:
    topics = findings.rows(facts, "min_isr", "topics")

    def tell(bad: list[Row]) -> Finding:
        worst = bad[0]
        most = worst.get("max_concurrent")
        at_once = "" if not most else f", at most {words.plural(most, 'partition')} at once"
        return (
            "Topic ",
            figures.name(worst["topic"]),
            " could not be written to safely for ",
            figures.time(worst, "unavailable_any"),
            f"{at_once}.{findings.others(bad, 'topic', 'Nor could', 'Nor could')}",
        )

    return Question(
        "min-isr",
        "Could every topic be written to safely?",
        "KIP-164",
        "While a partition has fewer in-sync replicas than its minimum, or no leader at all, "
        "a producer that asks for acks=all is refused.",
        findings.found(
            facts,
            frozenset({"min_isr"}),
            topics,
            tables.TOPICS.badness or str,
            findings.lasted("unavailable_any", "any", "leaderless"),
            tell,
            "No partition was seen under its minimum or without a leader.",
        ),
        (
            tables.TOPICS.of(topics),
            tables.PARTITIONS.of(findings.rows(facts, "min_isr", "partitions")),
            tables.BROKERS.of(findings.rows(facts, "min_isr", "brokers")),
        ),
        {
            "under_min_isr": "Partitions under their minimum",
            "leaderless": "Partitions without a leader",
        },
    )


def _throttling(facts: Mapping[str, Any]) -> Question:
    clients = findings.rows(facts, "throttling", "clients")

    def tell(bad: list[Row]) -> Finding:
        worst = bad[0]
        who = figures.subject(worst, ("user", "client_id"))
        kind = tables.KINDS.get(str(worst.get("kind")), words.line(worst.get("kind")))
        return (
            *(part for n, one in enumerate(who) for part in (findings.label(one, n), one)),
            f" was throttled ({kind}) for ",
            figures.time(worst, "throttled"),
            f".{findings.others(bad, 'client', 'So was', 'So were')}",
        )

    return Question(
        "throttling",
        "Whom did quotas slow down?",
        "KIP-13",
        "A client that goes over its quota is made to wait. Kafka shows the throttle for up to "
        "a minute after it ended, which the lower bound takes away.",
        findings.found(
            facts,
            frozenset({"quotas"}),
            clients,
            tables.CLIENTS.badness or str,
            findings.lasted("throttled"),
            tell,
            "No client was seen throttled.",
        ),
        (tables.CLIENTS.of(clients),),
        {"throttled": "Clients being throttled"},
    )


def _tier_lag(facts: Mapping[str, Any]) -> Question:
    topics = findings.rows(facts, "tier_lag", "topics")

    def tell(bad: list[Row]) -> Finding:
        worst = bad[0]
        copy = worst.get("copy") or {}
        return (
            "Topic ",
            figures.name(worst["topic"]),
            " was behind with its uploads for ",
            tables.lagging(worst, "copy"),
            f", by {words.size(copy.get('max_bytes'))} at most; with its deletions for ",
            tables.lagging(worst, "delete"),
            f".{findings.others(bad, 'topic', 'So was', 'So were')}",
        )

    return Question(
        "tier-lag",
        "Did tiered storage keep up?",
        "KIP-963",
        "Closed segments wait on the brokers' disks until they are uploaded, and expired ones "
        "in the remote store until they are deleted.",
        findings.found(
            facts,
            frozenset({"tiered"}),
            topics,
            tables.TIERS.badness or str,
            lambda row: tables.tier_badness(row)[0] > 0.5,
            tell,
            "No topic was seen lagging.",
        ),
        (tables.TIERS.of(topics),),
        {"copy_lag_bytes": "Waiting for upload", "delete_lag_bytes": "Waiting for deletion"},
    )


def _lost(facts: Mapping[str, Any]) -> Question:
    groups = findings.rows(facts, "lost_before_read", "groups")

    def tell(bad: list[Row]) -> Finding:
        worst = bad[0]
        return (
            "Group ",
            figures.name(worst["group"]),
            " lost ",
            figures.offsets(worst),
            " offsets of ",
            figures.name(f"{worst.get('topic')}-{worst.get('partition')}"),
            f".{findings.others(bad, 'partition', 'So did', 'So did')}",
        )

    return Question(
        "lost",
        "Was anything deleted before it was read?",
        "KIP-490",
        "Retention deletes records whether a group has read them or not. Offsets are counted; "
        "transaction markers and aborted records occupy offsets, too.",
        findings.found(
            facts,
            frozenset({"offsets"}),
            groups,
            tables.GROUPS.badness or str,
            findings.positive("offsets_high", "offsets_low"),
            tell,
            "No group was seen to lose anything.",
        ),
        (tables.GROUPS.of(groups),),
        {"lost_offsets": "Offsets lost before they were read"},
    )


def _remote(facts: Mapping[str, Any]) -> Question:
    topics = findings.rows(facts, "remote_reads", "topics")

    def tell(bad: list[Row]) -> Finding:
        worst = bad[0]
        return (
            "Topic ",
            figures.name(worst["topic"]),
            f" was read from the remote store most: {words.count(worst.get('requests'))} "
            f"requests, {words.size(worst.get('bytes'))}, "
            f"errors: {words.count(worst.get('errors'))}."
            f"{findings.others(bad, 'topic', 'Less was read of', 'Less was read of')}",
        )

    return Question(
        "remote-reads",
        "What was read back from the remote store?",
        "KIP-1002",
        "A consumer that is far behind reads from the remote store, which costs round trips: for "
        "the records, and for the indexes of each segment, one after another.",
        findings.found(
            facts,
            frozenset({"tiered"}),  # beans of topics; remote_reads has those of brokers
            topics,
            tables.REMOTE_TOPICS.badness or str,
            findings.positive("requests", "bytes"),
            tell,
            "Nothing was seen read from the remote store.",
        ),
        (
            tables.REMOTE_TOPICS.of(topics),
            tables.REMOTE_BROKERS.of(findings.rows(facts, "remote_reads", "brokers")),
            tables.REMOTE_INDEXES.of(findings.rows(facts, "remote_reads", "indexes")),
        ),
        {"remote_fetch_bytes": "Read from the remote store"},
    )
