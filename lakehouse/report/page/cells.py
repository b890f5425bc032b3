"""The functions that page.yaml names: contents of table cells, and how bad a row is."""

import math
from dataclasses import replace
from typing import Any, Final

from lakehouse.core import display
from lakehouse.report import figures
from lakehouse.report.facts_lookup import value_at
from lakehouse.report.figures import Answer, Cell, Figure, Name, Row
from lakehouse.report.owners import MONTH_SECONDS
from lakehouse.report.resources import declared

attainment, incident_length, offsets = figures.attainment, figures.incident_length, figures.offsets
seen = figures.seen_time

_SCOPES: Final = ("clusters", "topics", "users", "clients", "groups", "sources")
_SCOPES_SHOWN: Final = 6


def word(group: str, value: object) -> str:
    """The words for a value of the facts, from a group of page.yaml's ``words``."""
    text = display.NOT_KNOWN if value is None else display.line(value)
    return str(declared("page.yaml")["words"][group].get(str(value), text))


def word_of(row: Row, group: str, key: str) -> str:
    """The same for a value of a row."""
    return word(group, row.get(key))


def mean_count(value: float | None) -> str:
    """A number on the mean over time, to a tenth."""
    return display.count(None if value is None else round(value, 1))


def times(value: float | None) -> str:
    """A burn rate."""
    return mean_count(value) + "\u00d7" * (value is not None)


# The brokers' answers.


def good_share(row: Row, request: str) -> Figure:
    """The share of a broker's answers to a kind of request that were no errors."""
    return figures.share(row.get(request) or {}, "good")


def errors(row: Row, request: str) -> Figure:
    """How many of them were errors."""
    return figures.between(row.get(request) or {}, "errors", display.count)


def slow_above(row: Row) -> str:
    """Above what a broker is slow, by an objective."""
    value = row.get("threshold_ms")
    return "no objective" if value is None else display.milliseconds(value)


def answers_badness(row: Row) -> Any:
    """The share of errors, then the time that was not seen."""
    rows = [row.get(request) or {} for request in ("produce", "fetch")]
    lows = [one["good_low"] for one in rows if one.get("good_low") is not None]
    return 1 - min(lows, default=1), max(one.get("unknown_us") or 0 for one in rows)


# The questions on KIPs.


def partition_time(row: Row, stem: str) -> Figure:
    """Time added up over a topic's partitions, with their unknown time added up as well."""
    unknown = row.get("partitions_unknown_us", row.get("unknown_us"))
    return figures.time({**row, "unknown_us": unknown}, stem)


def at_once(row: Row) -> str:
    """How many of a topic's partitions were bad at once."""
    if not row.get("max_concurrent"):
        return ""
    most = figures.peak(row, "max_concurrent", lambda number: display.plural(number, "partition"))
    return f", peak {most.text} at once"


def number_of_incidents(row: Row) -> Figure:
    """How many incidents a partition had."""
    number = len(row.get("incidents") or ())
    return Figure(display.count(number), order=number)


def incident_badness(row: Row) -> float:
    """How long it lasted."""
    return incident_length(row).order or 0


def incident_kind(row: Row) -> str:
    """The kind of an incident, and whether it was planned."""
    return word("incident", row.get("kind")) + ", in planned maintenance" * bool(row.get("planned"))


def reporters(row: Row) -> tuple[Name, ...]:
    """The sources that reported an incident."""
    return tuple(figures.name(source) for source in row.get("sources") or ())


def client(row: Row) -> Answer:
    """A throttled client within a sentence."""
    parts: list[str | Name] = []
    for name in figures.subject(row, ("user", "client_id")):
        parts += [f"{', ' * bool(parts)}{name.label} ", name]
    return tuple(parts)


def lag(row: Row, way: str) -> Figure:
    """How long a topic was behind with its uploads (``copy``) or its deletions (``delete``)."""
    return figures.time(_of_way(row, way), "lagging")


def tier_badness(row: Row) -> tuple[float, ...]:
    """The worse of a topic's uploads and deletions."""
    return max(figures.badness(_of_way(row, way), "lagging") for way in ("copy", "delete"))


