"""A report in short: the words and figures that every output shows, with the lead and the notes.

The lead has at most three sentences, on the greatest events and objectives. The notes below the
objectives are on unobserved time, the pooled score and restated weeks.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from lakehouse.core import display
from lakehouse.core.metrics import COVERAGE
from lakehouse.core.periods import Span, length
from lakehouse.core.subjects import is_whole
from lakehouse.report import evidence, figures
from lakehouse.report.figures import Facts, Name, Row
from lakehouse.report.summary import events, impacts, texts
from lakehouse.report.summary.events import Event
from lakehouse.report.summary.objective_rows import LEVELS, Objective, objective_rows
from lakehouse.report.summary.opening import Headline, Tile, elapsed, headline, period, tiles
from lakehouse.report.summary.texts import Frame, Text, joined, line, listed, text, words


class Summary(NamedTuple):
    """A report in short: every output shows these words and draws these figures.

    Texts are plain, with plain spaces between words, and safe to show on one line; names from
    outside are of type ``Name``, so that a page can isolate and abbreviate them. Instants are
    microseconds since 1970 (UTC). Shares of an error budget are fractions: 1.0 is the whole budget
    of the window.

    Attributes:
        title: ``Kafka SLO report``.
        cluster: Its name.
        team: The team of a team's report; None: all.
        week: ``Week 47``; empty if the period is not an ISO week.
        period: ``Mon 16 to Sun 22 Nov 2026, UTC``.
        running: ``week running: 81 % elapsed``; empty if it has ended.
        span: The period.
        elapsed_to: End of the observable time; the end of the period if it has ended.
        headline: The worst verdict.
        lead: The greatest events, at most three sentences.
        tiles: Four to six key figures.
        events: All events, most of a budget first.
        events_note: ``5 events used at least 50 % of a weekly error budget. 2 others did not.``
        objectives: Worst first.
        objectives_note: ``4 missed, 5 met. The worst subject sets the status.``
        has_owners: Whether an owners file is known.
        notes: Unobserved time, pooled score, restated weeks: one sentence each.
        not_collected: ``consumer lag (metric kafka.group.lag)``.
        is_blind: Whether too little was observed to state anything; then ``tiles`` and ``events``
            are empty, and ``headline`` has the observed share.
    """

    title: str
    cluster: Name
    team: Name | None
    week: str
    period: str
    running: str
    span: Span
    elapsed_to: int
    headline: Headline
    lead: tuple[Text, ...]
    tiles: tuple[Tile, ...]
    events: tuple[Event, ...]
    events_note: str
    objectives: tuple[Objective, ...]
    objectives_note: str
    has_owners: bool
    notes: tuple[Text, ...]
    not_collected: tuple[str, ...]
    is_blind: bool


_SENTENCES: Final = 3
_SEVERAL_DAYS: Final = 2


def lead(
    facts: Facts, objectives: Sequence[Objective], found: Sequence[Event], frame: Frame
) -> tuple[Text, ...]:
    """Return the greatest events and objectives, one sentence each.

    Args:
        facts: The facts of the report.
        objectives: The rows of all objectives, worst first.
        found: All events in words.
        frame: The report's period.
    """
    if frame.is_blind:
        return _blind(objectives, frame)
    sentences = _sentences(facts, objectives, found, frame)
    return tuple(islice(filter(None, sentences), _SENTENCES))


def _sentences(
    facts: Facts, objectives: Sequence[Objective], found: Sequence[Event], frame: Frame
) -> Iterator[Text]:
    rows = events.rows(facts)
    major = [row for row in rows or () if events.is_major(row)]
    kinds = list(dict.fromkeys(impacts.kind_of(row) for row in major))
    for kind in kinds:
        own = [row for row in major if impacts.kind_of(row) == kind]
        yield _of_kind(own, found, frame)
    covered = {row.get("objective") for row in major}
    for one in objectives:
        if one.name not in covered:
            yield _of_objective(one)
    without = [one.title for one in objectives if one.status == "no_data"]
    if without:
        yield text("lead.no_data", titles=listed(without))
    if rows is not None and not major:
        yield _largest(found)


def _of_kind(rows: Sequence[Row], found: Sequence[Event], frame: Frame) -> Text:
    """Return one sentence on the events of a kind: on the greatest, or on all of availability."""
    row, kind = rows[0], impacts.kind_of(rows[0])
    if kind == "availability":
        with_topics = [one for one in rows if one.get("topics")]
        if with_topics:
            return _availability(with_topics)
    title = next(one.title for one in found if one.number == row["number"])
    name = f"lead.{kind}" if words(f"lead.{kind}") else "lead.titled"
    return text(name, title=title, client=impacts.values(row)["client"], **_length(row, frame))


def _length(row: Row, frame: Frame) -> dict[str, str]:
    """Return the bad time of an event; the sum of a client's times on several days has its days."""
    bad = display.length(row.get("bad_us"))
    days = _days(row, frame) if row["kind"] == "throttling" else ""
    return {"days": days, "sum": bad if days else "", "length": "" if days else bad}


