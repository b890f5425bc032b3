"""Statements as the facts have them: a verdict for each objective, and its subjects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakehouse import sla
from lakehouse.report.lookup import tally
from lakehouse.weighted import by_cluster

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.sla import Statement
    from lakehouse.slo import Objective


def verdicts(objectives: Sequence[Objective], stated: Sequence[Statement]) -> list[dict[str, Any]]:
    """One verdict per objective, that of its worst subject; worst first."""
    found = [
        {
            "objective": objective.name,
            "title": objective.title,
            "target": objective.target,
            **tally(one.verdict for one in stated if one.objective == objective),
        }
        for objective in objectives
    ]
    return sorted(found, key=lambda one: sla.VERDICTS.index(one["verdict"]))


def objective(wanted: Objective, stated: Sequence[Statement]) -> dict[str, Any]:
    """One objective with all its subjects, worst first."""
    mine = [one for one in stated if one.objective == wanted]
    mine.sort(key=lambda one: (sla.VERDICTS.index(one.verdict), -one.times.bad_us, *_names(one)))
    return {
        "name": wanted.name,
        "title": wanted.title,
        "description": wanted.description,
        "target": wanted.target,
        "level": wanted.level,
        "window": wanted.window.name,
        "method": wanted.method,
        "labels": {key: list(values) for key, values in wanted.labels.items()},
        **(mine[0].over() if mine else {}),
        "weighted": next((one.told() for one in by_cluster(mine)), None),
        "subjects": [
            {
                "topic": one.subject.topic,
                "partition": one.subject.partition,
                "user": one.subject.user,
                "client_id": one.subject.client_id,
                "group": one.subject.group,
                "source": one.subject.source,
                **one.figures(),
                **one.more(brief=True),
            }
            for one in mine
        ],
    }


def _names(one: Statement) -> tuple[str, int]:
    return str(one.subject.key), one.subject.partition or 0
