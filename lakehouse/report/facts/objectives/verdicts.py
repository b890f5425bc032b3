"""Statements as the facts have them: verdicts on objectives, and each with all its subjects."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Final, NamedTuple

from lakehouse.core import display
from lakehouse.core.objective import Objective
from lakehouse.report.facts.fields import OBJECTIVE, TARGET, TITLE, VERDICT, Means, Named, fields_of
from lakehouse.slo.cluster_level import by_cluster, partition_count
from lakehouse.slo.sla_statement import Statement

_OF_OBJECTIVE: Final = ("name", "title", "description", "target", "level")


class Verdict(NamedTuple):
    """The verdict of an objective, which is the verdict of its worst subject."""

    objective: Annotated[str, OBJECTIVE]
    title: Annotated[str, TITLE]
    target: Annotated[float, TARGET]
    verdict: Annotated[str, VERDICT]
    subjects: Annotated[int, Means("number of subjects")]
    missed: Annotated[int, Means("number of subjects that missed it")]
    uncertain: Annotated[int, Means("number of subjects that may have met or missed it")]
    no_data: Annotated[int, Means("number of subjects without data")]
    met: Annotated[int, Means("number of subjects that met it")]
    agreed: Annotated[str | None, Means("verdict with corrections; empty: no corrections")]


def verdicts(objectives: Sequence[Objective], statements: Sequence[Statement]) -> list[Verdict]:
    """One verdict per objective, worst first."""
    rows = []
    for wanted in objectives:
        own = [one for one in statements if one.objective == wanted]
        counts, agreed = tally(one.verdict for one in own), None
        if any(one.agreed for one in own):
            agreed = tally((one.agreed or one).verdict for one in own)["verdict"]
        rows.append(Verdict(wanted.name, wanted.title, wanted.target, **counts, agreed=agreed))
    return sorted(rows, key=lambda row: -display.rank(row.verdict))


def tally(verdicts: Iterable[str]) -> dict[str, Any]:
    """The worst of some verdicts, how many there are, and how many of each."""
    counts = Counter(verdicts)
    worst = next((verdict for verdict in display.VERDICTS if counts[verdict]), "no_data")
    counted = {verdict: counts[verdict] for verdict in display.VERDICTS}
    return {"verdict": worst, "subjects": counts.total(), **counted}


def objective(wanted: Objective, statements: Sequence[Statement]) -> dict[str, Any]:
    """One objective with all its subjects, worst first."""
    judged = [one for one in statements if one.objective == wanted]
    judged.sort(key=lambda one: (-display.rank(one.verdict), -one.times.bad_us, *_names(one)))
    return {
        **{key: getattr(wanted, key) for key in _OF_OBJECTIVE},
        "window": wanted.window.name,
        "method": wanted.method,
        "metrics": list(wanted.metrics),
        "labels": {key: list(values) for key, values in wanted.labels.items()},
        "composites": [asdict(part) for part in wanted.composites],
        **(judged[0].scope() if judged else {}),
        "weighted": next((one.to_json() for one in by_cluster(judged)), None),
        "subjects": [
            {
                **{name: getattr(one.subject, name) for name in fields_of(Named)},
                **_weight(one),
                **one.figures(),
                **one.details(brief=True),
            }
            for one in judged
        ],
    }


def _weight(statement: Statement) -> dict[str, int]:
    """How much a topic counts beside others; other subjects count alike."""
    subject = statement.subject
    return {"partitions": partition_count(subject)} if subject.kind == "topic" else {}


def _names(statement: Statement) -> tuple[str, int]:
    return str(statement.subject.key), statement.subject.partition or 0
