"""What stands in the cells of tables, and how bad a row is, by the names of page.yaml."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from lakehouse.owners import MONTH_SECONDS
from lakehouse.report import figures, words
from lakehouse.report.figures import Cell, Figure, Finding, Name, Row
from lakehouse.report.lookup import declared, value_at

attainment, incident_length, offsets = figures.attainment, figures.incident_length, figures.offsets

_CONCERNS: Final = ("clusters", "topics", "users", "clients", "groups", "sources")


def word(of: str, told: object) -> str:
    """What people say for a word of the facts."""
    said = words.NOT_KNOWN if told is None else words.line(told)
    return str(declared("page.yaml")["words"][of].get(str(told), said))


def word_of(row: Row, of: str, key: str) -> str:
    """The same for a word of a row."""
    return word(of, row.get(key))


def times(value: float | None) -> str:
    """A burn rate."""
    return words.NOT_KNOWN if value is None else f"{value:,.1f}".removesuffix(".0") + "\u00d7"


# The five questions.


def partition_time(row: Row, stem: str) -> Figure:
    """Time of a topic's partitions together, with what nobody saw of them together."""
    together = row.get("partitions_unknown_us", row.get("unknown_us"))
    return figures.time({**row, "unknown_us": together}, stem)


def at_once(row: Row) -> str:
    """How many of a topic's partitions were bad at once."""
    most = row.get("max_concurrent")
    return f", at most {words.plural(most, 'partition')} at once" if most else ""


def number_of_incidents(row: Row) -> Figure:
    """How many incidents a partition had."""
    number = len(row.get("incidents") or ())
    return figures.plain(number, words.count(number))


def incident_badness(row: Row) -> float:
    """How long it lasted."""
    return incident_length(row).order or 0


def what_happened(row: Row) -> str:
    """The kind of an incident, and whether it was planned."""
    return word("incident", row.get("kind")) + ", in planned maintenance" * bool(row.get("planned"))


def told_by(row: Row) -> tuple[Name, ...]:
    """The sources of an incident."""
    return tuple(figures.name(one) for one in row.get("sources") or ())


def client(row: Row) -> Finding:
    """Who was throttled, as a sentence begins."""
    who: list[str | Name] = []
    for one in figures.subject(row, ("user", "client_id")):
        who += [f", {one.label} " if who else f"{one.label.capitalize()} ", one]
    return tuple(who)


def rate(row: Row, key: str) -> Figure:
    """A rate in the row's own unit."""
    value = row.get(key)
    return figures.plain(value, words.quantity(value, str(row.get("rate_unit") or "")))


def lag(row: Row, way: str) -> Figure:
    """How long a topic was behind with its uploads (``copy``) or its deletions (``delete``)."""
    return figures.time(_of_way(row, way), "lagging")


def tier_badness(row: Row) -> tuple[float, float]:
    """How bad a topic's lag is, uploads and deletions alike."""
    return max(figures.badness(_of_way(row, way), "lagging") for way in ("copy", "delete"))


def _of_way(row: Row, way: str) -> Row:
    return {"unknown_us": row.get("unknown_us"), **(row.get(way) or {})}


def cautions(row: Row) -> str:
    """What is known to be wrong with a lag."""
    return "; ".join(word("flag", flag) for flag in row.get("flags") or ())


def partition(row: Row) -> tuple[Name, ...]:
    """A partition as Kafka's tools spell it."""
    return figures.single(f"{row.get('topic')}-{row.get('partition')}")


def lost_badness(row: Row) -> Any:
    """Offsets lost at most."""
    most = row.get("offsets_high")
    return 0.5 if most is None else most, figures.badness(row)[1]


# What was seen.


def outcomes(row: Row) -> str:
    """How often readings came to what."""
    return ", ".join(f"{word('outcome', k)} {n:,}" for k, n in (row.get("outcomes") or {}).items())


def why_unseen(row: Row) -> str:
    """How the readings in a gap came out."""
    return word("outcome", row["outcome"]) if row.get("outcome") else "never read"


def event(row: Row) -> str:
    """What an event is."""
    return words.line(row.get("kind")).replace("_", " ")


# Verdicts, and how to take them.


def subject(row: Row) -> tuple[Name, ...]:
    """Whom a verdict is about."""
    return figures.subject(row) or (Name("the whole cluster"),)


def stated(row: Row) -> str:
    """When a figure was published first."""
    return words.day_above_time(value_at(row, "before.stated_at"))


def burn_rate(row: Row, length: str) -> Figure:
    """The burn rate over the ``long`` or the ``short`` time."""
    value, low, high = (value_at(row, f"{length}_rate.{name}") for name in ("rate", "low", "high"))
    if value is None:
        return Figure(words.NOT_KNOWN)
    bounds = "±0" if low == value == high else f"{times(low)} to {times(high)}"
    return Figure(f"{times(value)} over {words.line(row.get(length))}", bounds, order=value)


