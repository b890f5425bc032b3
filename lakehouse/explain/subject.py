"""The subject of a story: search for a typed name, and the report's events that touch it.

The report covers the same period, and its words are used.
"""

import difflib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from lakehouse.core import display
from lakehouse.core.metrics import PARTITION_COUNT
from lakehouse.core.subjects import Subject
from lakehouse.errors import SubjectError
from lakehouse.report.evidence import decide
from lakehouse.report.facts.build import head
from lakehouse.report.facts.by_owner import with_event_owners
from lakehouse.report.facts.events.event_uses import NAMES_OF
from lakehouse.report.facts.fields import to_json
from lakehouse.report.facts.report_record import SECTIONS, Scope, question
from lakehouse.report.figures import Facts, Row
from lakehouse.report.owners import Owners
from lakehouse.report.summary import events as words, lines
from lakehouse.report.summary.events import Event
from lakehouse.report.summary.texts import frame_of, spaced

KINDS: Final = ("topic", "client", "group", "source")
"""Kinds of gold/subjects that have a story; a quota is part of its clients' stories."""

_PARTITION: Final = re.compile(r"(?P<topic>.+)/(?P<partition>[0-9]{1,9})")
_NUMBERED: Final = re.compile(r"(broker|controller)-([0-9]+)")
_SHOWN: Final = 4
_MOST_CLOSE: Final = 3
_LONGEST: Final = 2 * display.NAME_LIMIT


def name_of(subject: Subject) -> str:
    """Return a name that can be typed and is unique in its cluster."""
    if subject.kind == "partition":
        return f"topic:{subject.topic}/{subject.partition}"
    plain, with_kind, *_ = _names(subject)
    has_both = subject.user is not None and subject.client_id is not None
    is_numbered = subject.kind == "source" and _NUMBERED.fullmatch(plain)
    return plain if has_both or is_numbered else with_kind


def find(text: str, known: Sequence[Subject], lake: str, cluster: str | None = None) -> Subject:
    """Return the subject of a name: a row of gold/subjects, or a partition of a topic.

    Args:
        text: ``orders``, ``topic:orders``, ``orders/3``, ``user/client-id``, ``client:ID``,
            ``group:NAME``, ``broker-1`` or ``broker:1``; invisible characters may be written as
            in reports.
        known: The subjects of all clusters.
        lake: The lake's name in errors.
        cluster: The cluster to search. Default: all clusters.

    Raises:
        SubjectError: The name is unknown or ambiguous, or the cluster is unknown.
    """
    clusters = sorted({one.cluster for one in known})
    if cluster is not None and cluster not in clusters:
        names = ", ".join(display.line(name) for name in clusters) or "none"
        raise SubjectError(f"cluster {display.line(cluster)} is not in {lake}. Clusters: {names}")
    of_cluster = [one for one in known if cluster in (None, one.cluster)]
    subjects = [subject for subject in of_cluster if subject.kind in KINDS]
    found = [subject for subject in subjects if _has_name(subject, text)]
    if split := _PARTITION.fullmatch(text.removeprefix("partition:")):
        topics = [one for one in subjects if one.kind == "topic" and _has_name(one, split["topic"])]
        number = int(split["partition"])
        found += [replace(topic, kind="partition", partition=number) for topic in topics]
    if not found:
        raise SubjectError(
            f"{display.line(text)}: {lake} has no topic, partition, client, group or broker of "
            f"this name{_suggestion(text, subjects)}"
        )
    if len(found) > 1:
        raise SubjectError(f"{display.line(text)}: ambiguous. Use {_several(found)}")
    (subject,) = found
    count = subject.attributes.get(PARTITION_COUNT)
    if subject.partition is not None and count is not None and subject.partition >= count:
        raise SubjectError(
            f"{display.line(subject.topic)} has {display.plural(int(count), 'partition')}, "
            f"but not partition {subject.partition}"
        )
    return subject


def _has_name(subject: Subject, text: str) -> bool:
    return any(text in (name, display.visible(name)) for name in _names(subject))


def _names(subject: Subject) -> Iterator[str]:
    """Yield all names of a subject, the plain name first."""
    if subject.kind == "client":
        both = [name for name in (subject.user, subject.client_id) if name is not None]
        plain = "/".join(both)
        yield from (plain, f"{'user' if subject.client_id is None else 'client'}:{plain}")
        if len(both) > 1:
            yield f"client:{subject.client_id}"
        return
    plain = str(subject.names[subject.kind])
    yield from (plain, f"{subject.kind}:{plain}")
    if subject.kind == "source":
        if node := _NUMBERED.fullmatch(plain):
            yield f"{node[1]}:{node[2]}"
        yield f"broker:{plain}"


