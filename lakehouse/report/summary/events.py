"""Events in words: time, duration, impact, likely cause, next step, used budget.

A cause that is inferred from evidence of the same time starts with *Likely*. Without evidence it is
*Not known*, followed by the causes that were ruled out and the sources that were not observed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from lakehouse.core import display
from lakehouse.core.periods import Span
from lakehouse.report import figures
from lakehouse.report.facts.by_owner import is_of_brokers
from lakehouse.report.facts.objectives.statement_rows import Status
from lakehouse.report.figures import Facts, Name, Row
from lakehouse.report.summary import impacts, texts
from lakehouse.report.summary.texts import Frame, Text, line, listed, plain, text, words


class Event(NamedTuple):
    """One event in words.

    Attributes:
        number: Its place in the list, from 1; the same in every output.
        status: ``missed`` from a whole budget, ``at_risk`` from half of it, otherwise ``met``;
            ``no_data`` if no objective counts it.
        is_major: Whether it used at least half of an error budget.
        when: ``Wed 18 Nov 14:27 to 14:47``, ``7 of 7 days, 11:02 to 12:23``, ``since Sat 14:02``.
        length: Its bad time: ``20 min``, ``4 h 20 min in total``.
        repeats: ``happened 3 weeks in a row``; empty the first time.
        title: Subject and verb: ``An outage of broker-2 hit payments and scratch``.
        impact: Its impact, with counts.
        cause: Starts with *Likely* if inferred, or *Not known* with the causes that were ruled out.
        next_step: Imperative; empty if there is nothing to do.
        owner: None: no owners file, or no owner.
        affects: ``affects Finance``, where it belongs to the owner of the brokers.
        used: ``1,240 % of loss budget``; empty: no objective has it.
        used_share: Greatest share of an error budget that it used.
        objective: Name of the objective of ``used``.
        notes: ``planned``, ``agreed not to count``, ``no objective``.
        parts: Its bad intervals, for drawings.
        subject: Subject for ``jmxlake explain``: a topic, group, client or source.
    """

    number: int
    status: Status
    is_major: bool
    when: str
    length: str
    repeats: str
    title: Text
    impact: Text
    cause: Text
    next_step: Text
    owner: Name | None
    used: str
    used_share: float | None
    objective: str | None
    notes: tuple[str, ...]
    parts: tuple[Span, ...]
    subject: Name | None
    affects: Text = ()


_UNOBSERVED: Final = 2
_RATES: Final = {"produce": "By/s", "fetch": "By/s", "request": "%"}
"""The unit of a client's rate, by its quota."""

_ERRORS: Final = {"nothing listens there": "error.refused", "no answer in time": "error.timeout"}
"""Words by the beginning of an agent's error."""


def cause(row: Row, scene: impacts.Scene) -> Text:
    """Return the likely cause of an event."""
    found = row["cause"]
    kind = found["kind"] if words(f"cause.{found['kind']}") else "not_known"
    values = _values(row, found)
    if lag := impacts.lag_before(row, scene):
        return text("cause.retention_lag", **values, since=_since(lag), number=lag["number"])
    parts = [
        text(_template(kind, values), **values),
        _replicas(found),
        _also(found),
        *_unobserved(found),
    ]
    if row["kind"] == "loss" and not scene.has_lag:
        parts.append(text("cause.no_lag"))
    return texts.joined(*parts, between=" ")


def _template(kind: str, values: dict[str, Any]) -> str:
    """Return the text of a kind of cause; a cause within a minute can have its own text."""
    is_short = values["start"].endswith(values["end"])
    name = f"cause.{kind}_at"
    return name if is_short and words(name) else f"cause.{kind}"


def _values(row: Row, found: Row) -> dict[str, Any]:
    start, end = (found.get(key) or row[own] for key, own in (("start", "from"), ("end", "to")))
    first, last = figures.moment(start), figures.moment(end)
    at = f"{texts.day(first)} {texts.clock(first)}"
    is_one_day = texts.date(first) == texts.date(figures.moment(row["from"]))
    error = found.get("error")
    return {
        "sources": listed(texts.names(found.get("sources") or ())),
        "group": impacts.values(row)["group"],
        "start": texts.clock(first) if is_one_day else at,
        "end": texts.clock(last),
        "error": "" if error is None else short_error(error),
        "changes": found.get("leader_changes") or 1,
        "limit": _rate(row, "quota"),
        "rate": _rate(row, "rate_max"),
        "ruled_out": _ruled_out(found),
    }


def short_error(error: str) -> str:
    """Return the reason in an agent's error, on one line of at most 80 characters."""
    known = (word for opening, word in _ERRORS.items() if error.startswith(opening))
    name = next(known, "")
    return words(name) if name else display.line(error.partition(";")[0], 80)


