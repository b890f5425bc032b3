"""SQL on a subject's rows: stretches that touch become one in it, so that few rows leave it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lakehouse.gold_rows import EXACT, is_one_of, is_same, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.explain.subject import Asked
    from lakehouse.explain.watched import Watched

_PARTS: Final = {
    "topic": "CAST(r.partition AS STRING)",
    "partition": "CAST(r.partition AS STRING)",
    "group": "concat_ws('/', r.topic, CAST(r.partition AS STRING))",
}


def bad_stretches(asked: Asked, watched: Sequence[Watched]) -> str:
    """Rows of gold/incidents as stretches (``s`` to ``e``) of series and lanes, oldest first."""
    metrics = sorted({metric for one in watched for metric in one.told_as})
    counters = sorted({name for one in watched if one.is_counter for name in one.told_as})
    part = _PARTS.get(asked.kind, "CAST(NULL AS STRING)")
    pieces = (
        f"SELECT r.metric AS metric, {part} AS part, r.source AS source, l.lane AS lane, "
        "r.worst AS worst, r.total AS total, "
        "CASE WHEN l.lane = 'may' THEN r.start - r.lead_us ELSE r.start END AS s, "
        "CASE WHEN l.lane = 'sure' THEN r.end - r.tail_us ELSE r.end END AS e "
        "FROM {rows} r CROSS JOIN "
        "(SELECT 'seen' AS lane UNION ALL SELECT 'sure' AS lane UNION ALL SELECT 'may' AS lane) l "
        f"WHERE {is_one_of('r.metric', metrics)} AND {of_subject(asked)} "
        f"AND (l.lane = 'seen' OR NOT ({is_one_of('r.metric', counters)}))"
    )
    total = f"CAST(sum(CAST(n.total AS {EXACT})) AS DOUBLE) AS total"
    keys = ("metric", "part", "source", "lane")
    found = stretches(pieces, keys, f"max(n.worst) AS worst, {total}")
    order = ", ".join(f"n.{name}" for name in ("s", "e", *keys))
    return f"SELECT n.* FROM ({found}) n ORDER BY {order}"


def stretches(pieces: str, keys: Sequence[str], figures: str) -> str:
    """Pieces from ``s`` to ``e`` of the same keys that touch, as one.

    Args:
        pieces: A SELECT with the keys, ``s`` and ``e``.
        keys: What distinguishes series.
        figures: What is said of all pieces ``n`` of a stretch.
    """
    series, by = (", ".join(f"{alias}.{name}" for name in keys) for alias in "pn")
    before = f"OVER (PARTITION BY {series} ORDER BY p.s, p.e ROWS BETWEEN UNBOUNDED PRECEDING AND"
    marked = (
        f"SELECT p.*, CASE WHEN p.s <= max(p.e) {before} 1 PRECEDING) THEN 0 ELSE 1 END AS is_new "
        f"FROM ({pieces}) p WHERE p.s < p.e"
    )
    numbered = f"SELECT p.*, sum(p.is_new) {before} CURRENT ROW) AS number FROM ({marked}) p"
    return (
        f"SELECT {by}, min(n.s) AS s, max(n.e) AS e, {figures} "
        f"FROM ({numbered}) n GROUP BY {by}, n.number"
    )


def of_subject(asked: Asked) -> str:
    """The condition that a row ``r`` is of the subject."""
    subject = asked.subject
    if asked.kind == "client":
        user, client_id = is_same("r.user", subject.user), is_same("r.client_id", subject.client_id)
        return f"{user} AND {client_id} AND r.topic IS NULL"
    if asked.kind == "partition":
        return f"r.topic = {text(str(subject.topic))} AND r.partition = {asked.partition:d}"
    return f"r.{asked.kind} = {text(str(getattr(subject, asked.kind)))}"