def _days(row: Row, frame: Frame) -> str:
    days = len({texts.date(start) for start, _ in texts.parts_of(row)})
    first, last = texts.dates_of(frame.span)
    if days < _SEVERAL_DAYS:
        return ""
    is_every = days == (last - first).days + 1
    return words("lead.every_day") if is_every else line("lead.days", days=days)


def _availability(rows: Sequence[Row]) -> Text:
    """Return a sentence on the availability events with a cause, and another on the rest.

    The sentence with the greatest event is first.
    """
    explained = [row for row in rows if impacts.cause_of([row])]
    others = [row for row in rows if row not in explained]
    sentences = [(own[0]["number"], write(own)) for own, write in (
        (explained, _explained), (others, _unexplained),
    ) if own]  # fmt: skip
    return joined(*(sentence for _, sentence in sorted(sentences)), between=" ")


def _explained(rows: Sequence[Row]) -> Text:
    effects = dict.fromkeys(words(f"effect.{impacts.bad_state(row)}") for row in rows)
    causes = listed(_causes(rows))
    return texts.capital(
        text("lead.explained", causes=causes, topics=_topics(rows), effects=" or ".join(effects))
    )


def _unexplained(rows: Sequence[Row]) -> Text:
    return text(
        "lead.unexplained",
        topics=_topics(rows),
        effect=words(f"effect.{impacts.bad_state(rows[0])}"),
        length=display.length(_together(rows)),
        total=words("lead.total") if len(rows) > 1 else "",
    )


def _together(rows: Sequence[Row]) -> int | None:
    """Return the time in which any event was bad; None: not known.

    Events may overlap, and the parts of an event may contain short pauses.
    """
    times: list[int] = [row["bad_us"] for row in rows if row.get("bad_us") is not None]
    if len(times) < len(rows):
        return None
    return min(sum(times), length(span for row in rows for span in texts.parts_of(row)))


def _causes(rows: Sequence[Row]) -> list[Text]:
    """Return the causes of events; causes with the same words are one, with all their sources."""
    alike: dict[str, list[Row]] = {}
    for row in rows:
        alike.setdefault(words(f"hit.{row['cause']['kind']}"), []).append(row)
    return [impacts.cause_of(own) for own in alike.values()]


def _topics(rows: Sequence[Row]) -> Text:
    return listed(texts.names(topic for row in rows for topic in row.get("topics") or ()))


def _of_objective(one: Objective) -> Text:
    """Return what is bad about an objective that no event explains; empty otherwise."""
    write = _OF_STATUS.get(one.status)
    return write(one) if write else ()


def _missed(one: Objective) -> Text:
    return text("lead.missed", title=one.title, subject=one.subject, used=_used(one))


def _uncertain(one: Objective) -> Text:
    length = display.length(one.unobserved_us, "up") if one.unobserved_us else ""
    used = "" if length else _used(one)
    return text("lead.uncertain", title=one.title, subject=one.subject, length=length, used=used)


_OF_STATUS: Final[dict[str, Callable[[Objective], Text]]] = {
    "missed": _missed,
    "at_risk": lambda one: text("lead.at_risk", title=one.title, used=_used(one)),
    "uncertain": _uncertain,
}


def _used(one: Objective) -> str:
    return "" if one.used_share is None else one.used


def _largest(found: Sequence[Event]) -> Text:
    if not found or not found[0].used:
        return text("lead.no_event")
    return text("lead.largest", title=found[0].title, used=found[0].used)


