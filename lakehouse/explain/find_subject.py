"""Search for the subject of a typed name."""

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from lakehouse.core import display
from lakehouse.core.metrics import PARTITION_COUNT
from lakehouse.core.subjects import Subject
from lakehouse.errors import SubjectError

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


def find(text: str, known: Sequence[Subject], lake: str) -> Subject:
    """Return the subject of a name: a row of gold/subjects, or a partition of a topic.

    Args:
        text: ``orders``, ``topic:orders``, ``orders/3``, ``user/client-id``, ``client:ID``,
            ``group:NAME``, ``broker-1`` or ``broker:1``; invisible characters may be written as
            in reports.
        known: The subjects of the clusters to search.
        lake: The lake's name in errors.

    Raises:
        SubjectError: The name is unknown or ambiguous.
    """
    subjects = [subject for subject in known if subject.kind in KINDS]
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
        raise SubjectError(f"{display.line(text)}: this may be {_several(found)}; write which one")
    (subject,) = found
    count = subject.attributes.get(PARTITION_COUNT)
    if subject.partition is not None and count is not None and subject.partition >= count:
        raise SubjectError(
            f"{display.line(subject.topic)} has {display.plural(int(count), 'partition')}, "
            f"and none of number {subject.partition}"
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
