"""The facts of one of the report's five questions, without the rest of the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lakehouse import sla
from lakehouse.existence import Subject
from lakehouse.gold_rows import Row
from lakehouse.metrics import LEADERLESS, UNAVAILABLE
from lakehouse.notebooks.opened import objectives
from lakehouse.report.gather import COPY_LAG, DELETE_LAG, Gold
from lakehouse.report.judged import objective, verdicts
from lakehouse.report.sections import (
    lost_before_read,
    min_isr,
    remote_reads,
    throttling,
    tier_lag,
)
from lakehouse.report.seen import coverage
from lakehouse.report.timelines import timelines
from lakehouse.sla import Statement

if TYPE_CHECKING:
    from lakehouse.notebooks.opened import Opened
    from lakehouse.slo import Objective

_Section = Callable[[Gold, Sequence[Subject], Sequence[Statement]], Row]


class _Asked(NamedTuple):
    """What a question needs of the facts: a section by its name, and objectives on metrics."""

    name: str
    section: _Section
    metrics: frozenset[str] = frozenset()


_THROTTLES: Final = frozenset(
    f"kafka.client.{kind}.throttle_time" for kind in ("produce", "fetch", "request")
)
_QUESTIONS: Final = {
    "min-isr": _Asked("min_isr", min_isr, frozenset({UNAVAILABLE, LEADERLESS})),
    "throttling": _Asked("throttling", throttling, _THROTTLES),
    "tier-lag": _Asked("tier_lag", tier_lag, frozenset({COPY_LAG, DELETE_LAG})),
    "lost": _Asked(
        "lost_before_read",
        lambda gold, _, stated: lost_before_read(gold, stated),
        frozenset({"kafka.group.non_consumed"}),
    ),
    "remote-reads": _Asked("remote_reads", lambda gold, *_: remote_reads(gold)),
}

ANCHORS: Final = tuple(_QUESTIONS)
"""The questions, by the names that the report's page gives them."""


def answer(opened: Opened, anchor: str) -> dict[str, Any]:
    """The facts of a question, as docs/report-json.md describes those of a report.

    Args:
        opened: The lake.
        anchor: One of ``ANCHORS``.
    """
    asked = _QUESTIONS[anchor]
    gold = opened.gold
    mine = tuple(one for one in objectives() if one.metric in asked.metrics)
    stated = _stated(opened, mine)
    return {
        "cluster": gold.cluster,
        "from": gold.period.start.isoformat(),
        "to": gold.period.end.isoformat(),
        "verdicts": verdicts(mine, stated),
        "objectives": [objective(one, stated) for one in mine],
        asked.name: asked.section(gold, opened.known, stated),
        "coverage": coverage(gold, opened.known, opened.now_us),
        "timelines": timelines(gold, opened.known, opened.now_us),
    }


def _stated(opened: Opened, mine: tuple[Objective, ...]) -> list[Statement]:
    """Statements on the time of the week itself, whatever windows are promised."""
    if not mine:
        return []
    promised = opened.statements(mine)
    told, others = sla.of_time(promised, mine, opened.gold.period)
    return [*told, *opened.statements(tuple(others))] if others else told