def _of_way(row: Row, way: str) -> Row:
    return {"unknown_us": row.get("unknown_us"), **(row.get(way) or {})}


def cautions(row: Row) -> str:
    """What failed of a topic, and known errors of its lag."""
    failed = [f"{text} failed"] if (text := failures(row)) else []
    return "; ".join((*failed, *(word("flag", flag) for flag in row.get("flags") or ())))


def failed(row: Row) -> Figure:
    """How many uploads and deletions of a topic failed together."""
    number = (row.get("copies_failed") or 0) + (row.get("deletions_failed") or 0)
    return Figure(display.count(number), order=number)


def failures(row: Row) -> str:
    """How many uploads and deletions of a topic failed."""
    failed = {"upload": row.get("copies_failed"), "deletion": row.get("deletions_failed")}
    return " and ".join(display.plural(round(n), noun) for noun, n in failed.items() if n)


def held_back(row: Row) -> Figure:
    """For how long a broker's own quota held it back; without the bean none was seen."""
    known = row.get("held_back_us") is not None
    return figures.seen_time(row, "held_back") if known else Figure("none seen")


def seen_size(row: Row, key: str) -> Figure:
    """Bytes of a bean that is there once it has counted some."""
    known = row.get(key) is not None
    return Figure(display.size(row[key]), order=row[key]) if known else Figure("none seen")


def partition(row: Row) -> tuple[Name, ...]:
    """A partition as Kafka's tools spell it."""
    return figures.single(f"{row.get('topic')}-{row.get('partition')}")


def lost_of_group(row: Row) -> Answer:
    """The offsets that a group lost, with their bounds, and in how many partitions."""
    lost, partitions = figures.offsets(row), display.plural(row["partitions"], "partition")
    unknown = f"; {lost.unknown}" if lost.unknown else ""
    return (replace(lost, unknown=""), f" offsets in {partitions}{unknown}")


def records(row: Row, when: str = "") -> Figure:
    """How many records a group had not read: the ``most``, or ``last``."""
    return figures.least_to_most(row.get(when) or row, "records", display.count)


def lateness(row: Row, when: str) -> Figure:
    """For how long a group was behind: the ``most``, or ``last``."""
    behind = row.get(when) or {}
    unknown = figures.unknown_time(behind.get("seconds_unknown_us"))
    return figures.least_to_most(behind, "seconds", display.seconds, unknown)


# Coverage.


def outcomes(row: Row) -> str:
    """How many readings had which outcome."""
    return ", ".join(f"{word('outcome', k)} {n:,}" for k, n in (row.get("outcomes") or {}).items())


def event(row: Row) -> str:
    """The kind of an event."""
    return display.line(row.get("kind")).replace("_", " ")


# Verdicts and what qualifies them.


def subject(row: Row) -> tuple[Name, ...]:
    """The subject of a verdict."""
    return figures.subject(row) or (Name("the whole cluster"),)


def burn_rate(row: Row, length: str) -> Figure:
    """The burn rate over the ``long`` or the ``short`` time."""
    value, low, high = (value_at(row, f"{length}_rate.{name}") for name in ("rate", "low", "high"))
    if value is None:
        return Figure(display.NOT_KNOWN)
    bounds = "±0" if low == value == high else f"{times(low)} to {times(high)}"
    return Figure(f"{times(value)} over {display.line(row.get(length))}", bounds, order=value)


def burn_badness(row: Row) -> Any:
    """Rates that are too fast now, then those that were for the longest time."""
    ranks = {"uncertain": 1, "burning": 2}
    now = ranks.get(str(row.get("verdict")), 0)
    return now, row.get("burnt_us") or 0, value_at(row, "long_rate.rate") or 0.0


def planned_length(row: Row) -> Figure:
    """How long planned maintenance lasts."""
    return incident_length({**row, "lead_us": 0, "tail_us": 0})