def burnt(row: Row) -> Figure:
    """How long it surely burnt too fast."""
    us = row.get("burnt_us")
    return figures.plain(us, words.duration(us, "down"))


def burn_badness(row: Row) -> Any:
    """What burns now, then what burnt longest."""
    ranks = {"uncertain": 1, "burning": 2}
    now = ranks.get(str(row.get("verdict")), 0)
    return now, row.get("burnt_us") or 0, value_at(row, "long_rate.rate") or 0.0


def planned_length(row: Row) -> Figure:
    """How long planned maintenance lasts."""
    return incident_length({**row, "lead_us": 0, "tail_us": 0})


def concerned(row: Row) -> tuple[Name, ...]:
    """The patterns of what maintenance concerns."""
    found = tuple(
        figures.name(pattern, "client id" if key == "clients" else key.removesuffix("s"))
        for key in _CONCERNS
        for pattern in row.get(key) or ()
    )
    return found[:6] or (Name("the whole cluster"),)


def excluded(row: Row) -> Figure:
    """How much expected time of a subject lies in planned maintenance."""
    left, whole = value_at(row, "without_maintenance.expected_us"), row.get("expected_us")
    us = None if left is None or whole is None else whole - left
    return figures.plain(us, words.duration(us))


def is_turned(row: Row) -> bool:
    """Whether the verdict would be another without planned maintenance."""
    without = row.get("without_maintenance") or {}
    now, other = (one.get("verdict") or "no_data" for one in (row, without))
    return bool(without) and now != other


def without_badness(row: Row) -> Any:
    """Verdicts that are others without maintenance, then the worst."""
    return is_turned(row), words.rank(row.get("verdict")), -(row.get("attainment_low") or 0.0)


# Trends.


def _bad_share(one: Row) -> Figure:
    if one.get("share") is None:
        return Figure(words.NOT_KNOWN)
    return figures.bounded((one.get(f"share{end}") for end in figures.BOUNDS), words.percent, 0)


def this_week(row: Row) -> Figure:
    """The share of the last week that was bad."""
    return _bad_share((row.get("weeks") or (None,))[-1] or {})


def next_week(row: Row) -> Figure:
    """What is expected of the next."""
    return _bad_share((row.get("forecast") or ({},))[0])


def change(row: Row) -> str:
    """How the last week differs from the one before."""
    told = row.get("change") or {}
    said = word("change", told.get("verdict"))
    if not told.get("p") or told.get("verdict") not in {"worse", "better"}:
        return said
    return f"{said}; by chance 1 week in {round(1 / told['p'])} differs as much"


def another_level(row: Row) -> Cell:
    """Since when weeks differ from those before."""
    marks = row.get("regimes") or ()
    if not marks:
        return Cell(text="", order="")
    before, after = (words.percent(marks[-1].get(f"share_{name}")) for name in ("before", "after"))
    week = words.line(marks[-1].get("week"))
    return Cell(text=f"{week}: {before} to {after}", order=week)


def trend_badness(row: Row) -> tuple[float, ...]:
    """The last week, then the one before, and so on."""
    shares = ((week or {}).get("share") for week in reversed(row.get("weeks") or ()))
    return tuple(0.0 if share is None else float(share) for share in shares)


def drains(row: Row) -> str:
    """Whether what waits becomes less."""
    known = row.get("last_bytes") is not None
    return word("drain", row.get("verdict")) if known else words.NOT_KNOWN


def drained(row: Row) -> Figure:
    """When it will be gone."""
    if row.get("verdict") == "growing":
        return Figure("never, if it goes on like this")
    is_draining = row.get("verdict") == "draining"
    return figures.seen_time(row, "drained") if is_draining else Figure(words.NOT_KNOWN)


# Owners, and what asks to be tidied up.


def owner(row: Row) -> tuple[Name, ...]:
    """Team, owner and tier."""
    told = (("of_team", ""), ("owner", ""), ("tier", "tier"))
    found = tuple(figures.name(row[key], label) for key, label in told if row.get(key) is not None)
    return found or (Name("nobody"),)


def throttled_of_owner(row: Row) -> Figure:
    """Throttled time of an owner's clients."""
    return _left_out(figures.seen_time(row, "throttled"), row, "clients")


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
    text = f"{words.plural(number, noun.removesuffix('s'))} not known"
    return replace(found, unknown=text) if number else found


def suggested(row: Row) -> Figure:
    """A quota that would do."""
    found = rate(row, "suggested")
    return replace(found, value="at least " * bool(row.get("suggested_at_least")) + found.value)


def quota_of(row: Row) -> tuple[Name, ...]:
    """User and client id of a quota."""
    return figures.subject(row.get("quota_of") or {}, ("user", "client_id"))


def left_by_retention(row: Row) -> Figure:
    """How long retention leaves a group."""
    left = row.get("least_seconds")
    return figures.plain(left, words.seconds(left) if left else "overtaken now")