def _since(lag: Row) -> str:
    start = figures.moment(lag["from"])
    return f"{texts.day(start)} {texts.clock(start)}"


def _ruled_out(found: Row) -> Text:
    known = [word for one in found.get("ruled_out") or () if (word := words(f"evidence.{one}"))]
    return listed(known, len(known), last="list.or")


def _rate(row: Row, key: str) -> str:
    """Return a rate of a throttled client; empty: not known."""
    rate = impacts.size(row).get(key)
    return "" if rate is None else display.quantity(rate, _RATES.get(str(row.get("of")), "1/s"))


def _replicas(found: Row) -> Text:
    """Return which of the topics that were hit cannot lose a broker."""
    spare, single = found.get("no_spare") or (), found.get("single_replica") or ()
    return text(
        "cause.replicas" if spare else "cause.single",
        spare=listed(texts.names(spare)),
        spares=len(spare),
        single=listed(texts.names(single)),
        singles=len(single),
    )


def _also(found: Row) -> Text:
    """Return other evidence of the same time: words of its kind, or names of sources."""
    also = map(str, found.get("also") or ())
    other = [words(f"evidence.{one}") or figures.name(one) for one in also]
    return text("cause.also", other=listed(other)) if other else ()


def _unobserved(found: Row) -> list[Text]:
    return [
        text(
            "cause.unobserved",
            source=figures.name(one["source"]),
            length=display.length(one["us"], "up"),
        )
        for one in (found.get("unobserved") or ())[:_UNOBSERVED]
    ]


def next_step(row: Row, scene: impacts.Scene) -> Text:
    """Return what to do next, with the subject and the time."""
    found, start = row["cause"], figures.moment(row["from"])
    exposed = [*(found.get("no_spare") or ()), *(found.get("single_replica") or ())]
    values = impacts.values(row)
    sources = texts.names(found.get("sources") or ())
    hours = texts.hours_of(texts.parts_of(row)) or ("", "")
    values |= {
        "sources": listed(sources) or values["source"],
        "quota": words(f"quota.{row.get('of')}"),
        "at": texts.at(start),
        "start": hours[0],
        "end": hours[1],
        "exposed": listed(texts.names(exposed)),
    }
    lag = impacts.lag_before(row, scene)
    values["since"] = texts.at(figures.moment(lag["from"])) if lag else ""
    return text("next.loss_lag" if lag else _name(row), **values)


def _name(row: Row) -> str:
    """Return the step of an event's kind and cause; of its kind only where there is none."""
    kind, why = impacts.kind_of(row), row["cause"]["kind"]
    if kind == "availability" and why == "not_known" and _is_leaderless(row):
        why = "no_leader"
    for name in (f"next.{kind}_{why}", f"next.{kind}"):
        if words(name):
            return name
    return "next.other"


def _is_leaderless(row: Row) -> bool:
    return {one["kind"] for one in row.get("hits") or ()} == {"leaderless"}


MAJOR: Final = 0.5
"""Share of an error budget from which an event has a card of its own."""

_WITHOUT_EVENTS: Final = {"remote-reads", "traffic", "capacity"}
_RECURRING_DAYS: Final = 3
_SECONDS_BELOW_US: Final = 60_000_000


def rows(facts: Facts) -> Sequence[Row] | None:
    """Return the events of the facts; None if they have no events, as in older versions."""
    found: Sequence[Row] | None = facts.get("events")
    return found


def is_major(row: Row) -> bool:
    """Return True if an event used at least half of an error budget."""
    return (row.get("used") or 0) >= MAJOR


def events(facts: Facts, frame: Frame) -> tuple[Event, ...]:
    """Return all events in the order of the facts: most of a budget first."""
    titles = {one["name"]: one.get("title") for one in facts.get("objectives") or ()}
    scene = impacts.scene_of(facts, frame)
    return tuple(_event(row, scene, titles) for row in rows(facts) or ())


def _event(row: Row, scene: impacts.Scene, titles: Mapping[str, object]) -> Event:
    parts = texts.parts_of(row)
    used, objective = row.get("used"), row.get("objective")
    return Event(
        number=row["number"],
        status=_status(used),
        is_major=is_major(row),
        when=when(row, scene.frame),
        length=_length(row, parts),
        repeats=_repeats(row, scene.frame),
        title=impacts.title(row, scene),
        impact=impacts.impact(row, scene),
        cause=cause(row, scene),
        next_step=next_step(row, scene),
        owner=_owner(row),
        affects=_affects(row),
        used=_used(used, objective, titles),
        used_share=used,
        objective=objective,
        notes=_notes(row),
        parts=parts,
        subject=texts.first_name({**row, "topic": next(iter(row.get("topics") or ()), None)}),
    )