def _suggestion(text: str, subjects: Iterable[Subject]) -> str:
    """Return the most similar names of any kind, as the end of an error."""
    by_name: dict[str, list[Subject]] = {}
    for subject in subjects:
        by_name.setdefault(_plain(next(_names(subject))), []).append(subject)
    bare = re.sub("^(topic|partition|client|user|group|source|broker):", "", text, count=1)
    split = _PARTITION.fullmatch(bare)
    wanted = _plain(split["topic"] if split else bare)
    best = difflib.get_close_matches(wanted, by_name, _MOST_CLOSE)
    names = [name_of(subject) for match in best for subject in by_name[match]][:_MOST_CLOSE]
    shown = [display.line(name, display.NAME_LIMIT) for name in names]
    return f"; did you mean {' or '.join(shown)}?" if shown else ""


def _plain(text: str) -> str:
    return display.visible(text[:_LONGEST])[:_LONGEST].casefold()


def _several(found: Sequence[Subject]) -> str:
    if len({(one.kind, one.key, one.partition) for one in found}) == 1:
        clusters = ", ".join(map(display.line, sorted({one.cluster for one in found})))
        return f"in any of the clusters {clusters}, and --cluster chooses one"
    names = sorted({display.line(name_of(one), display.NAME_LIMIT) for one in found})
    more = f" or {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return " or ".join(names[:_SHOWN]) + more


_SECTIONS: Final = ("coverage", "collected", "events", "incidents", "incomplete")
"""Sections that events and their words are made of."""


class Events(NamedTuple):
    """The events of a report that touch a subject.

    Attributes:
        rows: Rows of ``events`` in report.json, with ``words``; None: they are not known.
        total: Number of events in the report; None: they are not known.
        reason: Why they are not known; empty if they are.
    """

    rows: list[Row] | None = None
    total: int | None = None
    reason: str = ""


NO_EVENTS: Final = Events()


def facts_of(scope: Scope, owners: Owners) -> Facts:
    """Return the report's facts on events, and the facts that their words depend on."""
    facts = {
        **head(scope.gold, scope.calendar, scope.min_coverage),
        "objectives": [{"name": one.name, "title": one.title} for one in scope.objectives],
        **{name: to_json(SECTIONS[name](scope)) for name in _SECTIONS},
    }
    # The section itself takes longer than the rest; its bad time has events.
    if owners.rules and facts["events"]:
        facts["events"] = with_event_owners(facts["events"], owners.labels)
    is_behind = any(row["kind"] == "consumer_lag" for row in facts["events"] or ())
    return {**facts, "answers": [decide(facts, question("lag"), bad=is_behind)._asdict()]}


def of_subject(facts: Facts, subject: Subject) -> Events:
    """Return the events that touch a subject, with the numbers of the report."""
    with display.shown_in(display.zone_of(facts)):
        frame = frame_of(facts)
        rows = words.rows(facts)
        if rows is None or frame.is_blind:
            return Events(reason=spaced(words.events_note(facts, frame)))
        found = spaced(words.events(facts, frame))
    incidents: defaultdict[int, list[Row]] = defaultdict(list)
    for one in facts["incidents"]:
        incidents[one["event"]].append(one)
    own: list[Row] = [
        {**row, "words": _words(event)}
        for row, event in zip(rows, found, strict=True)
        if _touches(row, incidents[row["number"]], subject)
    ]
    return Events(own, len(rows))


def _words(event: Event) -> Row:
    """Return the texts of an event that every output of the report has."""
    return {
        "title": lines.plain(event.title),
        "time": lines.event_time(event),
        "impact": lines.plain(event.impact),
        "cause": lines.plain(event.cause),
        "owner": lines.plain(lines.event_owner(event)),
        "next_step": lines.plain(event.next_step),
        "used": event.used,
    }


def _touches(event: Row, incidents: Iterable[Row], subject: Subject) -> bool:
    """Return whether an event hit a subject or used its budget, or a source caused it."""
    if subject.kind == "source":
        caused = (*event["cause"]["sources"], *event["cause"]["also"])
        own = (one["sources"] for one in incidents if one["level"] == "source")
        named = any(subject.source in sources for sources in (caused, *own))
    else:
        named = subject.kind == "topic" and subject.topic in event["topics"]
    keys = NAMES_OF[subject.kind]
    rows = (event, *event["uses"], *incidents)
    return named or any(all(row.get(key) == getattr(subject, key) for key in keys) for row in rows)
