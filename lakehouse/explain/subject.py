"""Who is meant: a name as a person types it, looked up among all that the lake knows."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lakehouse.errors import SubjectError
from lakehouse.existence import Subject
from lakehouse.metrics import PARTITIONS_TOLD
from lakehouse.report import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

KINDS: Final = ("topic", "client", "group", "source")
"""Kinds of gold/subjects that have a story; quotas are told with their clients."""

_PARTITION: Final = re.compile(r"(?P<topic>.+)/(?P<partition>[0-9]{1,9})")
_NUMBERED: Final = re.compile(r"(broker|controller)-([0-9]+)")
_PREFIX: Final = re.compile(r"^(topic|partition|client|user|group|source|broker):")
_SHOWN: Final = 4
_ALIKE: Final = 0.6
_MOST_CLOSE: Final = 3
_LONGEST: Final = 2 * words.NAME_LIMIT


@dataclass(frozen=True, slots=True)
class Asked:
    """Who is asked for: a row of gold/subjects and, of a topic, maybe one partition."""

    subject: Subject
    partition: int | None = None

    @property
    def kind(self) -> str:
        """``topic``, ``partition``, ``client``, ``group`` or ``source``."""
        return self.subject.kind if self.partition is None else "partition"

    def as_json(self) -> dict[str, Any]:
        """What it is, and its names."""
        return {"kind": self.kind, **self.subject.names, "partition": self.partition}


def find(text: str, known: Sequence[Subject], lake: str) -> Asked:
    """The subject of a name, which may be written as reports spell it out.

    Args:
        text: ``orders``, ``topic:orders``, ``orders/3``, ``user/client-id``, ``client:ID``,
            ``group:NAME``, ``broker-1`` or ``broker:1``.
        known: All of gold/subjects of the clusters that are asked for.
        lake: How the lake is called, for errors.

    Raises:
        SubjectError: There is none of this name, or more than one.
    """
    told = [one for one in known if one.kind in KINDS]
    found = [Asked(one) for one in told if _is_called(one, text)]
    split = _PARTITION.fullmatch(text.removeprefix("partition:"))
    if split:
        topics = [s for s in told if s.kind == "topic" and _is_called(s, split["topic"])]
        found += [Asked(one, int(split["partition"])) for one in topics]
    if not found:
        raise SubjectError(
            f"{words.line(text)}: {lake} has no topic, partition, client, group or broker of this "
            f"name{_meant(text, told)}"
        )
    if len(found) > 1:
        raise SubjectError(f"{words.line(text)}: this may be {_several(found)}; write which one")
    one = found[0]
    told_last = one.subject.attributes.get(PARTITIONS_TOLD)
    if one.partition is not None and told_last is not None and one.partition >= told_last:
        raise SubjectError(
            f"{words.line(one.subject.topic)} has {words.plural(int(told_last), 'partition')}, "
            f"and none of number {one.partition}"
        )
    return one


def name(one: Asked) -> str:
    """The name that means it and nothing else of its cluster, as it can be typed."""
    subject = one.subject
    if subject.kind == "client":
        if subject.user is None:
            return f"client:{subject.client_id}"
        both = subject.client_id is not None
        return f"{subject.user}/{subject.client_id}" if both else f"user:{subject.user}"
    if subject.source is not None and _NUMBERED.fullmatch(subject.source):
        return subject.source
    of = {"topic": subject.topic, "group": subject.group, "source": subject.source}
    whole = f"{subject.kind}:{of[subject.kind]}"
    return whole if one.partition is None else f"{whole}/{one.partition}"


def _is_called(one: Subject, text: str) -> bool:
    return any(text in (form, words.visible(form)) for form in _forms(one))


def _forms(one: Subject) -> Iterator[str]:
    """All names of a subject."""
    if one.kind == "client":
        user, client_id = one.user, one.client_id
        if user is None:
            yield from (f"{client_id}", f"client:{client_id}")
        elif client_id is None:
            yield from (user, f"user:{user}")
        else:
            yield from (f"{user}/{client_id}", f"client:{user}/{client_id}", f"client:{client_id}")
        return
    (plain,) = (part for part in (one.topic, one.group, one.source) if part is not None)
    yield from (plain, f"{one.kind}:{plain}")
    if one.kind == "source":
        if node := _NUMBERED.fullmatch(plain):
            yield f"{node[1]}:{node[2]}"
        yield f"broker:{plain}"


def _meant(text: str, told: Iterable[Subject]) -> str:
    """What may have been meant: names that are alike, whatever kind they are of."""
    names: dict[str, list[Subject]] = {}
    for one in told:
        names.setdefault(_plain(next(_forms(one))), []).append(one)
    bare = _PREFIX.sub("", text, count=1)
    split = _PARTITION.fullmatch(bare)
    close: dict[str, float] = {}
    for wanted in {_plain(bare), _plain(split["topic"]) if split else _plain(bare)}:
        for match in difflib.get_close_matches(wanted, names, _MOST_CLOSE, _ALIKE):
            ratio = difflib.SequenceMatcher(None, wanted, match).ratio()
            close[match] = max(ratio, close.get(match, 0.0))
    best = sorted(close, key=lambda match: (-close[match], match))[:_MOST_CLOSE]
    alike = [name(Asked(one)) for match in best for one in names[match]][:_MOST_CLOSE]
    shown = [words.line(one, words.NAME_LIMIT) for one in alike]
    return f"; did you mean {' or '.join(shown)}?" if shown else ""


def _plain(text: str) -> str:
    return words.visible(text[:_LONGEST])[:_LONGEST].casefold()


def _several(found: Sequence[Asked]) -> str:
    clusters = {one.subject.cluster for one in found}
    if len({(one.kind, one.subject.key, one.partition) for one in found}) == 1:
        named = ", ".join(words.line(cluster) for cluster in sorted(clusters))
        return f"in any of the clusters {named}, and --cluster chooses one"
    names = sorted({words.line(name(one), words.NAME_LIMIT) for one in found})
    more = f" or {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return " or ".join(names[:_SHOWN]) + more
