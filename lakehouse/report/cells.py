"""What stands in the cells of tables, and how bad a row is, by the names of page.yaml."""

from __future__ import annotations

from typing import Any

from lakehouse.owners import MONTH_SECONDS
from lakehouse.report import figures, words
from lakehouse.report.declared import declared
from lakehouse.report.figures import Figure, Name, Row
from lakehouse.report.lookup import value_at

attainment, incident_length, offsets = figures.attainment, figures.incident_length, figures.offsets


def word(of: str, told: object, otherwise: str = words.NOT_KNOWN) -> str:
    """What people say for a word of the facts."""
    said: str = declared("page.yaml")["words"][of].get(str(told), otherwise)
    return said


# The five questions.


def partition_time_under(row: Row) -> Figure:
    """Time of a topic's partitions together, with what nobody saw of them together."""
    return _partition_time(row, "under")


def partition_time_leaderless(row: Row) -> Figure:
    """The same of time without a leader."""
    return _partition_time(row, "leaderless")


def _partition_time(row: Row, stem: str) -> Figure:
    together = row.get("partitions_unknown_us", row.get("unknown_us"))
    return figures.time({**row, "unknown_us": together}, stem)


def number_of_incidents(row: Row) -> Figure:
    """How many incidents a partition had."""
    number = len(row.get("incidents") or ())
    return figures.plain(number, words.count(number))


def incident_badness(row: Row) -> float:
    """How long it lasted."""
    return incident_length(row).order or 0


def what_happened(row: Row) -> str:
    """The kind of an incident, and whether it was planned."""
    said = word("incident", row.get("kind"), "")
    return f"{said}, in planned maintenance" if row.get("planned") else said


def told_by(row: Row) -> tuple[Name, ...]:
    """The sources of an incident."""
    return tuple(figures.name(one) for one in row.get("sources") or ())


def kind_of_quota(row: Row) -> str:
    """What the quota is on."""
    return word("kind", row.get("kind"), words.line(row.get("kind")))


def rate(row: Row, key: str) -> Figure:
    """A rate in the row's own unit."""
    return figures.plain(
        row.get(key), words.quantity(row.get(key), str(row.get("rate_unit") or ""))
    )


def _lag(row: Row, way: str) -> Row:
    return {"unknown_us": row.get("unknown_us"), **(row.get(way) or {})}


def uploads_lagging(row: Row) -> Figure:
    """How long a topic was behind with its uploads."""
    return figures.time(_lag(row, "copy"), "lagging")


def deletions_lagging(row: Row) -> Figure:
    """The same of its deletions."""
    return figures.time(_lag(row, "delete"), "lagging")


def tier_badness(row: Row) -> tuple[float, float]:
    """How bad a topic's lag is, uploads and deletions alike."""
    return max(figures.badness(_lag(row, way), "lagging") for way in ("copy", "delete"))


def cautions(row: Row) -> str:
    """What is known to be wrong with a lag."""
    return "; ".join(word("flag", flag, words.line(flag)) for flag in row.get("flags") or ())


def lost_badness(row: Row) -> Any:
    """Offsets lost at most."""
    most = row.get("offsets_high")
    return 0.5 if most is None else most, figures.badness(row)[1]


# What was seen.


def seen(row: Row) -> Figure:
    """How much of the expected time was seen."""
    return figures.plain(row.get("percent"), words.per_cent(row.get("percent")))


def unseen_badness(row: Row) -> float:
    """Time that was not seen."""
    return figures.badness(row)[1]


def _outcome(told: object) -> str:
    return word("outcome", told, words.line(told))


def outcomes(row: Row) -> str:
    """How often readings came to what."""
    return ", ".join(f"{_outcome(k)} {n:,}" for k, n in (row.get("outcomes") or {}).items())


def why_unseen(row: Row) -> str:
    """How the readings in a gap came out."""
    return _outcome(row["outcome"]) if row.get("outcome") else "never read"


def event(row: Row) -> str:
    """What an event is."""
    return words.line(row.get("kind")).replace("_", " ")


# Verdicts.


def subject(row: Row) -> tuple[Name, ...]:
    """Whom a verdict is about."""
    return figures.subject(row) or (Name("the whole cluster"),)


def worst(row: Row) -> tuple[Name, ...]:
    """The subject with an objective's lowest share."""
    found: tuple[Name, ...] = row["worst"]
    return found


def lowest_share(row: Row) -> Figure:
    """That share."""
    return row["attainment"] or Figure(words.NOT_KNOWN)


# Owners, and what asks to be tidied up.


def owner(row: Row) -> tuple[Name, ...]:
    """Team, owner and tier."""
    told = (("of_team", ""), ("owner", ""), ("tier", "tier"))
    found = tuple(figures.name(row[key], label) for key, label in told if row.get(key) is not None)
    return found or (Name("nobody"),)


def throttled_of_owner(row: Row) -> Figure:
    """Throttled time of an owner's clients."""
    return _left_out(figures.time({**row, "unknown_us": 0}, "throttled"), row, "clients")


def lost_of_owner(row: Row) -> Figure:
    """Offsets that their groups lost."""
    return _left_out(offsets({**row, "unknown_us": 0}), row, "groups")


def stored_of_owner(row: Row) -> Figure:
    """What their topics stored, in bytes for months."""
    stored = row.get("stored_byte_seconds")
    months = "" if stored is None else f"{words.size(stored / MONTH_SECONDS)}\u00a0months"
    return _left_out(figures.plain(stored, months or words.NOT_KNOWN), row, "topics")


def cost(row: Row) -> Figure:
    """What that cost."""
    paid = row.get("cost")
    return figures.plain(paid, words.NOT_KNOWN if paid is None else f"{paid:,.2f}")


def _left_out(found: Figure, row: Row, noun: str) -> Figure:
    """The figure, and how many it leaves out because nothing is known of them."""
    number = value_at(row, f"not_known.{noun}") or 0
    if not number:
        return found
    text = f"{words.plural(number, noun.removesuffix('s'))} not known"
    return Figure(found.value, found.bounds, text, found.order)


def suggested(row: Row) -> Figure:
    """A quota that would do."""
    found = rate(row, "suggested")
    least = "at least " if row.get("suggested_at_least") else ""
    return Figure(least + found.value, order=found.order)


def quota_of(row: Row) -> tuple[Name, ...]:
    """User and client id of a quota."""
    return figures.subject(row.get("quota_of") or {}, ("user", "client_id"))


def left_by_retention(row: Row) -> Figure:
    """How long retention leaves a group."""
    left = row.get("least_seconds")
    return figures.plain(left, words.seconds(left) if left else "overtaken now")
