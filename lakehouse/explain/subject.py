"""Finds the subject that a typed name means."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lakehouse.core import formats
from lakehouse.core.lifetimes import Subject
from lakehouse.core.metrics import PARTITION_COUNT
from lakehouse.errors import SubjectError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

KINDS: Final = ("topic", "client", "group", "source")
"""Kinds of gold/subjects that have a story; a quota is part of its clients' stories."""

_PARTITION: Final = re.compile(r"(?P<topic>.+)/(?P<partition>[0-9]{1,9})")
_NUMBERED: Final = re.compile(r"(broker|controller)-([0-9]+)")
_PREFIX: Final = re.compile(r"^(topic|partition|client|user|group|source|broker):")
_SHOWN: Final = 4
_ALIKE: Final = 0.6
_MOST_CLOSE: Final = 3
_LONGEST: Final = 2 * formats.NAME_LIMIT


@dataclass(frozen=True, slots=True)
class Target:
    """The subject of a story: a row of gold/subjects, or one partition of a topic."""

    subject: Subject
    partition: int | None = None

    @property
    def kind(self) -> str:
        """``topic``, ``partition``, ``client``, ``group`` or ``source``."""
        return self.subject.kind if self.partition is None else "partition"

    @property
    def name(self) -> str:
        """A name that can be typed and means nothing else in its cluster."""
        subject = self.subject
        if subject.kind == "client":
            if subject.user is None:
                return f"client:{subject.client_id}"
            both = subject.client_id is not None
            return f"{subject.user}/{subject.client_id}" if both else f"user:{subject.user}"
        if subject.source is not None and _NUMBERED.fullmatch(subject.source):
            return subject.source
        whole = f"{subject.kind}:{subject.names[subject.kind]}"
        return whole if self.partition is None else f"{whole}/{self.partition}"

    def to_json(self) -> dict[str, Any]:
        """Its kind and its names."""
        return {"kind": self.kind, **self.subject.names, "partition": self.partition}


def find(text: str, known: Sequence[Subject], lake: str) -> Target:
    """The subject of a name.

    Args:
        text: ``orders``, ``topic:orders``, ``orders/3``, ``user/client-id``, ``client:ID``,
            ``group:NAME``, ``broker-1`` or ``broker:1``; invisible characters may be spelt out as
            in reports.
        known: The subjects of the clusters to search.
        lake: The lake's name in errors.

    Raises:
        SubjectError: No subject has this name, or several have.
    """
    subjects = [subject for subject in known if subject.kind in KINDS]
    targets = [Target(subject) for subject in subjects if _has_name(subject, text)]
    split = _PARTITION.fullmatch(text.removeprefix("partition:"))
    if split:
        topics = [s for s in subjects if s.kind == "topic" and _has_name(s, split["topic"])]
        targets += [Target(topic, int(split["partition"])) for topic in topics]
    if not targets:
        raise SubjectError(
            f"{formats.line(text)}: {lake} has no topic, partition, client, group or broker of "
            f"this name{_suggestion(text, subjects)}"
        )
    if len(targets) > 1:
        raise SubjectError(
            f"{formats.line(text)}: this may be {_several(targets)}; write which one"
        )
    target = targets[0]
    number = target.subject.attributes.get(PARTITION_COUNT)
    if target.partition is not None and number is not None and target.partition >= number:
        raise SubjectError(
            f"{formats.line(target.subject.topic)} has {formats.plural(int(number), 'partition')}, "
            f"and none of number {target.partition}"
        )
    return target


def _has_name(subject: Subject, text: str) -> bool:
    return any(text in (name, formats.visible(name)) for name in _names(subject))


def _names(subject: Subject) -> Iterator[str]:
    """All names of a subject, the plain one first."""
    if subject.kind == "client":
        user, client_id = subject.user, subject.client_id
        if user is None:
            yield from (f"{client_id}", f"client:{client_id}")
        elif client_id is None:
            yield from (user, f"user:{user}")
        else:
            yield from (f"{user}/{client_id}", f"client:{user}/{client_id}", f"client:{client_id}")
        return
    plain = str(subject.names[subject.kind])
    yield from (plain, f"{subject.kind}:{plain}")
    if subject.kind == "source":
        if node := _NUMBERED.fullmatch(plain):
            yield f"{node[1]}:{node[2]}"
        yield f"broker:{plain}"


def _suggestion(text: str, subjects: Iterable[Subject]) -> str:
    """The most similar names of any kind, as the end of an error."""
    by_name: dict[str, list[Subject]] = {}
    for subject in subjects:
        by_name.setdefault(_plain(next(_names(subject))), []).append(subject)
    bare = _PREFIX.sub("", text, count=1)
    split = _PARTITION.fullmatch(bare)
    wanted = _plain(split["topic"] if split else bare)
    best = difflib.get_close_matches(wanted, by_name, _MOST_CLOSE, _ALIKE)
    names = [Target(subject).name for match in best for subject in by_name[match]][:_MOST_CLOSE]
    shown = [formats.line(name, formats.NAME_LIMIT) for name in names]
    return f"; did you mean {' or '.join(shown)}?" if shown else ""


def _plain(text: str) -> str:
    return formats.visible(text[:_LONGEST])[:_LONGEST].casefold()


def _several(targets: Sequence[Target]) -> str:
    clusters = {target.subject.cluster for target in targets}
    if len({(target.kind, target.subject.key, target.partition) for target in targets}) == 1:
        names = ", ".join(formats.line(cluster) for cluster in sorted(clusters))
        return f"in any of the clusters {names}, and --cluster chooses one"
    names_ = sorted({formats.line(target.name, formats.NAME_LIMIT) for target in targets})
    more = f" or {len(names_) - _SHOWN} more" if len(names_) > _SHOWN else ""
    return " or ".join(names_[:_SHOWN]) + more
