"""From when to when a subject was to be seen: what coverage and unknown time are judged against.

A subject exists from the first instant at which anything told of it. Topics, groups and sources
that fall silent go on existing, for silence is no proof of an end. A source has ended when the
cluster's metadata goes on naming others and not it; a topic or a group, when every live source that
tells which topics exist has told so later than it was last seen. A source that has ended or is
fenced is not waited for. Clients come and go: they exist until they were last seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from lakehouse.metrics import NODE_FENCED
from lakehouse.periods import micros
from lakehouse.tables import MAX_GAP_INTERVALS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse.periods import Period

SUBJECT: Final = ("topic", "user", "client_id", "group", "source")
"""What a key is made of."""

_SLACK_US: Final = 180_000_000  # three scrapes of the topology


@dataclass(frozen=True, slots=True)
class Subject:
    """A row of gold/subjects, or a partition of a topic of these; instants in microseconds."""

    cluster: str
    kind: str
    topic: str | None
    user: str | None
    client_id: str | None
    group: str | None
    source: str | None
    first_us: int
    last_us: int
    whole_until_us: int | None = None
    attributes_us: int | None = None
    attributes: Mapping[str, float | None] = field(default_factory=dict)
    partition: int | None = None
    rack: str | None = None

    @property
    def key(self) -> tuple[str | None, ...]:
        """What tells it from others of its kind."""
        return (self.topic, self.user, self.client_id, self.group, self.source)

    @property
    def names(self) -> dict[str, str | None]:
        """The same by the columns of a key."""
        return dict(zip(SUBJECT, self.key, strict=True))


def subject(row: Mapping[str, Any]) -> Subject:
    """A subject from a row of gold/subjects whose instants are microseconds."""
    return Subject(
        row["cluster"], row["kind"], row["topic"], row["user"], row["client_id"], row["group"],
        row["source"], row["first_seen"], row["last_seen"], row["seen_whole_until"],
        row["attributes_at"], dict(row["attributes"] or {}), rack=row.get("rack"),
    )  # fmt: skip


def with_ends(subjects: Iterable[Subject]) -> list[tuple[Subject, int | None]]:
    """The subjects of one cluster, and until when each existed; None where it goes on."""
    known = list(subjects)
    sources = [one for one in known if one.kind == "source"]
    named = max((s.attributes_us for s in sources if s.attributes_us is not None), default=None)
    # A null: it was told, and nobody knew.
    up = (s for s in sources if not (s.attributes.get(NODE_FENCED) or 0.0) > 0)
    live = [s for s in up if _source_end(s, named) is None]
    told = min((s.whole_until_us for s in live if s.whole_until_us is not None), default=None)
    return [(one, _end(one, named, told)) for one in known]


def _end(one: Subject, named_us: int | None, told_us: int | None) -> int | None:
    """Its end; nodes were named last at ``named_us``, topics told by all until ``told_us``."""
    if one.kind == "source":
        return _source_end(one, named_us)
    if one.kind in ("topic", "group"):  # both are read over the same connection to the cluster
        gone = told_us is not None and told_us > one.last_us + _SLACK_US
        return one.last_us if gone else None
    return one.last_us


def _source_end(one: Subject, named_us: int | None) -> int | None:
    if one.attributes_us is None or named_us is None:
        return None
    gone = named_us > one.attributes_us + _SLACK_US
    return max(one.last_us, one.attributes_us) if gone else None


def expected_us(one: Subject, end_us: int | None, period: Period, now_us: int) -> int:
    """Microseconds of a period in which a subject existed, not beyond ``now_us``."""
    last = min(micros(period.end), now_us, end_us if end_us is not None else now_us)
    return max(0, last - max(micros(period.start), one.first_us))


def floor_us(interval_us: int, slowest_us: int) -> int:
    """The longest time that may lie between two looks with nothing said to be unknown.

    Mostly that is one interval. But where an agent was killed and is back, or answers are late, it
    is more: an answer vouches for so many intervals at most, until the next question is asked. What
    was looked at first in the one answer may be looked at last in the other.

    Args:
        interval_us: Between scrapes.
        slowest_us: What the slowest answer took.
    """
    return round(MAX_GAP_INTERVALS * interval_us) + 2 * slowest_us
