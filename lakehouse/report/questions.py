"""The five questions a report answers: what each asks, what was found, and its lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lakehouse.report import figures, tables, words
from lakehouse.report.figures import Figure, Name, Row
from lakehouse.report.listing import Listing

if TYPE_CHECKING:
    from collections.abc import Callable


Finding = tuple[str | Name | Figure, ...]


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


def rows(facts: Mapping[str, Any], section: str, key: str) -> list[Row]:
    """The rows of a section; none where the facts have no such section."""
    return list((facts.get(section) or {}).get(key) or ())


def nothing_seen(facts: Mapping[str, Any], families: frozenset[str] = frozenset()) -> bool:
    """Whether no reading was made: of these families, or, where none is expected, of any."""
    sources = [row for row in rows(facts, "coverage", "sources") if row.get("family") in families]
    if sources:
        return not any(row.get("observed_us") for row in sources)
    return not (facts.get("coverage") or {}).get("observed_us")


_NO_DATA: Final[Finding] = ("Not known: nobody looked in this period.",)


def _found(
    facts: Mapping[str, Any],
    families: frozenset[str],
    listed: list[Row],
    badness: Callable[[Row], Any],
    is_bad: Callable[[Row], bool],
    tell: Callable[[list[Row]], Finding],
    quiet: str,
) -> Finding:
    bad = sorted((row for row in listed if is_bad(row)), key=badness, reverse=True)
    if bad:
        return tell(bad)
    if nothing_seen(facts, families):
        return _NO_DATA
    doubtful = any(row.get("unknown_us") != 0 for row in listed)
    return (quiet, " Some time was not seen, see the table." if doubtful and listed else "")


def _others(bad: list[Row], noun: str, so: str) -> str:
    others = len(bad) - 1
    verb = {"was": "was" if others == 1 else "were", "did": "did", "could": "could"}[so]
    return f" So {verb} {words.plural(others, 'other ' + noun)}." if others else ""


def _label(one: Name, place: int) -> str:
    return f", {one.label} " if place else f"{one.label.capitalize()} "


def _positive(*keys: str) -> Callable[[Row], bool]:
    return lambda row: any((row.get(key) or 0) > 0 for key in keys)


def _lasted(*stems: str) -> Callable[[Row], bool]:
    return _positive(*(f"{stem}{part}_us" for stem in stems for part in ("", "_high")))


def _min_isr(facts: Mapping[str, Any]) -> Question:
    topics = rows(facts, "min_isr", "topics")

    def tell(bad: list[Row]) -> Finding:
        worst = bad[0]
        most = worst.get("max_concurrent")
        at_once = "" if not most else f", at most {words.plural(most, 'partition')} at once"
        return (
            "Topic ",
            figures.name(worst["topic"]),
            " could not be written to safely for ",
            figures.time(worst, "unavailable_any"),
            f"{at_once}.{_others(bad, 'topic', 'could').replace('So could', 'Nor could')}",
        )

    return Question(
        "min-isr",
        "Could every topic be written to safely?",
        "KIP-164",
        "While a partition has fewer in-sync replicas than its minimum, or no leader at all, "
        "a producer that asks for acks=all is refused.",
        _found(
            facts,
            frozenset({"min_isr"}),
            topics,
            tables.TOPICS.badness or str,
            _lasted("unavailable_any", "any", "leaderless"),
            tell,
            "No partition was seen under its minimum or without a leader.",
        ),
        (
            tables.TOPICS.of(topics),
            tables.PARTITIONS.of(rows(facts, "min_isr", "partitions")),
            tables.BROKERS.of(rows(facts, "min_isr", "brokers")),
        ),
        {
            "under_min_isr": "Partitions under their minimum",
            "leaderless": "Partitions without a leader",
        },
    )


def _throttling(facts: Mapping[str, Any]) -> Question:
    clients = rows(facts, "throttling", "clients")

    def tell(bad: list[Row]) -> Finding:
        worst = bad[0]
        who = figures.subject(worst, ("user", "client_id"))
        kind = tables.KINDS.get(str(worst.get("kind")), words.line(worst.get("kind")))
        return (
            *(part for n, one in enumerate(who) for part in (_label(one, n), one)),
            f" was throttled ({kind}) for ",
            figures.time(worst, "throttled"),
            f".{_others(bad, 'client', 'was')}",
        )

    return Question(
        "throttling",
        "Whom did quotas slow down?",
        "KIP-13",
        "A client that goes over its quota is made to wait. Kafka shows the throttle for up to "
        "a minute after it ended, which the lower bound takes away.",
        _found(
            facts,
            frozenset({"quotas"}),
            clients,
            tables.CLIENTS.badness or str,
            _lasted("throttled"),
            tell,
            "No client was seen throttled.",
        ),
        (tables.CLIENTS.of(clients),),
        {"throttled": "Clients being throttled"},
    )


def _tier_lag(facts: Mapping[str, Any]) -> Question:
    topics = rows(facts, "tier_lag", "topics")

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
            f".{_others(bad, 'topic', 'was')}",
        )

    return Question(
        "tier-lag",
        "Did tiered storage keep up?",
        "KIP-963",
        "Closed segments wait on the brokers' disks until they are uploaded, and expired ones "
        "in the remote store until they are deleted.",
        _found(
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
    groups = rows(facts, "lost_before_read", "groups")

    def tell(bad: list[Row]) -> Finding:
        worst = bad[0]
        return (
            "Group ",
            figures.name(worst["group"]),
            " lost ",
            figures.offsets(worst),
            " offsets of ",
            figures.name(f"{worst.get('topic')}-{worst.get('partition')}"),
            f".{_others(bad, 'partition', 'did')}",
        )

    return Question(
        "lost",
        "Was anything deleted before it was read?",
        "KIP-490",
        "Retention deletes records whether a group has read them or not. Offsets are counted; "
        "transaction markers and aborted records occupy offsets, too.",
        _found(
            facts,
            frozenset({"offsets"}),
            groups,
            tables.GROUPS.badness or str,
            _positive("offsets_high", "offsets_low"),
            tell,
            "No group was seen to lose anything.",
        ),
        (tables.GROUPS.of(groups),),
        {"lost_offsets": "Offsets lost before they were read"},
    )


def _remote(facts: Mapping[str, Any]) -> Question:
    topics = rows(facts, "remote_reads", "topics")

    def tell(bad: list[Row]) -> Finding:
        worst = bad[0]
        return (
            "Topic ",
            figures.name(worst["topic"]),
            f" was read from the remote store most: {words.count(worst.get('requests'))} "
            f"requests, {words.size(worst.get('bytes'))}, "
            f"errors: {words.count(worst.get('errors'))}.{_others(bad, 'topic', 'was')}",
        )

    return Question(
        "remote-reads",
        "What was read back from the remote store?",
        "KIP-1002",
        "A consumer that is far behind reads from the remote store, which costs round trips.",
        _found(
            facts,
            frozenset({"remote_reads"}),
            topics,
            tables.REMOTE_TOPICS.badness or str,
            _positive("requests", "bytes"),
            tell,
            "Nothing was seen read from the remote store.",
        ),
        (
            tables.REMOTE_TOPICS.of(topics),
            tables.REMOTE_BROKERS.of(rows(facts, "remote_reads", "brokers")),
        ),
        {"remote_fetch_bytes": "Read from the remote store"},
    )