def _length(row: Row, parts: Sequence[Span]) -> str:
    """Return the bad time of an event; of several times it is the sum."""
    length = figures.length(row.get("bad_us"))
    return line("event.in_total", length=length) if len(parts) > 1 else length


def _status(used: float | None) -> Status:
    """Return the status by the used share; an event that no objective counts has none."""
    if used is None:
        return "no_data"
    return "missed" if used >= 1 else "at_risk" if used >= MAJOR else "met"


def when(row: Row, frame: Frame) -> str:
    """Return when an event was: its start and end, or its days and hours if it recurred."""
    start, end = figures.span_of(row, "from", "to")
    parts = texts.parts_of(row)
    days = {texts.date(part[0]) for part in parts}
    if len(days) >= _RECURRING_DAYS and len(days) * 2 > len(parts):
        return _daily(parts, len(days), frame)
    shown = f"{texts.day(start)} {texts.clock(start)}"
    if row.get("ongoing"):
        return line("event.since", start=shown)
    if texts.date(start) != texts.date(end):
        return line("event.between", start=shown, end=f"{texts.day(end)} {texts.clock(end)}")
    seconds = end - start < _SECONDS_BELOW_US
    first, last = (texts.clock(us, seconds=seconds) for us in (start, end))
    return line("event.within", day=texts.day(start), start=first, end=last)


def _daily(parts: Sequence[Span], days: int, frame: Frame) -> str:
    first, last = (date.toordinal() for date in texts.dates_of(frame.span))
    hours = texts.hours_of(parts) or ("", "")
    return line("event.daily", days=days, total=last - first + 1, start=hours[0], end=hours[1])


def _repeats(row: Row, frame: Frame) -> str:
    weeks = row.get("weeks_in_row") or 1
    if weeks < 2 or frame.word != "week":
        return ""
    return line("event.weeks_in_row", weeks=weeks)


def _owner(row: Row) -> Name | None:
    owners = row.get("owners") or ([row["owner"]] if row.get("owner") is not None else [])
    owners = [row["owner"]] if is_of_brokers(row) else owners
    return figures.name(plain(listed(texts.names(owners)))) if owners else None


def _affects(row: Row) -> Text:
    """Return the owners that brokers of another owner affected; empty otherwise."""
    if not is_of_brokers(row):
        return ()
    others = [one for one in row.get("owners") or () if one != row["owner"]]
    return text("event.affects", owners=listed(texts.names(others)))


def _used(used: float | None, objective: str | None, titles: Mapping[str, object]) -> str:
    if used is None or objective is None:
        return ""
    share = texts.used(used)
    if budget := words(f"budget.{objective}"):
        return line("event.used", share=share, budget=budget)
    title = display.line(titles.get(objective) or objective)
    return line("event.used_of", share=share, title=title)


def _notes(row: Row) -> tuple[str, ...]:
    no_objective = row.get("objective") is None and row.get("used") is None
    given = {**row, "no_objective": no_objective}
    keys = ("planned", "agreed", "no_objective")
    return tuple(words(f"event.{key}") for key in keys if given.get(key))


def events_note(facts: Facts, frame: Frame) -> str:
    """Return how many events there were, or why that is not known."""
    found = rows(facts)
    if frame.is_blind:
        return f"{texts.blind(frame)}."
    if found is None:
        return line("events.missing", period=frame.word)
    return plain(text(_note(found), **_counts(found, frame))) + _not_known(facts)


def _note(found: Sequence[Row]) -> str:
    if not found:
        return "events.none"
    return "events.note" if any(map(is_major, found)) else "events.minor"


def _counts(found: Sequence[Row], frame: Frame) -> dict[str, str | int]:
    major = sum(map(is_major, found))
    minor = len(found) - major
    is_whole = frame.coverage is None or frame.coverage >= 0.99
    return {
        "major": line("events.count", count=major),
        "minor": (str(minor) if major else line("events.count", count=minor)) if minor else "",
        "others": minor,
        "budget": words("events.budget_week" if frame.word == "week" else "events.budget"),
        "share": "" if is_whole else display.share(frame.coverage, 1, "down"),
        "period": frame.word,
    }


def _not_known(facts: Facts) -> str:
    """Return the questions on which nothing is known, so that no event of them can be listed."""
    subjects = [
        subject
        for row in facts.get("answers") or ()
        if row.get("state") == "not_known" and row["question"] not in _WITHOUT_EVENTS
        if (subject := words(f"asked.{row['question']}"))
    ]
    return line("events.not_known", subjects=listed(subjects, 8)) if subjects else ""
