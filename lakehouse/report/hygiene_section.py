"""What asks to be tidied up, as a section of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakehouse.report import columns, figures, tables, words
from lakehouse.report.extra import Extra
from lakehouse.report.listing import Column, Draft, figure, names, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse.report.figures import Figure, Row


def section(facts: Mapping[str, Any]) -> Extra | None:
    """The section; None where the facts are of a version that did not look."""
    told = facts.get("hygiene")
    if told is None:
        return None
    found = [(key, one) for key, one in _LISTS.items() if told.get(key)]
    return Extra(
        "hygiene",
        "Tidy up",
        "What asks to be tidied up?",
        (_answer(told),),
        tuple(_notes(told)),
        tuple(draft.of(told[key]).brief() for key, (_, draft) in found),
    )


def _answer(told: Mapping[str, Any]) -> str:
    found = [
        f"{words.plural(len(told[key]), draft.noun)} {said[len(told[key]) > 1]}"
        for key, (said, draft) in _LISTS.items()
        if told.get(key)
    ]
    missing = [_QUESTIONS[key] for key in _LISTS if told.get(key) is None]
    unknown = f" Not known, for nobody looked: {'; '.join(missing)}." if missing else ""
    if not found:
        return ("Nothing was found." if len(missing) < len(_LISTS) else "") + unknown
    return f"{'; '.join(found)}.{unknown}"


def _notes(told: Mapping[str, Any]) -> list[str]:
    notes = []
    if told.get("near_quota"):
        notes.append(
            "A quota holds for each broker alone, and is compared with the busiest one. The value "
            "suggested is the highest rate seen, or the quota, and a quarter more; for whom the "
            "quota slowed down it is a least one: nobody can tell what more they would have sent."
        )
    if told.get("unused_quotas"):
        notes.append("Unused: nobody under that quota was seen to send, read or ask for anything.")
    if told.get("overtaken") is not None:
        notes.append(
            f"Groups are listed that retention catches within {told.get('within_hours')} hours, as "
            "of the last that was told of each. Groups of tiered topics, and of those with a limit "
            "by size, are not among them: for those nobody can tell."
        )
    if told.get("replicas_untold"):
        topics = words.plural(told["replicas_untold"], "topic")
        notes.append(f"Of {topics} nobody told how many replicas there are.")
    return notes


def _rate(heading: str, key: str) -> Column:
    def get(row: Row) -> Figure:
        value = row.get(key)
        return figures.plain(value, words.quantity(value, str(row.get("rate_unit") or "")))

    return Column(heading, figure(get))


def _suggested(row: Row) -> Figure:
    value = row.get("suggested")
    said = words.quantity(value, str(row.get("rate_unit") or ""))
    return figures.plain(value, f"at least {said}" if row.get("suggested_at_least") else said)


def _quota_of(row: Row) -> tuple[figures.Name, ...]:
    return figures.subject(row.get("quota_of") or {}, ("user", "client_id"))


def _left(row: Row) -> Figure:
    seconds = row.get("least_seconds")
    return figures.plain(seconds, columns.span(seconds) if seconds else "overtaken now")


_KIND: Final = Column(
    "Quota on",
    text(lambda row: tables.KINDS.get(str(row.get("kind")), words.line(row.get("kind")))),
    numeric=False,
)
_REPLICAS: Final = (
    columns.one("Topic", "topic"),
    columns.plain("Partitions", "partitions", words.count),
    columns.plain("Replicas", "replication_factor", words.count),
    columns.plain("Minimum in sync", "min_insync_replicas", words.count),
)

_LISTS: Final[dict[str, tuple[tuple[str, str], Draft]]] = {
    "overtaken": (
        ("will be overtaken by retention", "will be overtaken by retention"),
        Draft(
            "Groups that retention is about to overtake",
            "group",
            (
                columns.one("Group", "group"),
                columns.one("Topic", "topic"),
                Column("Left, at least", figure(_left)),
                columns.at("As of", "as_of"),
            ),
        ),
    ),
    "replication_one": (
        ("has one replica only", "have one replica only"),
        Draft(
            "Topics with one replica",
            "topic",
            _REPLICAS,
            "When its broker stops, a partition is gone until it is back; with its disk, for good.",
        ),
    ),
    "no_spare_replica": (
        ("has no replica to spare", "have no replica to spare"),
        Draft(
            "Topics whose replicas must all be in sync",
            "topic",
            _REPLICAS,
            "Any one broker that stops, or is restarted, stops every producer with acks=all.",
        ),
    ),
    "near_quota": (
        ("came near its quota", "came near their quota"),
        Draft(
            "Clients near their quota",
            "client",
            (
                columns.subject("Client", "user", "client_id"),
                _KIND,
                _rate("Highest on a broker", "rate_max_of_a_broker"),
                _rate("Quota", "quota"),
                Column("Quota of", names(_quota_of), numeric=False),
                Column("Suggested", figure(_suggested)),
            ),
        ),
    ),
    "unused_quotas": (
        ("was not used", "were not used"),
        Draft(
            "Quotas nobody used",
            "quota",
            (columns.subject("Quota of", "user", "client_id"), _KIND, _rate("Quota", "quota")),
        ),
    ),
}
"""How each list is told, for one and for several, and shown; the most urgent first."""

_QUESTIONS: Final = {
    "overtaken": "whom retention is about to overtake",
    "replication_one": "which topics have one replica",
    "no_spare_replica": "which have none to spare",
    "near_quota": "who is near a quota",
    "unused_quotas": "which quotas nobody used",
}