def _blind(objectives: Sequence[Objective], frame: Frame) -> tuple[Text, ...]:
    sentences = [text("lead.blind")]
    if frame.coverage is not None:
        sentences.append(text("lead.blind_share", share=display.share(frame.coverage, 1, "down")))
    if missed := [one.title for one in objectives if one.status == "missed"]:
        sentences.append(text("lead.blind_missed", titles=listed(missed)))
    return tuple(sentences)


def objectives_note(objectives: Sequence[Objective], frame: Frame) -> str:
    """Return how many objectives have which status."""
    if frame.is_blind:
        return line("objectives.blind", floor=display.share(frame.floor, 0))
    if not objectives:
        return line("headline.none") + "."
    if frame.is_running:
        return line("objectives.running", period=frame.word)
    tally = Counter(one.status for one in objectives)
    parts = [
        f"{tally[status]} {words(f'status.{status}').lower()}"
        for status in ("missed", "met", "at_risk", "uncertain", "no_data", "on_track")
        if tally[status]
    ]
    return line("objectives.tally", parts=", ".join(parts))


def notes(facts: Facts, objectives: Sequence[Objective], frame: Frame) -> tuple[Text, ...]:
    """Return the notes of a report, one sentence or two each."""
    found = _restated(facts)
    if not frame.is_blind:
        found += [_unobserved(facts, objectives, frame), _partly(facts), _dropped(facts)]
        found += [_contradicted(facts)]
        found += [() if frame.is_running else one for one in _pooled(facts)]
    found += [_since(facts)]
    return tuple(filter(None, found))


def _unobserved(facts: Facts, objectives: Sequence[Objective], frame: Frame) -> Text:
    """Return the longest unobserved time of a subject of each kind."""
    most: dict[str, int] = {}
    for one in facts.get("objectives") or ():
        if COVERAGE not in (one.get("metrics") or ()) and one.get("level") in LEVELS:
            unknown = [row.get("unknown_us") or 0 for row in one.get("subjects") or ()]
            most[one["level"]] = max(most.get(one["level"], 0), *unknown, 0)
    times = [
        text("notes.per", length=display.length(us, "up"), level=level)
        for level, us in most.items()
        if us
    ]
    opening = (words("notes.running"),) if frame.is_running else ()
    if not times:
        return opening
    depends = _depends(facts, objectives, frame)
    neither = "" if frame.is_running or _policies(facts) else words("notes.neither")
    every = listed(times, len(times))
    sentence = text("notes.unobserved", times=every, neither=neither, depends=depends)
    return joined(opening, sentence, between=" ")


def _policies(facts: Facts) -> bool:
    """Return True if an objective counts unobserved time as good or bad."""
    known = {one.get("unknown") or "interval" for one in facts.get("objectives") or ()}
    return bool(known - {"interval"})


def _depends(facts: Facts, objectives: Sequence[Objective], frame: Frame) -> Text:
    """Return whether a status depends on unobserved time; empty: it can, and none is Uncertain."""
    lenient = 0 if frame.is_running else sum(map(_is_lenient, facts.get("objectives") or ()))
    if lenient:
        return text("notes.lenient", count=lenient)
    statuses = {one.status for one in objectives}
    if "uncertain" in statuses:
        return (words("notes.uncertain"),)
    is_open = frame.is_running or "no_data" in statuses or _observed_in_part(facts)
    return () if is_open else (words("notes.independent"),)


def _partly(facts: Facts) -> Text:
    """Return the questions with much unobserved time, even before their first subject."""
    parts = [
        line("notes.part", asked=asked, share=display.share(percent / 100, 1, "down"))
        for asked, percent in _observed_in_part(facts)
    ]
    return text("notes.partly", parts=listed(parts, len(parts))) if parts else ()


def _dropped(facts: Facts) -> Text:
    """Return the families with series above their limit, which have no figures of their own."""
    families = {row["family"] for row in figures.rows_at(facts, "coverage.sources")}
    parts = [
        line("notes.above", family=family, series=display.count(series), sources=sources)
        for family, (series, sources) in sorted(evidence.dropped(facts, families).items())
    ]
    return text("notes.dropped", parts=listed(parts, len(parts))) if parts else ()