def scope(row: Row) -> tuple[Name, ...]:
    """The patterns of the subjects that maintenance affects."""
    names = tuple(
        figures.name(pattern, "client id" if key == "clients" else key.removesuffix("s"))
        for key in _SCOPES
        for pattern in row.get(key) or ()
    )
    return names[:_SCOPES_SHOWN] or (Name("the whole cluster"),)


def listed(row: Row, key: str) -> tuple[Name, ...]:
    """Several names."""
    return tuple(figures.name(one) for one in (row.get(key) or ())[:_SCOPES_SHOWN])


def agreed_word(row: Row, key: str) -> str:
    """A verdict with corrections; empty without any."""
    verdict = value_at(row, key)
    return "" if verdict is None else display.VERDICTS[display.verdict(verdict)]


def agreed_change(row: Row) -> str:
    """The verdicts with corrections, before and now; empty without any."""
    words = {when: agreed_word(row, f"{when}.agreed_verdict") for when in ("before", "now")}
    if not any(words.values()):
        return ""
    return ", ".join(f"{word_ or 'none'} {when}" for when, word_ in words.items())


def verdict_badness(row: Row) -> tuple[int, float, float]:
    """The worst verdict, then the lowest share, then the unknown time."""
    low, unknown = row.get("attainment_low") or 0.0, row.get("unknown_us") or 0
    return display.rank(row.get("verdict")), -low, unknown


def excluded(row: Row, key: str) -> Figure:
    """How much expected time of a subject the figures ``key`` leave out."""
    left, whole = value_at(row, f"{key}.expected_us"), row.get("expected_us")
    us = None if left is None or whole is None else whole - left
    return Figure(display.duration(us), order=us)


def differs_without(row: Row, key: str = "without_maintenance") -> bool:
    """Whether the verdict differs without planned maintenance, or as ``agreed``."""
    without = row.get(key) or {}
    verdicts = {statement.get("verdict") or "no_data" for statement in (row, without)}
    return bool(without) and len(verdicts) > 1


def without_badness(row: Row, key: str = "without_maintenance") -> Any:
    """Verdicts that differ without maintenance, or as ``agreed``, then the worst."""
    return differs_without(row, key), *verdict_badness(row)[:2]


# Trends.


def bad_share(row: Row, path: str) -> Figure:
    """The share of a week that was bad, or is expected to be."""
    week = value_at(row, path) or {}
    if week.get("share") is None:
        return Figure(display.NOT_KNOWN)
    return figures.share({**week, "unknown_us": 0}, "share")


def change(row: Row) -> str:
    """How the last week differs from the one before."""
    change_ = row.get("change") or {}
    text = word("change", change_.get("verdict"))
    if not change_.get("p") or change_.get("verdict") not in {"worse", "better"}:
        return text
    return f"{text}; by chance 1 week in {round(1 / change_['p'])} differs as much"


def another_level(row: Row) -> Cell:
    """The week since which the level differs from the weeks before."""
    regimes = row.get("regimes") or ()
    if not regimes:
        return Cell("", order="")
    last = regimes[-1]
    before, after = (display.percent(last.get(f"share_{name}")) for name in ("before", "after"))
    week = display.line(last.get("week"))
    return Cell(f"{week}: {before} to {after}", order=week)


def trend_badness(row: Row) -> tuple[float, ...]:
    """The bad shares of the weeks, the last week first."""
    shares = ((week or {}).get("share") for week in reversed(row.get("weeks") or ()))
    return tuple(0.0 if share is None else float(share) for share in shares)


def drains(row: Row) -> str:
    """Whether a lag shrinks."""
    known = row.get("last_bytes") is not None
    return word("drain", row.get("verdict")) if known else display.NOT_KNOWN


def drained(row: Row) -> Figure:
    """In how long a lag will be gone."""
    if row.get("verdict") == "growing":
        return Figure("never at this rate")
    is_draining = row.get("verdict") == "draining"
    return figures.seen_time(row, "drained") if is_draining else Figure(display.NOT_KNOWN)


# Metrics that no other section shows.


def metric(row: Row) -> tuple[Name, ...]:
    """A metric and its meaning."""
    meaning = row.get("description")
    said = (figures.name(meaning, limit=display.LINE_LIMIT),) if meaning else ()
    return (figures.name(row.get("metric")), *said)


