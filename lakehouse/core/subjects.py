"""Subjects, their active periods, and the observed share of them that a good result needs.

A subject is active from its first report. Missing reports do not prove an end. A source ends when
the cluster's metadata has other nodes but not this node. A topic or group ends when each live
source that lists topics has listed them after the subject's last report; ended or fenced sources do
not count. A group or client ends only when another of the cluster was observed later. Otherwise the
agents might not have read them, or a broker hides all of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from lakehouse.core.metrics import NODE_FENCED
from lakehouse.core.periods import Period, micros

SUBJECT: Final = ("topic", "user", "client_id", "group", "source")
"""Names of a subject's key in objectives and reports."""

SUBJECT_COLUMNS: Final = ("topic", "user_name", "client_id", "consumer_group", "source")
"""Columns of the key in gold, in the same order."""

_REPORTED: Final = dict(
    zip((*SUBJECT, "partition"), (*SUBJECT_COLUMNS, "partition_id"), strict=True)
)

_SLACK_US: Final = 180_000_000  # three scrapes of the topology


@dataclass(frozen=True, slots=True)
class Subject:
    """A row of gold/subjects, or a partition of such a topic; instants in microseconds."""

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
        """Identity among subjects of its kind and cluster."""
        return (self.topic, self.user, self.client_id, self.group, self.source)

    @property
    def names(self) -> dict[str, str | None]:
        """Key by name."""
        return dict(zip(SUBJECT, self.key, strict=True))


def subject(row: Mapping[str, Any]) -> Subject:
    """Return the subject of a row of gold/subjects, with instants in microseconds."""
    topic, user, client_id, group, source = (row[name] for name in SUBJECT_COLUMNS)
    return Subject(
        row["cluster"], row["kind"], topic, user, client_id, group, source,
        row["first_seen"], row["last_seen"], row["seen_whole_until"], row["attributes_at"],
        dict(row["attributes"] or {}), rack=row.get("rack"),
    )  # fmt: skip


def with_names(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of gold with the names of its subject as in reports."""
    return {**row, **{name: row.get(column) for name, column in _REPORTED.items()}}


def with_ends(subjects: Iterable[Subject]) -> list[tuple[Subject, int | None]]:
    """Return the subjects of one cluster with the end of each. None for an active subject."""
    everything = list(subjects)
    sources = [subject for subject in everything if subject.kind == "source"]
    nodes_us = max((s.attributes_us for s in sources if s.attributes_us is not None), default=None)
    # Null means that the state is unknown to all controllers.
    up = (s for s in sources if not (s.attributes.get(NODE_FENCED) or 0.0) > 0)
    live = [s for s in up if _source_end(s, nodes_us) is None]
    topics_us = min((s.whole_until_us for s in live if s.whole_until_us is not None), default=None)
    groups_us, clients_us = (
        max((one.last_us for one in everything if one.kind == kind), default=0)
        for kind in ("group", "client")
    )
    # Topics and groups are read over the same connection to the cluster.
    of_groups_us = None if topics_us is None else min(topics_us, groups_us)
    listed_us = {"source": nodes_us, "group": of_groups_us, "client": clients_us}
    return [(one, _end(one, listed_us.get(one.kind, topics_us))) for one in everything]


def _end(subject: Subject, listed_us: int | None) -> int | None:
    """Return the end of a subject; its kind was surely listed at ``listed_us``."""
    if subject.kind == "source":
        return _source_end(subject, listed_us)
    gone = listed_us is not None and listed_us > subject.last_us + _SLACK_US
    return subject.last_us if gone else None


def _source_end(source: Subject, nodes_us: int | None) -> int | None:
    if source.attributes_us is None or nodes_us is None:
        return None
    gone = nodes_us > source.attributes_us + _SLACK_US
    return max(source.last_us, source.attributes_us) if gone else None


def expected_us(subject: Subject, end_us: int | None, period: Period, now_us: int) -> int:
    """Return the active time (µs) of a subject in a period, up to ``now_us``."""
    last = min(micros(period.end), now_us, end_us if end_us is not None else now_us)
    return max(0, last - max(micros(period.start), subject.first_us))


FLOOR_PERCENT: Final = 50.0
"""Default minimum of the observed share (percent of expected time) for a good result."""

WHOLE_PERCENT: Final = 99.0
"""Share from which a statement omits its coverage."""

State = Literal["bad", "good", "partly_known", "not_known", "not_collected", "not_applicable"]
"""Possible statements about a question or a subject."""


def percentage(text: str) -> float | None:
    """Return a number from 0 to 100. Any other text yields None, also ``nan``."""
    try:
        found = float(text)
    except ValueError:
        return None
    return found if 0 <= found <= 100 else None


def state_of(percent: float | None, floor: float = FLOOR_PERCENT) -> State:
    """Return the state for an observed share of the expected time, without a bad value.

    Args:
        percent: Observed share of the expected time. None if no time was expected.
        floor: Minimum share for a good state.
    """
    if not percent or percent < floor:
        return "not_known"
    return "good" if is_whole(percent) else "partly_known"


def is_whole(percent: float | None) -> bool:
    """Return True if nearly all expected time was observed."""
    return percent is not None and percent >= WHOLE_PERCENT


def peak_high(high: float | None, unknown_us: int | None) -> float | None:
    """Return the upper bound of a peak. None if unknown time can hide a higher peak.

    Args:
        high: Upper bound of the observed peak.
        unknown_us: Unknown time of the subject (µs). None if it is not known.
    """
    return high if unknown_us == 0 else None
