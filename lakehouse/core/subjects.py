"""Subjects, and when each existed: the time against which unknown time is measured.

A subject exists from its first report. Silence is no proof of an end: a source ends when the
cluster's metadata names other nodes but not it; a topic or a group ends when every live source that
lists topics has listed them after the subject was last seen. A source that has ended or is fenced
is not waited for. A client ends when another client of the cluster was observed later. Without
one, no agent may have read clients.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from lakehouse.core.metrics import NODE_FENCED
from lakehouse.core.periods import Period, micros

SUBJECT: Final = ("topic", "user", "client_id", "group", "source")
"""Names of a subject's key in objectives and reports."""

SUBJECT_COLUMNS: Final = ("topic", "user_name", "client_id", "consumer_group", "source")
"""Its columns in gold, in the same order."""

_REPORTED: Final = dict(
    zip((*SUBJECT, "partition"), (*SUBJECT_COLUMNS, "partition_id"), strict=True)
)

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
        """Its identity among subjects of its kind and cluster."""
        return (self.topic, self.user, self.client_id, self.group, self.source)

    @property
    def names(self) -> dict[str, str | None]:
        """The key by name."""
        return dict(zip(SUBJECT, self.key, strict=True))


def subject(row: Mapping[str, Any]) -> Subject:
    """A subject from a row of gold/subjects whose instants are microseconds."""
    topic, user, client_id, group, source = (row[name] for name in SUBJECT_COLUMNS)
    return Subject(
        row["cluster"], row["kind"], topic, user, client_id, group, source,
        row["first_seen"], row["last_seen"], row["seen_whole_until"], row["attributes_at"],
        dict(row["attributes"] or {}), rack=row.get("rack"),
    )  # fmt: skip


def with_names(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of gold with the names of its subject as reports have them."""
    return {**row, **{name: row.get(column) for name, column in _REPORTED.items()}}


def with_ends(subjects: Iterable[Subject]) -> list[tuple[Subject, int | None]]:
    """The subjects of one cluster, and until when each existed; None where it goes on."""
    everything = list(subjects)
    sources = [subject for subject in everything if subject.kind == "source"]
    nodes_us = max((s.attributes_us for s in sources if s.attributes_us is not None), default=None)
    # A null means that no controller knew.
    up = (s for s in sources if not (s.attributes.get(NODE_FENCED) or 0.0) > 0)
    live = [s for s in up if _source_end(s, nodes_us) is None]
    topics_us = min((s.whole_until_us for s in live if s.whole_until_us is not None), default=None)
    clients_us = max((one.last_us for one in everything if one.kind == "client"), default=None)
    return [(subject, _end(subject, nodes_us, topics_us, clients_us)) for subject in everything]


def _end(
    subject: Subject, nodes_us: int | None, topics_us: int | None, clients_us: int | None
) -> int | None:
    """Its end.

    Nodes were listed last at ``nodes_us``, topics by all sources at ``topics_us``, and clients by
    any source at ``clients_us``.
    """
    if subject.kind == "source":
        return _source_end(subject, nodes_us)
    # Topics and groups are read over the same connection to the cluster.
    listed_us = clients_us if subject.kind == "client" else topics_us
    gone = listed_us is not None and listed_us > subject.last_us + _SLACK_US
    return subject.last_us if gone else None


def _source_end(source: Subject, nodes_us: int | None) -> int | None:
    if source.attributes_us is None or nodes_us is None:
        return None
    gone = nodes_us > source.attributes_us + _SLACK_US
    return max(source.last_us, source.attributes_us) if gone else None


def expected_us(subject: Subject, end_us: int | None, period: Period, now_us: int) -> int:
    """Microseconds of a period in which a subject existed, not beyond ``now_us``."""
    last = min(micros(period.end), now_us, end_us if end_us is not None else now_us)
    return max(0, last - max(micros(period.start), subject.first_us))