def _contradicted(facts: Facts) -> Text:
    """Return the sources and families on which agents contradict each other."""
    parts = [
        line(
            "notes.of_source",
            family=row["family"],
            source=row["source"],
            length=display.length(us, "up"),
        )
        for row in figures.rows_at(facts, "coverage.sources")
        if (us := row.get("contradicted_us"))
    ]
    return text("notes.contradicted", parts=listed(parts)) if parts else ()


def _observed_in_part(facts: Facts) -> list[tuple[str, float]]:
    return [
        (asked, percent)
        for row in facts.get("answers") or ()
        if row["state"] in {"bad", "good", "partly_known"}
        and (percent := row.get("observed_percent")) is not None
        and not is_whole(percent)
        and (asked := words(f"asked.{row['question']}"))
    ]


def _is_lenient(objective: Row) -> bool:
    """Return True if an objective is met only as it counts unobserved time."""
    subjects = objective.get("subjects") or ()
    return all(row.get("verdict") == "met" for row in subjects) and any(
        row.get("interval_verdict") not in (None, "met") for row in subjects
    )


def _pooled(facts: Facts) -> list[Text]:
    """Return the composites on all subjects, which have no status."""
    return [
        text(
            "notes.pooled",
            title=display.line(row["title"]),
            count=sum(one["subjects"] > 0 for one in row["objectives"]),
            share=_pooled_share(row),
            target=display.share(row.get("target")),
        )
        for row in facts.get("composites") or ()
        if not (row.get("team") or row.get("tier")) and row.get("attainment") is not None
    ]


def _pooled_share(row: Row) -> str:
    """Return the share of a composite; its bounds if unobserved time decides between them."""
    if row.get("verdict") == "uncertain":
        low, high = row["attainment_low"], row["attainment_high"]
        return texts.between_shares(low, high, 2, float(row["target"]))
    return display.share(row.get("attainment"))


def _restated(facts: Facts) -> list[Text]:
    """Return how many results of this report, and which weeks, changed after publication."""
    count = len(facts.get("restated") or ())
    histories = [one.get("history") or () for one in facts.get("objectives") or ()]
    weeks = sorted({row["week"] for each in histories for row in each if row.get("restated")})
    names = list(map(texts.week_name, weeks))
    return [
        text("notes.restated", count=count) if count else (),
        text("notes.restated_weeks", weeks=listed(names, len(names))) if names else (),
    ]


def _since(facts: Facts) -> Text:
    since = (facts.get("coverage") or {}).get("since")
    return text("notes.since", since=display.day_and_time(since)) if since else ()


def not_collected(facts: Facts) -> tuple[str, ...]:
    """Return what no agent collects, from the decisions on each question."""
    names = (
        row["question"] for row in facts.get("answers") or () if row["state"] == "not_collected"
    )
    return tuple(
        line("not_collected", asked=words(f"asked.{name}"), data=data)
        for name in names
        if (data := words(f"data.{name}"))
    )


def summarize(facts: Mapping[str, Any]) -> Summary:
    """Return the summary of a report, with instants in the report's time zone.

    Args:
        facts: The facts of a report; older versions lack events and key figures.
    """
    with display.shown_in(display.zone_of(facts)):
        return texts.spaced(_summary(facts, texts.frame_of(facts)))


def _summary(facts: Mapping[str, Any], frame: Frame) -> Summary:
    objectives = objective_rows(facts, frame)
    found = () if frame.is_blind else events.events(facts, frame)
    team = facts.get("team")
    return Summary(
        title=words("title"),
        cluster=figures.name(facts["cluster"]),
        team=None if team is None else figures.name(team),
        week=_week(facts),
        period=period(frame),
        running=elapsed(frame),
        span=frame.span,
        elapsed_to=frame.observed_to,
        headline=headline(facts, objectives, frame),
        lead=lead(facts, objectives, found, frame),
        tiles=tiles(facts, objectives, frame),
        events=found,
        events_note=events.events_note(facts, frame),
        objectives=objectives,
        objectives_note=objectives_note(objectives, frame),
        has_owners=facts.get("owners") is not None,
        notes=notes(facts, objectives, frame),
        not_collected=not_collected(facts),
        is_blind=frame.is_blind,
    )


def _week(facts: Mapping[str, Any]) -> str:
    week = facts.get("week")
    if not week:
        return ""
    number = texts.week_name(week["iso"]).removeprefix("W").lstrip("0")
    return line("period.week", number=number)