def measured(row: Row, key: str) -> Figure:
    """A value of a row in its unit; empty where metrics of its kind have none."""
    value, unit = row.get(key), row.get("unit") or row.get("rate_unit") or ""
    if value is None and row.get("kind") in {"gauge", "counter"}:
        return Figure("")
    return Figure(display.quantity(value, str(unit)), order=value)


def measured_extreme(row: Row, key: str) -> Figure:
    """The greatest value of a row in its unit, or the least if the key is ``min``."""
    exact, limit = measured(row, key), "at most" if key == "min" else "at least"
    return figures.peak(row, key, lambda _: exact.value, limit)


def above(row: Row) -> Figure:
    """How long a gauge was above zero, and how much of its time was not seen."""
    if row.get("kind") == "counter":
        return Figure("")
    time = figures.seen_time if row.get("source") is None else figures.time
    return time(row, "above")


# Owners, and findings of hygiene.


def owner(row: Row) -> tuple[Name, ...]:
    """Team, owner and tier."""
    labels = {"of_team": "", "owner": "", "tier": "tier"}
    present = (key for key in labels if row.get(key) is not None)
    names = tuple(figures.name(row[key], labels[key]) for key in present)
    return names or (Name("no owner"),)


def throttled_of_owner(row: Row) -> Figure:
    """Throttled time of an owner's clients."""
    return _with_omitted(figures.seen_time(row, "throttled"), row, "clients")


def lost_of_owner(row: Row) -> Figure:
    """Offsets that an owner's groups lost."""
    return _with_omitted(offsets({**row, "unknown_us": 0}), row, "groups")


def stored_of_owner(row: Row, where: str) -> Figure:
    """What an owner's topics have in the remote tier, or on disks, as bytes times months."""
    stored = row.get(f"{where}_byte_seconds")
    months = None if stored is None else stored / MONTH_SECONDS
    figure = Figure(display.size(months), order=stored)
    return _with_omitted(figure, row, "topics") if where == "stored" else figure


def money(value: float | None) -> str:
    """An amount in the currency of the file of owners."""
    return display.NOT_KNOWN if value is None else f"{value:,.2f}"


def _with_omitted(figure: Figure, row: Row, noun: str) -> Figure:
    """The figure, and how many subjects it leaves out because they are not known."""
    number = value_at(row, f"not_known.{noun}") or 0
    text = f"{display.plural(number, noun.removesuffix('s'))} not known"
    return replace(figure, unknown=text) if number else figure


def stored_badness(row: Row) -> tuple[float, float]:
    """Topics with a limit that fill up first, then those with the most on disks."""
    fills = row.get("verdict") == "filling"
    until = row.get("reached_us") if fills else None
    return -(until if until is not None else math.inf), row.get("disk_bytes_mean") or 0.0


def limit(row: Row) -> Figure:
    """A topic's retention.bytes; -1 is none."""
    value = row.get("retention_bytes")
    return Figure("none" if value == -1 else display.size(value), order=value)


def fullest(row: Row) -> Figure:
    """How full the fullest partition is; nothing of a topic without a limit."""
    share = row.get("full_share_max")
    return Figure("" if row.get("verdict") == "unlimited" else display.percent(share), order=share)


def full_in(row: Row) -> Figure:
    """In how long a topic's fullest partition will be full."""
    known = row.get("verdict") == "filling"
    return figures.seen_time(row, "reached") if known else Figure("", order=None)


def suggested(row: Row) -> Figure:
    """A suggested quota."""
    figure = measured(row, "suggested")
    return replace(figure, value="at least " * bool(row.get("suggested_at_least")) + figure.value)


def quota_of(row: Row) -> tuple[Name, ...]:
    """User and client id of a quota."""
    return figures.subject(row.get("quota_of") or {}, ("user", "client_id"))


def retention_left(row: Row) -> Figure:
    """The time until retention overtakes a group."""
    left = row.get("least_seconds")
    return Figure(display.seconds(left) if left else "overtaken now", order=left)
