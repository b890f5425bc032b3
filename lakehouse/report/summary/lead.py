"""The lead: at most three sentences on the greatest events and objectives."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final

from lakehouse.core import display
from lakehouse.core.spans import length
from lakehouse.report.figures import Facts, Row
from lakehouse.report.summary import amounts, events, impacts
from lakehouse.report.summary.frame import Frame
from lakehouse.report.summary.model import Event, Objective, Text
from lakehouse.report.summary.texts import capital, joined, line, listed, text, words

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
    days = len({amounts.date(start) for start, _ in amounts.parts_of(row)})
    first, last = amounts.dates_of(frame.span)
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
    return capital(
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
    return min(sum(times), length(span for row in rows for span in amounts.parts_of(row)))


def _causes(rows: Sequence[Row]) -> list[Text]:
    """Return the causes of events; causes with the same words are one, with all their sources."""
    alike: dict[str, list[Row]] = {}
    for row in rows:
        alike.setdefault(words(f"hit.{row['cause']['kind']}"), []).append(row)
    return [impacts.cause_of(own) for own in alike.values()]


def _topics(rows: Sequence[Row]) -> Text:
    return listed(amounts.names(topic for row in rows for topic in row.get("topics") or ()))


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
