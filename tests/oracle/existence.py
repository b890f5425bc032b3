"""gold/subjects, gold/lags and gold/rejected in plain Python."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.oracle.meaning import DESCRIBES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.oracle.plain import Key, Rows
    from tests.oracle.rows import Bronze, Run, Scrapes

_FENCED = "kafka.cluster.node.fenced"
_DEFAULT = "<default>"
_LAGS = ("kafka.topic.remote_copy_lag.bytes", "kafka.topic.remote_delete_lag.bytes")
_MISDATED = "its date is not that of its start"
"""Rows that are set aside before their set is looked for."""


@dataclass
class _Told:
    spans: list[tuple[int, int]] = field(default_factory=list)
    whole_until: list[int] = field(default_factory=list)
    described: defaultdict[str, list[tuple[int, float | None, str | None]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def row(self) -> dict[str, Any]:
        latest = {name: max(told, key=_last) for name, told in self.described.items()}
        fenced = latest.get(_FENCED)
        return {
            "first_seen": min(start for start, _ in self.spans),
            "last_seen": max(end for _, end in self.spans),
            "seen_whole_until": max(self.whole_until, default=None),
            "attributes_at": max((at for at, _, _ in latest.values()), default=None),
            "attributes": {name: value for name, (_, value, _) in latest.items()},
            "attribute_instants": {name: at for name, (at, _, _) in latest.items()},
            "rack": fenced[2] if fenced else None,
        }


def _last(told: tuple[int, float | None, str | None]) -> tuple[int, bool, float, str]:
    """Return the sort key of runs: end, then greatest value, then rack."""
    return told[0], told[1] is not None, told[1] or 0.0, told[2] or ""


def subjects(bronze: Bronze) -> Rows:
    """Return subjects by cluster, kind, topic, user, client id, group and source."""
    found: defaultdict[Key, _Told] = defaultdict(_Told)
    for run in bronze.usable():
        for key in _named(run):
            found[key].spans.append((run.start, run.end))
            if run.metric in DESCRIBES:
                rack = dict(run.labels).get("rack") if run.metric == _FENCED else None
                found[key].described[run.metric].append((run.end, run.value, rack or None))
    for row in bronze.accounts():
        told = found[(row.cluster, "source", None, None, None, None, row.source)]
        told.spans.append((row.start, row.end))
        if row.family == "topology" and row.outcome == "ok":
            told.whole_until.append(row.end)
    return {key: told.row() for key, told in found.items()}


def _named(run: Run) -> Iterator[Key]:
    """Yield the subjects of a run, except its source."""
    labels = dict(run.labels)
    describes = DESCRIBES.get(run.metric)
    if describes == "quota":
        kinds = labels.get("default", "").split(",")
        user = _DEFAULT if "user" in kinds else run.user
        client_id = _DEFAULT if "client-id" in kinds else run.client_id
        yield (run.cluster, "quota", run.topic, user, client_id, run.group, None)
    elif describes == "node":
        yield (run.cluster, "source", run.topic, None, None, run.group, labels.get("node"))
    elif run.of_replicas:
        return
    elif run.level in ("partition", "topic"):
        yield (run.cluster, "topic", run.topic, None, None, None, None)
    elif run.level == "group":
        yield (run.cluster, "group", None, None, None, run.group, None)
    elif run.level == "client":
        for user, client_id in run.clients or ((run.user, run.client_id),):
            yield (run.cluster, "client", None, user, client_id, None, None)


def lags(bronze: Bronze) -> Rows:
    """Return the last report by cluster, window, metric, topic and source."""
    grouped: defaultdict[Key, list[tuple[int, float]]] = defaultdict(list)
    for run in bronze.usable():
        if run.metric in _LAGS and run.level in ("partition", "topic"):
            key = (run.cluster, run.window, run.metric, run.topic, run.source)
            grouped[key].append((run.end, run.value or 0.0))
    latest = {key: max(own) for key, own in grouped.items()}
    return {key: {"ended_at": end, "value_last": value} for key, (end, value) in latest.items()}


def rejected(bronze: Bronze) -> Rows:
    """Return rejected rows by cluster, window, reason, table, source, metric and set."""
    grouped: defaultdict[Key, list[Run | Scrapes]] = defaultdict(list)
    for run in bronze.runs:
        members = None if run.reason == _MISDATED else run.members
        key = (run.cluster, run.window, run.reason, "runs", run.source, run.metric, members)
        grouped[key].append(run)
    for row in bronze.scrapes:
        key = (row.cluster, row.window, row.reason, "scrapes", row.source, row.family, None)
        grouped[key].append(row)
    return {key: _set_aside(own) for key, own in grouped.items() if key[2] is not None}


def _set_aside(own: list[Run | Scrapes]) -> dict[str, Any]:
    return {
        "started_at": min(row.start for row in own),
        "ended_at": max(row.end for row in own),
        "agent": min(row.agent for row in own),
        "batch": min(row.batch for row in own),
        "row_count": len(own),
    }
